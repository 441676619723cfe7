// A program as users write it, of which the fake driver counts what it does.
#![deny(warnings)]
#![forbid(unsafe_op_in_unsafe_fn)]

#[path = "sample.rs"]
mod sample;

use sample::*;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[derive(Clone, Copy)]
struct Fake(*mut c_void);

impl Fake {
    fn count(self, name: &CStr) -> c_int {
        let found = unsafe { dlsym(self.0, name.as_ptr()) };
        let function: extern "C" fn() -> c_int = unsafe { std::mem::transmute(found) };
        function()
    }

    fn launches(self) -> c_int {
        self.count(c"fake_launches")
    }

    fn waits(self) -> c_int {
        self.count(c"fake_waits")
    }

    fn live(self) -> c_int {
        self.count(c"fake_memory_live")
    }

    /// What waiting gives from now on; 900 and more until the driver was asked so many times whether something is captured.
    fn refuse(self, code: c_int, looks: c_int, context: c_int) {
        let found = unsafe { dlsym(self.0, c"fake_refuse".as_ptr()) };
        let function: extern "C" fn(c_int, c_int, c_int) = unsafe { std::mem::transmute(found) };
        function(code, looks, context);
    }
}

/// Memory of another crate, whose element type is its own.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Half(#[allow(dead_code)] u16);
struct Foreign(DeviceBuffer<BF16>);

unsafe impl Element for Half {
    type Same = BF16;
    const DTYPE: Dtype = Dtype::BF16;
}

unsafe impl DeviceMemory for Foreign {
    type Element = Half;
    fn address(&self) -> u64 {
        self.0.address()
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn device(&self) -> i32 {
        self.0.device()
    }
}

unsafe impl DeviceMemoryMut for Foreign {}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status)
}

fn many_first_calls() -> Result<()> {
    let mut buffers = Vec::new();
    for _ in 0..16 {
        buffers.push(DeviceBuffer::<f32>::zeroed(0, 64)?);
    }
    let x = DeviceBuffer::from_slice(0, &[1f32; 64])?;
    let from = Tensor::new(&x, [64])?;
    std::thread::scope(|threads| {
        for buffer in &mut buffers {
            threads.spawn(move || {
                let mut to = TensorMut::new(buffer, [64]).unwrap();
                add(&Stream::of_device(0), &mut to, &from, &from, 1.0).unwrap();
            });
        }
    });
    Ok(())
}

fn copies() -> Result<()> {
    let mut buffer = DeviceBuffer::from_slice(0, &[1u8, 2, 3])?;
    assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    buffer.copy_from_slice(&[4, 5, 6])?;
    assert_eq!(buffer.to_vec()?, [4, 5, 6]);
    assert_eq!(DeviceBuffer::<f64>::zeroed(0, 2)?.to_vec()?, [0.0, 0.0]);
    assert_eq!(status(buffer.copy_from_slice(&[1])), Some(Status::Extent));
    assert_eq!(status(buffer.copy_to_slice(&mut [0; 4])), Some(Status::Extent));
    assert!(DeviceBuffer::<f32>::zeroed(0, 0)?.is_empty());
    assert_eq!(status(DeviceBuffer::<u64>::zeroed(0, usize::MAX)), Some(Status::Limit));
    assert_eq!(status(DeviceBuffer::<u8>::zeroed(0, 1 << 47)), Some(Status::Limit));
    assert_eq!(status(DeviceBuffer::<u8>::zeroed(7, 1)), Some(Status::NoDevice));
    Ok(())
}

