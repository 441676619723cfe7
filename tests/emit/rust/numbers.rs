// Calls of kernels whose instances take numbers of several kinds: the types say which instances are meant.
#![deny(warnings)]

#[path = "sample.rs"]
mod sample;

use sample::*;

fn one<T: Element<Same = T>>(place: u64) -> TensorMut<'static, T> {
    unsafe { TensorMut::from_raw(place << 20, &[100], &[1], 0) }.unwrap()
}

/// Callers may leave the type of the number to theirs.
fn filled_with<N: Number>(number: N) -> &'static str
where
    (f32, N): fill_elements,
{
    fill_plan(&one::<f32>(1), number).unwrap().kernel
}

fn main() {
    let (f, i, b) = (one::<f32>(1), one::<i8>(2), one::<BF16>(3));
    let g = unsafe { Tensor::<f32>::from_raw(4 << 20, &[100], &[1], 0) }.unwrap();
    let run = |plan: PipelinePlan| plan.launches[0].kernel;
    let found = [
        fill_plan(&f, 1.0f32).unwrap().kernel,
        fill_plan(&f, 1e6).unwrap().kernel,
        fill_plan(&f, 7).unwrap().kernel,
        filled_with(7u8),
        filled_with(true),
        fill_plan(&i, 1.0).unwrap().kernel,
        fill_plan(&i, 7usize).unwrap().kernel,
        fill_plan(&b, 7u64).unwrap().kernel,
        run(filled_plan(&f, &g, 1.0).unwrap()),
        run(filled_plan(&f, &g, 7).unwrap()),
    ];
    println!("{}", found.join(" "));
    fill_check(&f, f32::NAN).unwrap();
}

/// Every function takes them.
#[allow(dead_code)]
fn on_a_stream(stream: &Stream, z: &mut TensorMut<'_, f32>, x: &Tensor<'_, f32>) -> Result<()> {
    fill(stream, z, 7)?;
    filled(stream, z, x, 1.0)?;
    filled_on(&[stream, stream], z, x, 7)?;
    stream.scope(|scope| fill_launch(scope, &mut scope.write(z.reborrow()), true))?;
    let mut graph = filled_graph(z.reborrow(), x.clone(), 7)?;
    filled_graph_update(&mut graph, None, None, Some(8))?;
    graph.replay(stream)
}
