// ---- Inner: what a call of a pipeline launches

/// A launch that has programs, as far as it is worked out.
struct Step {
    launch: &'static PipelineLaunch,
    ready: Ready,
    cubin: &'static Cubin,
    cells: Vec<u64>,
    maps: Vec<Map>,
}

/// A call of a pipeline that is worked out. `tensors` are those of parameters, then temporaries; `slots` is where each
/// slot of the workspace begins; `step_of` the step of each launch that has programs, `idle` those of the others.
struct Run {
    pipeline: &'static Pipeline,
    device: i32,
    tensors: Vec<Raw>,
    slots: Vec<i128>,
    bytes: i128,
    workspace: u64,
    steps: Vec<Step>,
    idle: Vec<Step>,
    step_of: Vec<Option<usize>>,
}

// SAFETY: functions of the driver may be called from any thread.
unsafe impl Send for Run {}

const NO_TENSOR: Raw =
    Raw { data: 0, extents: [0; RANKS], strides: [0; RANKS], rank: 0, dtype: Dtype::Bool, device: -1 };

fn refused_launch(contract: &Kernel, launch: &PipelineLaunch, error: Error) -> Error {
    let message = format!("`{}`: {}: {}", contract.symbol, launch.text, error.message);
    Error { message, ..error }
}

/// A tensor as a launch gets it.
fn turned(tensor: &Raw, axes: &[usize]) -> Raw {
    let mut made = *tensor;
    for (place, &axis) in axes.iter().enumerate() {
        made.extents[place] = tensor.extents[axis];
        made.strides[place] = tensor.strides[axis];
    }
    made
}

impl Run {
    fn empty(pipeline: &'static Pipeline, device: i32) -> Run {
        Run {
            pipeline,
            device,
            tensors: Vec::new(),
            slots: vec![0; pipeline.slots],
            bytes: 0,
            workspace: SOMEWHERE,
            steps: Vec::new(),
            idle: Vec::new(),
            step_of: Vec::new(),
        }
    }

    /// Everything that the first instance launches whose types and contract fit, on device `on` if the tensors do not
    /// say where; -1: on the current one.
    fn new(set: &'static Pipelines, arguments: &[Argument<'_>], needs_driver: bool, on: i32) -> Result<Run> {
        let mut call = Call::new(set.contracts, arguments, needs_driver);
        call.on = on;
        let mut reasons = Vec::new();
        // Those of other types are named only if all are.
        for mistyped in [false, true] {
            for pipeline in set.pipelines {
                if call.is_of_types(pipeline.contract) == mistyped {
                    continue;
                }
                match Run::of(pipeline, &mut call) {
                    Ok(found) => return found,
                    Err(reason) => reasons.push(reason),
                }
            }
            if !reasons.is_empty() {
                break;
            }
        }
        if reasons.len() == 1 {
            return Err(reasons.remove(0));
        }
        let listed: String = reasons.iter().map(|reason| format!("\n  {}", reason.message)).collect();
        let name = set.contracts.name;
        failed(Status::NoInstance, format!("no instance of `{name}` takes these arguments{listed}"))
    }

    /// One instance, for arguments of its types. What shapes are refused for is an error, for another instance may do;
    /// what addresses are refused for is an error inside.
    fn of(pipeline: &'static Pipeline, call: &mut Call<'_>) -> Result<Result<Run>> {
        let contract = pipeline.contract;
        call.fit(contract).map_err(|error| blamed(contract, error))?;
        call.device = call.likely_device();
        let mut run = Run::empty(pipeline, call.device);
        for (parameter, given) in contract.parameters.iter().zip(call.arguments) {
            // Launches then find the device known.
            let device = call.device;
            run.tensors.push(given.tensor.map_or(NO_TENSOR, |raw| Raw { dtype: parameter.dtype, device, ..*raw }));
        }
        run.take_temporaries(call).map_err(|error| blamed(contract, error))?;
        let mut late = call.check_addresses().map_err(|error| blamed(contract, error)).err();
        for launch in pipeline.launches {
            let step =
                run.work_out(launch, call, &mut late).map_err(|error| refused_launch(contract, launch, error))?;
            let has_programs = step.as_ref().is_some_and(|step| step.ready.grid[0] > 0);
            run.step_of.push(has_programs.then_some(run.steps.len()));
            if has_programs { &mut run.steps } else { &mut run.idle }.extend(step);
        }
        Ok(late.map_or(Ok(run), Err))
    }

    /// Works a launch out. What addresses decide is asked for only while nothing was found against it; that is `late`,
    /// and may be overruled by what another launch's shapes are refused for.
    fn work_out(
        &self,
        launch: &'static PipelineLaunch,
        pipeline: &Call<'_>,
        late: &mut Option<Error>,
    ) -> Result<Option<Step>> {
        let raw_of = |given: &Given| match given {
            Given::Tensor(number, axes) => turned(&self.tensors[*number], axes),
            Given::Value(..) => NO_TENSOR,
        };
        let raws: Vec<Raw> = launch.given.iter().map(raw_of).collect();
        let mut arguments = Vec::with_capacity(launch.given.len());
        for (raw, given) in raws.iter().zip(launch.given) {
            arguments.push(match given {
                Given::Tensor(..) => Argument::tensor(raw),
                Given::Value(kind, claim) => {
                    let mut e = Evaluation::default();
                    let whole = (pipeline.kernel.evaluate)(claim.expression, &pipeline.values, &mut e);
                    if e.overflow {
                        return too_large(claim, pipeline);
                    }
                    Argument { tensor: None, value: Value { whole, real: e.real, kind: *kind, bits: 0 } }
                }
            });
        }
        let mut call = Call::new(launch.set, &arguments, pipeline.needs_driver);
        call.guess_build();
        call.take_instance()?;
        if late.is_some() {
            return Ok(None);
        }
        match call.take_addresses() {
            Ok(variant) => Ok(Some(call.as_step(launch, variant))),
            Err(error) => {
                *late = Some(refused_launch(self.pipeline.contract, launch, error));
                Ok(None)
            }
        }
    }

    /// That there is code for the device.
    fn check_device(&self) -> Result<()> {
        self.steps.first().map_or(Ok(()), |step| build_for(step.launch.set, self.device).map(|_| ()))
    }
}

impl Step {
    fn slots(&mut self) -> Vec<*mut c_void> {
        slots_of(&mut self.cells, &mut self.maps)
    }
}

impl Call<'_> {
    fn as_step(&self, launch: &'static PipelineLaunch, variant: &'static Variant) -> Step {
        let ready = Ready { kernel: self.kernel, variant, function: ptr::null_mut(), grid: self.grid };
        Step { launch, ready, cubin: self.build.cubin, cells: self.packed(), maps: Vec::new() }
    }
}