fn shapes() -> Result<()> {
    let mut buffer = DeviceBuffer::<f32>::zeroed(0, 100)?;
    assert_eq!(Tensor::new(&buffer, [4, 25])?.strides(), [25, 1]);
    assert_eq!(Tensor::new(&buffer, vec![100])?.extents(), [100]);
    let refused = Tensor::new(&buffer, [4, 26]).unwrap_err();
    assert_eq!(refused.status, Status::Extent);
    assert_eq!(refused.to_string(), "shape (4, 26), strides (26, 1) need 416 bytes of memory, got 400");
    assert_eq!(status(Tensor::new(&buffer, [usize::MAX, usize::MAX])), Some(Status::Extent));
    assert_eq!(status(Tensor::new(&buffer, [1; 9])), Some(Status::Rank));
    assert!(Tensor::new(&buffer, [usize::MAX, 0]).is_ok());
    let corner = Tensor::strided(&buffer, 55, [5, 5], [10, 1])?;
    assert_eq!(corner.address(), buffer.address() + 4 * 55);
    assert_eq!(status(Tensor::strided(&buffer, 56, [5, 5], [10, 1])), Some(Status::Extent));
    assert_eq!(status(Tensor::strided(&buffer, usize::MAX, [1], [1])), Some(Status::Extent));
    assert_eq!(status(Tensor::strided(&buffer, 0, [5, 5], [1])), Some(Status::Rank));
    assert_eq!(status(TensorMut::new(&mut buffer, [101])), Some(Status::Extent));
    Ok(())
}

fn parts(fake: Fake) -> Result<()> {
    let stream = Stream::new(0)?;
    let mut buffer = DeviceBuffer::<f32>::zeroed(0, 100)?;
    let launches = fake.launches();
    let address = buffer.address();
    let (mut left, mut right) = buffer.split_at_mut(40)?;
    assert_eq!((right.address(), right.bytes()), (address + 160, 240));
    let mut to = TensorMut::new(&mut left, [40])?;
    let from = Tensor::new(&right, [40])?;
    add(&stream, &mut to, &from, &from, 1.0)?;
    assert_eq!(status(TensorMut::new(&mut left, [41])), Some(Status::Extent));
    let mut other = TensorMut::strided(&mut right, 20, [40], [1])?;
    add(&stream, &mut other, &Tensor::new(&left, [40])?, &Tensor::new(&left, [40])?, 1.0)?;
    let (left, right) = buffer.split_at(100)?;
    assert_eq!((left.bytes(), right.bytes()), (400, 0));
    assert_eq!(status(buffer.split_at_mut(101)), Some(Status::Extent));
    assert_eq!(fake.launches() - launches, 2);
    Ok(())
}

fn waiting(fake: Fake) -> Result<()> {
    let stream = Stream::new(0)?;
    let x = DeviceBuffer::from_slice(0, &[1f32; 64])?;
    let mut z = DeviceBuffer::<f32>::zeroed(0, 64)?;
    let (launches, waits) = (fake.launches(), fake.waits());
    let from = Tensor::new(&x, [64])?;
    let mut to = TensorMut::new(&mut z, [64])?;
    add(&stream, &mut to, &from, &from, 2.0)?;
    add__f32_1024(&stream, &mut to, &from, &from, 2.0)?;
    assert_eq!((fake.launches() - launches, fake.waits() - waits), (2, 2));
    assert!(add_check(&to, &from, &from, 2.0).is_ok());
    let plan = add_plan(&to, &from, &to.as_tensor(), 2.0);
    assert_eq!(status(plan), Some(Status::Overlap));
    assert_eq!(add_plan(&to, &from, &from, 2.0)?.grid, [1, 1, 1]);
    let short = Tensor::new(&x, [63])?;
    let refused = add(&stream, &mut to, &from, &short, 2.0).err().unwrap();
    assert_eq!(refused.status, Status::NoInstance);
    assert!(refused.message.contains("`y`: expected extent 64 of axis 0"), "{refused}");
    let other = Stream::of_device(1);
    let refused = add(&other, &mut to, &from, &from, 2.0).err().unwrap();
    assert_eq!(refused.message, "`add__f32_1024`: the tensors are on device 0, the stream on device 1");
    let none = Stream::of_device(-1);
    assert_eq!(status(add(&none, &mut to, &from, &from, 2.0)), Some(Status::NoDevice));
    assert_eq!(status(none.scope(|_| Ok(()))), Some(Status::NoDevice));
    assert_eq!(fake.launches() - launches, 2);
    z.to_vec()?;
    Ok(())
}

