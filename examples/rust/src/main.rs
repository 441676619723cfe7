//! As ../cpp, without `unsafe`: what would race, or outlive its memory, does not compile.
mod axpy {
    include!(concat!(env!("OUT_DIR"), "/axpy.rs"));
}

use axpy::{DeviceBuffer, Status, Stream, Tensor, TensorMut};

fn launch() -> axpy::Result<()> {
    let numbers: Vec<f32> = (0u16..1000).map(f32::from).collect();
    let x = DeviceBuffer::from_slice(0, &numbers)?;
    let mut y = DeviceBuffer::from_slice(0, &[1f32; 1000])?;
    let read = Tensor::new(&x, [1000])?;

    // The contract alone, which needs the memory to be there, and nothing else.
    let short = Tensor::new(&x, [999])?;
    if let Err(error) = axpy::axpy_check(&TensorMut::new(&mut y, [1000])?, &short, 2.0) {
        println!("a shorter x: {error}");
    }

    // One launch, which is waited for.
    let stream = Stream::new(0)?;
    axpy::axpy(&stream, &mut TensorMut::new(&mut y, [1000])?, &read, 2.0)?;

    // Several, which are waited for together: y is borrowed until all of them are done.
    stream.scope(|scope| {
        let (mut y, x) = (scope.write(TensorMut::new(&mut y, [1000])?), scope.read(read));
        axpy::axpy_launch(scope, &mut y, &x, 3.0)?;
        axpy::axpy_launch(scope, &mut y, &x, -4.0)
    })?;
    println!("the sum of y = {}", y.to_vec()?.iter().sum::<f32>());
    Ok(())
}

fn main() {
    match launch() {
        Ok(()) => (),
        Err(error) if matches!(error.status, Status::NoDriver | Status::NoDevice) => println!("there is no GPU here"),
        Err(error) => panic!("{error}"),
    }
}
