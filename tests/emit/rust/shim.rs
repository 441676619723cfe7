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
        Ok(_) => {
            MESSAGE.with(|place| place.borrow_mut().clone_from(&CString::default()));
            0
        }
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

#[repr(C)]
pub struct Extra {
    workspace: u64,
    bytes: i64,
    streams: *const *mut c_void,
    count: i32,
    graph: *mut Graph<'static>,
    plans: *mut CPlan,
    room: i32,
    plan_count: i32,
}

impl Extra {
    fn brought(&self) -> tilec::Raw {
        let (mut extents, mut strides) = ([0; 8], [0; 8]);
        (extents[0], strides[0]) = (self.bytes, 1);
        tilec::Raw { data: self.workspace, extents, strides, rank: 1, dtype: Dtype::U8, device: -1 }
    }

    fn lanes(&self) -> Vec<(*mut c_void, i32)> {
        (0..self.count as usize).map(|i| unsafe { (*self.streams.add(i), -1) }).collect()
    }
}

fn replayed(graph: Option<&Graph<'_>>, stream: *mut c_void) -> c_int {
    graph.map_or_else(|| told(Ok(())), |graph| told(unsafe { graph.launch(stream, -1, &Default::default()) }))
}

#[no_mangle]
pub unsafe extern "C" fn pipe_replay(graph: *const Graph<'static>, stream: *mut c_void) -> c_int {
    replayed(unsafe { graph.as_ref() }, stream)
}

#[no_mangle]
pub unsafe extern "C" fn pipe_destroy(graph: *mut Graph<'static>) {
    if !graph.is_null() {
        drop(unsafe { Box::from_raw(graph) });
    }
}

fn piped(
    what: c_int, set: &'static tilec::Pipelines, stream: *mut c_void, extra: &mut Extra,
    arguments: &[tilec::Argument<'_>],
) -> c_int {
    let graph = unsafe { extra.graph.as_mut() };
    match (what, graph) {
        (0, _) => told(unsafe { tilec::run_on(set, stream, -1, None, arguments, &Default::default()) }),
        (1, _) => told(tilec::check_run(set, arguments)),
        (2, _) => {
            let bytes = tilec::workspace_of(set, arguments);
            extra.bytes = bytes.clone().unwrap_or(0) as i64;
            told(bytes)
        }
        (3, _) => told(unsafe { tilec::run_on(set, stream, -1, Some(&extra.brought()), arguments, &Default::default()) }),
        (4, _) => told(unsafe { tilec::run_on_lanes(set, &extra.lanes(), arguments, &Default::default()) }),
        (5, _) => match Graph::new(set, arguments) {
            Ok(made) => {
                extra.graph = Box::into_raw(Box::new(made));
                told(Ok(()))
            }
            Err(error) => told::<()>(Err(error)),
        },
        (7, _) => match tilec::plan_of_run(set, arguments) {
            Ok(PipelinePlan { launches, .. }) => {
                extra.plan_count = launches.len() as i32;
                for (number, plan) in launches.into_iter().enumerate().take(extra.room as usize) {
                    planned(Ok(plan), unsafe { extra.plans.add(number) });
                }
                told(Ok(()))
            }
            Err(error) => told::<()>(Err(error)),
        },
        (_, Some(graph)) => {
            let changes: Vec<_> = arguments.iter().map(|given| Some(tilec::Kept::of(given))).collect();
            told(graph.change(set, &changes))
        }
        _ => -1,
    }
}

macro_rules! pipe {
    ($name:ident, $set:ident, $tensors:ident, $w:ident, $r:ident, $($given:expr),*) => {
        #[no_mangle]
        #[allow(non_snake_case, unused_variables)]
        pub unsafe extern "C" fn $name(
            what: c_int, stream: *mut c_void, t: *const *const CTensor, w: *const i64, r: *const f64, x: *mut Extra,
        ) -> c_int {
            let count = [$(stringify!($given)),*].len();
            let $tensors: Vec<tilec::Raw> = (0..count).map(|i| unsafe { raw(*t.add(i)) }).collect();
            let ($w, $r) = (|i: usize| unsafe { *w.add(i) }, |i: usize| unsafe { *r.add(i) });
            piped(what, &data::$set, stream, unsafe { &mut *x }, &[$($given),*])
        }
    };
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
                0 => told(unsafe { tilec::launch(&data::$set, stream, -1, &arguments, &Default::default()) }),
                1 => told(tilec::check(&data::$set, &arguments)),
                _ => planned(tilec::plan_of(&data::$set, &arguments), plan),
            }
        }
    };
}