fn scopes(fake: Fake) -> Result<()> {
    let (stream, second) = (Stream::new(0)?, Stream::new(0)?);
    let x = DeviceBuffer::from_slice(0, &[1f32; 64])?;
    let (mut y, mut z) = (DeviceBuffer::<f32>::zeroed(0, 64)?, DeviceBuffer::<f32>::zeroed(0, 64)?);
    let from = Tensor::new(&x, [64])?;
    let (launches, waits) = (fake.launches(), fake.waits());
    let made = stream.scope(|scope| {
        let (x, mut y) = (scope.read(from), scope.write(TensorMut::new(&mut y, [64])?));
        let mut z = scope.write(TensorMut::new(&mut z, [64])?);
        add_launch(scope, &mut y, &x, &x, 1.0)?;
        add_launch(scope, &mut z, &y.as_read(), &x, 1.0)?;
        add_launch(scope, &mut y, &z.as_read(), &x, 1.0)?;
        assert_eq!((fake.launches() - launches, fake.waits() - waits), (3, 0));
        Ok(3)
    })?;
    assert_eq!((made, fake.waits() - waits), (3, 1));
    y.to_vec()?;

    // Two streams at one time, each with what it writes.
    stream.scope(|one| {
        let mut y = one.write(TensorMut::new(&mut y, [64])?);
        add_launch(one, &mut y, &one.read(from), &one.read(from), 1.0)?;
        second.scope(|other| {
            let mut z = other.write(TensorMut::new(&mut z, [64])?);
            add_launch(other, &mut z, &other.read(from), &other.read(from), 1.0)
        })
    })?;
    assert_eq!(fake.launches() - launches, 5);

    // What fails or panics waits too.
    let waits = fake.waits();
    let failed: Result<()> = stream.scope(|scope| {
        let mut z = scope.write(TensorMut::new(&mut z, [64])?);
        add_launch(scope, &mut z, &scope.read(from), &scope.read(from), 1.0)?;
        scope.read(Tensor::new(&x, [65])?);
        Ok(())
    });
    assert_eq!((status(failed), fake.waits() - waits), (Some(Status::Extent), 1));
    std::panic::set_hook(Box::new(|_| ()));
    let panicked = catch_unwind(AssertUnwindSafe(|| stream.scope(|_| -> Result<()> { panic!("as it is meant") })));
    let _ = std::panic::take_hook();
    assert!(panicked.is_err());
    assert_eq!(fake.waits() - waits, 2);
    Ok(())
}

/// Nothing returns before the driver has waited for what borrows memory, whatever it answers first.
fn refusals(fake: Fake) -> Result<()> {
    const CAPTURED: c_int = 906; // of the default stream, while a blocking one is captured
    let stream = Stream::of_device(0);
    let x = DeviceBuffer::from_slice(0, &[1f32; 64])?;
    let mut z = DeviceBuffer::<f32>::zeroed(0, 64)?;
    let mut graph_z = DeviceBuffer::<f32>::zeroed(0, 64)?;
    let from = Tensor::new(&x, [64])?;
    let mut to = TensorMut::new(&mut z, [64])?;
    let mut graph = sums_graph(TensorMut::new(&mut graph_z, [64])?, from, 1.0)?;
    let mut scoped = |code, looks, context| {
        stream.scope(|scope| {
            let mut z = scope.write(to.reborrow());
            add_launch(scope, &mut z, &scope.read(from), &scope.read(from), 1.0)?;
            fake.refuse(code, looks, context);
            Ok(())
        })
    };

    let waits = fake.waits();
    scoped(CAPTURED, 3, 1)?; // the capture is waited out: looks do not spoil it
    assert_eq!((fake.waits() - waits, fake.count(c"fake_capture_mode")), (2, 0));
    scoped(400, 0, 0)?; // the context does it
    assert_eq!(fake.waits() - waits, 3);
    let failed = scoped(719, 0, 1).unwrap_err(); // a kernel that failed: nothing runs any more
    assert_eq!(failed.status, Status::Launch);
    assert!(failed.message.starts_with("work on a stream failed: "), "{failed}");
    assert_eq!(status(stream.scope(|_| Ok(()))), Some(Status::Launch)); // nothing was started: no need to abort

    let waits = fake.waits();
    fake.refuse(CAPTURED, 2, 1);
    add(&stream, &mut to, &from, &from, 1.0)?;
    fake.refuse(CAPTURED, 2, 1);
    sums(&stream, &mut to, &from, 1.0)?;
    fake.refuse(CAPTURED, 2, 1);
    sums_on(&[&stream, &Stream::new(0)?], &mut to, &from, 1.0)?;
    fake.refuse(CAPTURED, 2, 1);
    stream.scope(|scope| scope.graph(&mut graph).replay())?;
    assert_eq!(fake.waits() - waits, 2 * 4);
    if std::env::var_os("TYPED_ABORTS").is_some() {
        fake.refuse(400, 0, 1);
        let _returned = add(&stream, &mut to, &from, &from, 1.0);
    }
    Ok(())
}

