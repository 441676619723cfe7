// ---- What the launchers of all kernels share. The same text stands in each file that tilec emits.
//
// Nothing links libcuda: it is opened at the first launch. Nothing prints, exits or aborts: what goes wrong is an
// `Error`, which says it in words. (But for one thing: where the driver lets nobody wait for kernels that use borrowed
// memory, see `settle`.) The standard library is all that is needed, and a CUDA driver of version 12 or later.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::{self, Write};
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val, transmute, zeroed};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

#[cfg(not(all(unix, target_pointer_width = "64", target_endian = "little")))]
compile_error!("launchers of tilec need a 64-bit little-endian host with dlopen");
