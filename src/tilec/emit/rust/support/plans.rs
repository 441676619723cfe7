// ---- Public: plans of pipelines

/// What a pipeline would launch: each of its launches in order, of which those that have nothing to do have a grid of 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelinePlan {
    pub pipeline: &'static str,
    pub launches: Vec<Plan>,
    pub workspace_bytes: usize,
    pub device: i32,
}

pub(super) fn plan_of_run(set: &'static Pipelines, arguments: &[Argument<'_>]) -> Result<PipelinePlan> {
    let run = Run::new(set, arguments, true, -1)?;
    let mut idle = run.idle.iter();
    let steps = run.step_of.iter().filter_map(|step| step.map_or_else(|| idle.next(), |number| run.steps.get(number)));
    Ok(PipelinePlan {
        pipeline: run.pipeline.contract.symbol,
        launches: steps.map(|step| step.ready.plan(step.cubin, run.device)).collect(),
        workspace_bytes: run.bytes as usize,
        device: run.device,
    })
}