fn elements() -> Result<()> {
    let mut z = Foreign(DeviceBuffer::zeroed(0, 64)?);
    let x = Foreign(DeviceBuffer::from_slice(0, &[BF16::from_f32(1.5); 64])?);
    let from = Tensor::new(&x, [64])?;
    add(&Stream::of_device(0), &mut TensorMut::new(&mut z, [64])?, &from, &from, 1.0)?;
    assert_eq!(x.0.to_vec()?[0].to_f32(), 1.5);
    assert_eq!(F16::from_f32(1.0).0, 0x3c00);
    assert_eq!(F16::from_f32(1e6).to_f32(), f32::INFINITY);
    assert_eq!(BF16::from_f32(f32::MAX).to_f32(), f32::INFINITY);
    assert_eq!(BF16::from_f32(-1e38).0, 0xfe96);
    assert_eq!(F16::from_f32(-0.0).0, 0x8000);
    assert!(F16::from_f32(f32::NAN).to_f32().is_nan());
    Ok(())
}

fn pipelines(fake: Fake) -> Result<()> {
    let (stream, second) = (Stream::new(0)?, Stream::new(0)?);
    let x = DeviceBuffer::from_slice(0, &[1f32; 64])?;
    let mut out = DeviceBuffer::<f32>::zeroed(0, 64)?;
    let from = Tensor::new(&x, [64])?;
    let (launches, waits) = (fake.launches(), fake.waits());
    let mut to = TensorMut::new(&mut out, [64])?;
    sums(&stream, &mut to, &from, 2.0)?;
    assert_eq!((fake.launches() - launches, fake.waits() - waits), (5, 1));
    sums_check(&to, &from, 2.0)?;
    assert_eq!(sums_workspace(&to, &from, 2.0)?, 3 * 256);
    let mut memory = DeviceBuffer::<u8>::zeroed(0, 3 * 256)?;
    let mut room = TensorMut::new(&mut memory, [3 * 256])?;
    sums_with(&stream, &mut room, &mut to, &from, 2.0)?;
    let mut less = TensorMut::new(&mut memory, [3 * 256 - 1])?;
    let refused = sums_with(&stream, &mut less, &mut to, &from, 2.0);
    assert_eq!(refused.err().unwrap().message, "`sums`: expected a workspace of 768 bytes, got 767");
    let mut gaps = TensorMut::strided(&mut memory, 0, [3, 64], [256, 1])?;
    assert_eq!(status(sums_with(&stream, &mut gaps, &mut to, &from, 2.0)), Some(Status::Workspace));
    sums_on(&[&stream, &second], &mut to, &from, 2.0)?;
    assert_eq!(status(sums_on(&[], &mut to, &from, 2.0)), Some(Status::Null));
    stream.scope(|scope| {
        let (x, mut out) = (scope.read(from), scope.write(to.reborrow()));
        let mut room = scope.write(TensorMut::new(&mut memory, [3 * 256])?);
        sums_launch(scope, &mut out, &x, 1.0)?;
        sums_launch_with(scope, &mut room, &mut out, &x, 1.0)?;
        let waits = fake.waits();
        sums_launch_on(scope, &[&second], &mut out, &x, 1.0)?;
        assert_eq!(fake.waits(), waits);
        Ok(())
    })?;
    assert_eq!(fake.launches() - launches, 5 * 6);
    Ok(())
}

