// Each line that ends in a number of an error is refused by the compiler, for that reason.
use sample::*;

type Buffer = DeviceBuffer<f32>;

pub fn read_and_written_by_one_launch(stream: &Stream, z: &mut TensorMut<'_, f32>) -> Result<()> {
    add(stream, z, &z.as_tensor(), &z.as_tensor(), 1.0) //~ E0502
}

pub fn written_by_two_tensors(stream: &Stream, buffer: &mut Buffer, x: &Tensor<'_, f32>) -> Result<()> {
    let mut one = TensorMut::new(buffer, [8])?;
    let mut other = TensorMut::new(buffer, [8])?; //~ E0499
    add(stream, &mut one, x, x, 1.0)?;
    add(stream, &mut other, x, x, 1.0)
}

pub fn read_by_the_host_while_it_may_be_written(buffer: &mut Buffer) -> Result<Vec<f32>> {
    let mut tensor = TensorMut::new(buffer, [8])?;
    let read = buffer.to_vec(); //~ E0502
    let _ = tensor.reborrow();
    read
}

pub fn freed_while_borrowed(stream: &Stream, buffer: Buffer, z: &mut TensorMut<'_, f32>) -> Result<()> {
    let x = Tensor::new(&buffer, [8])?;
    drop(buffer); //~ E0505
    add(stream, z, &x, &x, 1.0)
}

pub fn freed_in_flight(stream: &Stream, buffer: Buffer, x: Tensor<'_, f32>) -> Result<()> {
    let mut buffer = buffer;
    stream.scope(|scope| {
        let (mut z, x) = (scope.write(TensorMut::new(&mut buffer, [8])?), scope.read(x)); //~ E0597
        add_launch(scope, &mut z, &x, &x, 1.0)?;
        drop(buffer); //~ E0505
        Ok(())
    })
}

pub fn read_by_the_host_in_flight(stream: &Stream, buffer: &mut Buffer, x: Tensor<'_, f32>) -> Result<()> {
    stream.scope(|scope| {
        let (mut z, x) = (scope.write(TensorMut::new(buffer, [8])?), scope.read(x));
        add_launch(scope, &mut z, &x, &x, 1.0)?;
        buffer.to_vec()?; //~ E0502
        Ok(())
    })
}

pub fn made_and_dropped_within_a_scope(stream: &Stream, x: Tensor<'_, f32>) -> Result<()> {
    stream.scope(|scope| {
        let mut buffer = Buffer::zeroed(0, 8)?;
        let mut z = scope.write(TensorMut::new(&mut buffer, [8])?); //~ E0597
        add_launch(scope, &mut z, &scope.read(x), &scope.read(x), 1.0)
    })
}

pub fn in_flight_on_two_streams(
    first: &Stream,
    second: &Stream,
    mut z: TensorMut<'_, f32>,
    x: Tensor<'_, f32>,
) -> Result<()> {
    first.scope(|one| {
        let mut z = one.write(z.reborrow());
        add_launch(one, &mut z, &one.read(x), &one.read(x), 1.0)?;
        second.scope(|other| {
            add_launch(other, &mut z, &other.read(x), &other.read(x), 1.0) //~ E0521
        })
    })
}

pub fn read_on_another_stream_than_written(
    first: &Stream,
    second: &Stream,
    mut z: TensorMut<'_, f32>,
    mut y: TensorMut<'_, f32>,
    x: Tensor<'_, f32>,
) -> Result<()> {
    first.scope(|one| {
        let mut z = one.write(z.reborrow());
        add_launch(one, &mut z, &one.read(x), &one.read(x), 1.0)?;
        second.scope(|other| {
            let mut y = other.write(y.reborrow());
            add_launch(other, &mut y, &z.as_read(), &other.read(x), 1.0) //~ E0521
        })
    })
}

pub fn waited_for_while_in_flight(
    first: &Stream,
    second: &Stream,
    mut z: TensorMut<'_, f32>,
    x: Tensor<'_, f32>,
) -> Result<()> {
    first.scope(|one| {
        let mut flying = one.write(z.reborrow());
        add_launch(one, &mut flying, &one.read(x), &one.read(x), 1.0)?;
        add(second, &mut z, &x, &x, 1.0) //~ E0499
    })
}

pub fn kept_after_the_scope<'a>(stream: &'a Stream, x: Tensor<'a, f32>) -> Result<()> {
    let mut kept = None;
    stream.scope(|scope| {
        kept = Some(scope.read(x)); //~ E0521
        Ok(())
    })
}

pub fn read_by_the_host_while_a_graph_writes_it(stream: &Stream, buffer: &mut Buffer, x: Tensor<'_, f32>) -> Result<()> {
    let mut graph = sums_graph(TensorMut::new(buffer, [8])?, x, 1.0)?;
    graph.replay(stream)?;
    buffer.to_vec()?; //~ E0502
    graph.replay(stream)
}

pub fn freed_while_a_graph_has_it(stream: &Stream, z: TensorMut<'_, f32>, buffer: Buffer) -> Result<()> {
    let mut graph = sums_graph(z, Tensor::new(&buffer, [8])?, 1.0)?;
    drop(buffer); //~ E0505
    graph.replay(stream)
}

pub fn written_while_it_is_read(stream: &Stream, graph: &mut Graph<'_>) -> Result<Vec<f32>> {
    let out = graph.tensor("out")?;
    graph.replay(stream)?; //~ E0502
    out.to_vec()
}

pub fn changed_in_flight<'a>(stream: &Stream, graph: &mut Graph<'a>, x: Tensor<'a, f32>) -> Result<()> {
    stream.scope(|scope| {
        scope.graph(graph).replay()?;
        sums_graph_update(graph, None, Some(x), None) //~ E0499
    })
}

pub fn changed_to_what_lives_shorter(stream: &Stream, graph: &mut Graph<'_>) -> Result<()> {
    let buffer = Buffer::zeroed(0, 8)?;
    sums_graph_update(graph, None, Some(Tensor::new(&buffer, [8])?), None)?; //~ E0597
    graph.replay(stream)
}

pub fn written_whole_while_in_parts(stream: &Stream, buffer: &mut Buffer, x: &Tensor<'_, f32>) -> Result<()> {
    let (mut left, _) = buffer.split_at_mut(8)?;
    let mut whole = TensorMut::new(buffer, [8])?; //~ E0499
    add(stream, &mut TensorMut::new(&mut left, [8])?, x, x, 1.0)?;
    add(stream, &mut whole, x, x, 1.0)
}

pub fn started_on_another_thread(stream: &Stream, mut z: TensorMut<'_, f32>, x: Tensor<'_, f32>) -> Result<()> {
    stream.scope(|scope| {
        let (mut z, x) = (scope.write(z.reborrow()), scope.read(x));
        std::thread::scope(|threads| {
            threads.spawn(|| add_launch(scope, &mut z, &x, &x, 1.0)).join().unwrap() //~ E0277
        })
    })
}
