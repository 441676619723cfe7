//! As ../c and ../cpp, without `unsafe`: what would race, or outlive its memory, does not compile.
mod axpy {
    include!(concat!(env!("OUT_DIR"), "/axpy.rs"));
}
mod unit {
    include!(concat!(env!("OUT_DIR"), "/unit.rs"));
}

use axpy::Status;

fn launch() -> axpy::Result<()> {
    use axpy::{DeviceBuffer, Stream, Tensor, TensorMut};
    let numbers: Vec<f32> = (0u16..1000).map(f32::from).collect();
    let x = DeviceBuffer::from_slice(0, &numbers)?;
    let mut y = DeviceBuffer::from_slice(0, &[1f32; 1000])?;
    let read = Tensor::new(&x, [1000])?;

    // The contract alone.
    let short = Tensor::new(&x, [999])?;
    if let Err(error) = axpy::axpy_check(&TensorMut::new(&mut y, [1000])?, &short, 2.0) {
        println!("a shorter x: {error}");
    }

    // One launch, which is waited for.
    let stream = Stream::new(0)?;
    axpy::axpy(&stream, &mut TensorMut::new(&mut y, [1000])?, &read, 2.0)?;

    // Several, which are waited for together: y is borrowed until all of them are done.
    stream.scope(|scope| {
        let (mut y, x) = (
            scope.write(TensorMut::new(&mut y, [1000])?),
            scope.read(read),
        );
        axpy::axpy_launch(scope, &mut y, &x, 3.0)?;
        axpy::axpy_launch(scope, &mut y, &x, -4.0)
    })?;
    println!("the sum of y = {}", y.to_vec()?.iter().sum::<f32>());
    Ok(())
}

/// A pipeline of three launches: at once, then as a graph, which takes another vector.
fn pipeline() -> unit::Result<()> {
    use unit::{DeviceBuffer, Stream, Tensor, TensorMut};
    let first = DeviceBuffer::from_slice(0, &[3f32; 5000])?;
    let second = DeviceBuffer::from_slice(0, &[0.5f32; 5000])?;
    let mut y = DeviceBuffer::<f32>::zeroed(0, 5000)?;
    let length = |y: &[f32]| y.iter().map(|one| one * one).sum::<f32>().sqrt();
    let (stream, x) = (Stream::new(0)?, Tensor::new(&first, [5000])?);
    unit::unit(&stream, &mut TensorMut::new(&mut y, [5000])?, &x)?;
    println!("at once: {:.4}", length(&y.to_vec()?));

    // The graph has y for as long as it lives, and is asked for it.
    let mut graph = unit::unit_graph(TensorMut::new(&mut y, [5000])?, x)?;
    graph.replay(&stream)?;
    println!("as a graph: {:.4}", length(&graph.tensor("y")?.to_vec()?));
    unit::unit_graph_update(&mut graph, None, Some(Tensor::new(&second, [5000])?))?;
    graph.replay(&stream)?;
    println!(
        "of another vector: {:.4}",
        length(&graph.tensor("y")?.to_vec()?)
    );
    Ok(())
}

fn main() {
    match launch() {
        Ok(()) => pipeline().unwrap_or_else(|error| panic!("{error}")),
        Err(error) if matches!(error.status, Status::NoDriver | Status::NoDevice) => {
            println!("there is no GPU here")
        }
        Err(error) => panic!("{error}"),
    }
}
