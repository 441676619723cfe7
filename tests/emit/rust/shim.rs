// The functions of an emitted file under the names and types that tests call those of a header by (tests/emit/calling.py).
#![allow(clippy::all)]
include!("sample.rs");

use std::ffi::{c_char, c_int, c_void, CString};

thread_local! {
    static MESSAGE: std::cell::RefCell<CString> = std::cell::RefCell::default();
}

#[repr(C)]
pub struct CTensor {
    data: u64,
    extents: [i64; 8],
    strides: [i64; 8],
    rank: i32,
    dtype: i32,
    device: i32,
}

#[repr(C)]
pub struct CPlan {
    kernel: *const c_char,
    variant: *const c_char,
    target: *const c_char,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    shared_bytes: u32,
    device: i32,
}

const DTYPES: [Dtype; 16] = [
    Dtype::Bool, Dtype::I8, Dtype::U8, Dtype::F8E4M3, Dtype::F8E5M2, Dtype::I16, Dtype::U16, Dtype::F16, Dtype::BF16,
    Dtype::I32, Dtype::U32, Dtype::F32, Dtype::I64, Dtype::U64, Dtype::F64, Dtype::Usize,
];

unsafe fn raw(tensor: *const CTensor) -> tilec::Raw {
    if tensor.is_null() {
        // A scalar, which no function reads as a tensor.
        return tilec::Raw { data: 0, extents: [0; 8], strides: [0; 8], rank: 0, dtype: Dtype::Bool, device: -1 };
    }
    let t = unsafe { &*tensor };
    let dtype = DTYPES[(t.dtype - 1) as usize];
    tilec::Raw { data: t.data, extents: t.extents, strides: t.strides, rank: t.rank, dtype, device: t.device }
}

fn told<T>(result: Result<T>) -> c_int {
    match result {
        Ok(_) => 0,
        Err(error) => {
            MESSAGE.with(|place| *place.borrow_mut() = CString::new(error.message).unwrap());
            error.status as c_int
        }
    }
}

#[no_mangle]
pub extern "C" fn shim_message() -> *const c_char {
    MESSAGE.with(|place| place.borrow().as_ptr())
}

#[no_mangle]
pub extern "C" fn shim_set_driver(handle: *mut c_void) -> c_int {
    told(unsafe { set_driver(handle) })
}

#[no_mangle]
pub extern "C" fn shim_load(device: c_int) -> c_int {
    told(load(device))
}

fn planned(result: Result<Plan>, place: *mut CPlan) -> c_int {
    let status = told(result.clone());
    if let Ok(plan) = result {
        // Tests are short: the texts of plans are left behind.
        let text = |text: &str| CString::new(text).unwrap().into_raw() as *const c_char;
        let (kernel, variant, target) = (text(plan.kernel), text(plan.variant), text(plan.target));
        let Plan { grid, block, cluster, shared_bytes, device, .. } = plan;
        unsafe { *place = CPlan { kernel, variant, target, grid, block, cluster, shared_bytes, device } };
    }
    status
}

macro_rules! shim {
    ($name:ident, $set:ident, $tensors:ident, $w:ident, $r:ident, $($given:expr),*) => {
        #[no_mangle]
        #[allow(non_snake_case, unused_variables)]
        pub unsafe extern "C" fn $name(
            what: c_int, stream: *mut c_void, t: *const *const CTensor, w: *const i64, r: *const f64, plan: *mut CPlan,
        ) -> c_int {
            let count = [$(stringify!($given)),*].len();
            let $tensors: Vec<tilec::Raw> = (0..count).map(|i| unsafe { raw(*t.add(i)) }).collect();
            let ($w, $r) = (|i: usize| unsafe { *w.add(i) }, |i: usize| unsafe { *r.add(i) });
            let arguments = [$($given),*];
            match what {
                0 => told(unsafe { tilec::launch(&data::$set, stream, -1, &arguments) }),
                1 => told(tilec::check(&data::$set, &arguments)),
                _ => planned(tilec::plan_of(&data::$set, &arguments), plan),
            }
        }
    };
}