fn graphs() -> Result<()> {
    let stream = Stream::new(0)?;
    let (x, other) = (DeviceBuffer::from_slice(0, &[1f32; 64])?, DeviceBuffer::from_slice(0, &[2f32; 99])?);
    let mut out = DeviceBuffer::from_slice(0, &[3f32; 64])?;
    let mut graph = sums_graph(TensorMut::new(&mut out, [64])?, Tensor::new(&x, [64])?, 2.0)?;
    assert_eq!(graph.workspace_bytes(), 3 * 256);
    assert_eq!(format!("{graph:?}"), r#"Graph { pipeline: "sums", nodes: 5, workspace_bytes: 768, .. }"#);
    graph.replay(&stream)?;
    assert_eq!(graph.tensor::<f32>("out")?.to_vec()?, [3.0; 64]);
    assert_eq!(status(graph.tensor::<f64>("out")), Some(Status::Dtype));
    assert_eq!(status(graph.tensor::<f32>("scale")), Some(Status::Null));
    sums_graph_update(&mut graph, None, Some(Tensor::new(&other, [64])?), None)?;
    assert_eq!(graph.tensor::<f32>("x")?.address(), other.address());
    let refused = sums_graph_update(&mut graph, None, Some(Tensor::new(&other, [99])?), None);
    assert_eq!(status(refused), Some(Status::Extent));
    assert_eq!(graph.tensor::<f32>("x")?.extents(), [64]);
    stream.scope(|scope| {
        let mut flying = scope.graph(&mut graph);
        flying.replay()?;
        flying.replay()
    })?;
    graph.replay(&Stream::of_device(0))?;
    assert_eq!(status(graph.replay(&Stream::of_device(1))), Some(Status::Device));
    drop(graph);
    out.to_vec()?;
    Ok(())
}

fn of_others() -> Result<()> {
    let stream = unsafe { Stream::from_raw(0x10000 as *mut c_void, 0) };
    let from = unsafe { Tensor::<f32>::from_raw(1 << 40, &[8], &[1], -1) }?;
    let mut to = unsafe { TensorMut::<f32>::from_raw(1 << 41, &[8], &[1], -1) }?;
    add(&stream, &mut to.reborrow(), &from, &from, 1.0)?;
    let aliased = unsafe { Tensor::<f32>::from_raw((1 << 41) + 28, &[8], &[1], -1) }?;
    assert_eq!(status(add__f32_1024(&stream, &mut to, &from, &aliased, 1.0)), Some(Status::Overlap));
    let backwards = unsafe { Tensor::<f32>::from_raw(1 << 40, &[8], &[-1], -1) }?;
    assert_eq!(status(add__f32_1024(&stream, &mut to, &from, &backwards, 1.0)), Some(Status::Stride));
    load(0)
}

fn main() {
    let path = std::ffi::CString::new(std::env::args().nth(1).unwrap()).unwrap();
    let handle = unsafe { dlopen(path.as_ptr(), 2) };
    unsafe { set_driver(handle) }.unwrap();
    let fake = Fake(handle);
    let mut describe = std::env::args().skip(2);
    let found = unsafe { dlsym(handle, c"fake_describe".as_ptr()) };
    let describing: extern "C" fn(*const c_char, c_int, *const c_int) = unsafe { std::mem::transmute(found) };
    while let Some(symbol) = describe.next() {
        let sizes: Vec<c_int> = describe.next().unwrap().split(',').map(|size| size.parse().unwrap()).collect();
        let symbol = std::ffi::CString::new(symbol).unwrap();
        describing(symbol.as_ptr(), sizes.len() as c_int, sizes.as_ptr());
    }
    many_first_calls().unwrap();
    assert_eq!((fake.launches(), fake.count(c"fake_loads")), (16, 1));
    copies().unwrap();
    shapes().unwrap();
    parts(fake).unwrap();
    waiting(fake).unwrap();
    scopes(fake).unwrap();
    elements().unwrap();
    pipelines(fake).unwrap();
    graphs().unwrap();
    refusals(fake).unwrap();
    of_others().unwrap();
    assert_eq!(fake.live(), 0);
}
