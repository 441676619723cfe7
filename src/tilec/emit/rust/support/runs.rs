// ---- Inner: what a call of a pipeline launches

/// Where slots begin, as what cuMemAlloc gives does.
const SLOT_BYTES: i128 = 256;
/// Where nothing lies, for when there is no workspace yet; no better aligned than any other.
const SOMEWHERE: u64 = (1 << 62) + SLOT_BYTES as u64;

/// A launch that has programs, as far as it is worked out.
struct Step {
    launch: &'static PipelineLaunch,
    ready: Ready,
    cubin: &'static Cubin,
    cells: Vec<u64>,
    maps: Vec<Map>,
}

/// A call of a pipeline that is worked out. `tensors` are those of parameters, then temporaries; `slots` is where each
/// slot of the workspace begins; `step_of` the step of each launch that has programs.
struct Run {
    pipeline: &'static Pipeline,
    device: i32,
    tensors: Vec<Raw>,
    slots: Vec<i128>,
    bytes: i128,
    workspace: u64,
    steps: Vec<Step>,
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

fn temporary_of(temporary: &Temporary, call: &Call<'_>) -> Result<Raw> {
    let name = temporary.name;
    let mut extents = Vec::with_capacity(temporary.extents.len());
    let mut count = 1i128;
    for claim in temporary.extents {
        let mut e = Evaluation::default();
        let extent = (call.kernel.evaluate)(claim.expression, &call.values, &mut e);
        if e.overflow {
            return too_large(claim);
        }
        if !(0..=COUNT_LIMIT).contains(&extent) {
            return failed(Status::Limit, format!("the temporary `{name}` has the extent {extent}"));
        }
        extents.push(extent as i64);
        count = count.saturating_mul(extent.max(1));
    }
    if count > ELEMENT_LIMIT {
        return failed(Status::Limit, format!("the temporary `{name}` has more than 2^60 elements"));
    }
    Raw::new(0, temporary.dtype, call.device, &extents, &packed_strides(&extents))
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
            step_of: Vec::new(),
        }
    }

    /// Everything that the first instance launches whose types and contract fit, on device `on` if the tensors do not
    /// say where; -1: on the current one.
    fn new(set: &'static Pipelines, arguments: &[Argument<'_>], needs_driver: bool, on: i32) -> Result<Run> {
        let mut call = Call::new(set.contracts, arguments, needs_driver);
        let mut reasons = Vec::new();
        // Those of other types are named only if all are.
        for mistyped in [false, true] {
            for pipeline in set.pipelines {
                if call.is_of_types(pipeline.contract) == mistyped {
                    continue;
                }
                match Run::of(pipeline, &mut call, on) {
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
    fn of(pipeline: &'static Pipeline, call: &mut Call<'_>, on: i32) -> Result<Result<Run>> {
        let contract = pipeline.contract;
        call.fit(contract).map_err(|error| blamed(contract, error))?;
        if call.device < 0 {
            call.device = if on < 0 { current_device() } else { on };
        }
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
            run.step_of.push(step.as_ref().map(|_| run.steps.len()));
            run.steps.extend(step);
        }
        Ok(late.map_or(Ok(run), Err))
    }

    /// The extents of the temporaries, and where they lie: slots one after the other, each as large as its largest.
    fn take_temporaries(&mut self, call: &Call<'_>) -> Result<()> {
        let (first, temporaries) = (self.tensors.len(), self.pipeline.temporaries);
        for temporary in temporaries {
            let tensor = temporary_of(temporary, call)?;
            let size = (tensor.span_bytes() + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES;
            self.slots[temporary.slot] = self.slots[temporary.slot].max(size);
            self.tensors.push(tensor);
        }
        for slot in &mut self.slots {
            let size = std::mem::replace(slot, self.bytes);
            self.bytes += size;
        }
        if self.bytes > i128::from(i64::MAX) {
            let bytes = self.bytes;
            return failed(Status::Limit, format!("the workspace has {bytes} bytes, more than there are addresses"));
        }
        for (tensor, temporary) in self.tensors[first..].iter_mut().zip(temporaries) {
            tensor.data = self.workspace.wrapping_add(self.slots[temporary.slot] as u64);
        }
        Ok(())
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
                        return too_large(claim);
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
            Ok(variant) if call.programs > 0 => Ok(Some(call.as_step(launch, variant))),
            Ok(_) => Ok(None),
            Err(error) => {
                *late = Some(refused_launch(self.pipeline.contract, launch, error));
                Ok(None)
            }
        }
    }

    /// Puts the temporaries into a workspace: in the parameters of all steps, too.
    fn place(&mut self, workspace: u64) {
        let parameters = self.pipeline.contract.parameters.len();
        let moved = workspace.wrapping_sub(self.workspace);
        self.workspace = workspace;
        for tensor in &mut self.tensors[parameters..] {
            tensor.data = tensor.data.wrapping_add(moved);
        }
        for step in &mut self.steps {
            let mut cell = 0;
            for (given, parameter) in step.launch.given.iter().zip(step.ready.kernel.parameters) {
                if matches!(given, Given::Tensor(number, _) if *number >= parameters) {
                    step.cells[cell] = step.cells[cell].wrapping_add(moved);
                }
                cell += parameter.extents.len().max(1);
            }
        }
    }

    /// That a workspace that the caller brought will do.
    fn check_workspace(&self, given: &Raw) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let (bytes, got, start) = (self.bytes, given.span_bytes(), i128::from(given.data));
        if given.rank != 1 || given.strides[0] != 1 {
            return failed(Status::Workspace, String::from("expected a workspace of one axis, without gaps"));
        }
        if got < bytes {
            return failed(Status::Workspace, format!("expected a workspace of {bytes} bytes, got {got}"));
        }
        if start == 0 || start % SLOT_BYTES != 0 {
            return failed(
                Status::Workspace,
                format!("expected a workspace at a multiple of {SLOT_BYTES} bytes, got {start:#x}"),
            );
        }
        let end = start + bytes;
        for (parameter, tensor) in self.pipeline.contract.parameters.iter().zip(&self.tensors) {
            let first = i128::from(tensor.data);
            let last = first + tensor.span_bytes();
            if !parameter.extents.is_empty() && first < end && start < last {
                let name = parameter.name;
                let places = format!("bytes {start:#x} to {end:#x} and {first:#x} to {last:#x}");
                return failed(Status::Workspace, format!("the workspace overlaps `{name}`: {places}"));
            }
        }
        let device = device_of("workspace", given)?;
        if device >= 0 && device != self.device {
            let other = self.device;
            return failed(Status::Device, format!("the workspace is on device {device}, the tensors on {other}"));
        }
        Ok(())
    }

    /// That there is code for the device.
    fn check_device(&self) -> Result<()> {
        self.steps.first().map_or(Ok(()), |step| build_for(step.launch.set, self.device).map(|_| ()))
    }

    /// Loads the machine code of all steps, in the context of the device.
    fn load(&mut self, driver: &Driver) -> Result<()> {
        let (contract, device) = (self.pipeline.contract, self.device);
        for Step { launch, ready, cubin, .. } in &mut self.steps {
            let loaded = need_entry(cubin, ready.variant, device);
            loaded
                .and_then(|function| {
                    ready.function = function;
                    ready.fit_clusters(driver, cubin, device)
                })
                .map_err(|error| refused_launch(contract, launch, error))?;
        }
        Ok(())
    }

    /// Makes the tensor maps of all steps, in the context of the device, once the temporaries are placed.
    fn map(&mut self, driver: &Driver) -> Result<()> {
        for Step { launch, ready, maps, .. } in &mut self.steps {
            maps.clear();
            for wanted in ready.variant.maps {
                let Given::Tensor(number, axes) = &launch.given[wanted.parameter] else { continue };
                let tensor = turned(&self.tensors[*number], axes);
                let map = need_map(driver, ready.kernel, wanted, &tensor);
                maps.push(map.map_err(|error| refused_launch(self.pipeline.contract, launch, error))?);
            }
        }
        Ok(())
    }

    /// Memory for the temporaries, in the order of a stream.
    fn take_workspace(&mut self, driver: &Driver, stream: *mut c_void) -> Result<Taken> {
        let mut taken = Taken { address: 0, stream, give: None };
        if self.bytes > 0 {
            let take = needed(driver.memory_take, c"cuMemAllocAsync")?;
            let give = needed(driver.memory_give, c"cuMemFreeAsync")?;
            // SAFETY: a place for an address.
            let code = unsafe { take(&mut taken.address, self.bytes as usize, stream) };
            if code != 0 {
                let (symbol, bytes, why) = (self.pipeline.contract.symbol, self.bytes, cuda_error(code));
                return failed(
                    Status::Memory,
                    format!("`{symbol}` was not launched: no workspace of {bytes} bytes: {why}"),
                );
            }
            taken.give = Some(give);
        }
        self.place(taken.address);
        Ok(taken)
    }

    /// Starts a step, in the context of the device.
    ///
    /// # Safety
    /// The tensors' memory stays as it is borrowed until it is done.
    unsafe fn send(&mut self, driver: &Driver, step: usize, stream: *mut c_void, early: bool) -> Result<()> {
        let contract = self.pipeline.contract;
        let step = &mut self.steps[step];
        let mut slots = step.slots();
        // SAFETY: slots point to the parameters of the kernel, as its manifest lists them.
        let sent = unsafe { step.ready.send(driver, &mut slots, stream, early && step.ready.variant.starts_early) };
        sent.map_err(|error| refused_launch(contract, step.launch, error))
    }
}

/// Memory of a stream, which comes back when this is dropped and the stream has done what it was given.
struct Taken {
    address: u64,
    stream: *mut c_void,
    give: Option<unsafe extern "C" fn(u64, *mut c_void) -> c_int>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(give) = self.give {
            // SAFETY: what was taken on this stream.
            unsafe { give(self.address, self.stream) };
        }
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

/// Starts the steps of a run one after the other; without `own` the workspace is allocated.
///
/// # Safety
/// The stream is one of the driver, and the tensors' memory stays as it is borrowed until all is done.
unsafe fn send_run(run: &mut Run, stream: *mut c_void, own: Option<u64>) -> Result<()> {
    let _entered = enter(run.device)?;
    let driver = &need_driver()?.driver;
    run.load(driver)?;
    let _taken = match own {
        Some(address) => {
            run.place(address);
            None
        }
        None => Some(run.take_workspace(driver, stream)?),
    };
    run.map(driver)?;
    for step in 0..run.steps.len() {
        // SAFETY: as the caller says.
        unsafe { run.send(driver, step, stream, step > 0)? };
    }
    Ok(())
}

/// Checks everything, then starts the launches on a stream, which is one of device `on`; -1: of any.
///
/// # Safety
/// The stream is one of the driver, and the tensors' memory stays as it is borrowed until all is done.
pub(super) unsafe fn run_on(
    set: &'static Pipelines,
    stream: *mut c_void,
    on: i32,
    workspace: Option<&Raw>,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let mut run = Run::new(set, arguments, true, on)?;
    let contract = run.pipeline.contract;
    if let Some(given) = workspace {
        run.check_workspace(given).map_err(|error| blamed(contract, error))?;
    }
    if run.steps.is_empty() {
        return Ok(()); // without programs there is nothing to do, and that is success
    }
    run.check_device()?;
    check_stream(contract.symbol, run.device, stream, on)?;
    let own = workspace.filter(|_| run.bytes > 0).map(|given| given.data);
    // SAFETY: as the caller says.
    unsafe { send_run(&mut run, stream, own) }
}

pub(super) fn check_run(set: &'static Pipelines, arguments: &[Argument<'_>]) -> Result<()> {
    Run::new(set, arguments, false, -1).map(|_| ())
}

/// How many bytes of workspace arguments need.
pub(super) fn workspace_of(set: &'static Pipelines, arguments: &[Argument<'_>]) -> Result<usize> {
    Run::new(set, arguments, false, -1).map(|run| run.bytes as usize)
}

/// Runs a pipeline and waits for the stream.
pub(super) fn run_and_wait(
    set: &'static Pipelines,
    stream: &Stream,
    workspace: Option<&Raw>,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let (handle, device) = stream.parts()?;
    // SAFETY: the tensors are borrowed until this returns, and it waits: also for what was started before a failure.
    let started = unsafe { run_on(set, handle, device, workspace, arguments) };
    settled(started, stream)
}

/// Waits for what was started, if anything may have been.
fn settled(started: Result<()>, stream: &Stream) -> Result<()> {
    match started {
        Err(error) if error.status != Status::Launch && error.status != Status::TensorMap => Err(error),
        started => {
            let waited = stream.wait();
            started.and(waited)
        }
    }
}

/// Starts a pipeline in a scope.
pub(super) fn run_in(
    set: &'static Pipelines,
    scope: &Scope<'_, '_>,
    workspace: Option<&Raw>,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let (handle, device) = scope.stream.parts()?;
    // SAFETY: the tensors are borrowed until the scope has waited for the stream.
    unsafe { run_on(set, handle, device, workspace, arguments) }
}
