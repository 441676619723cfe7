// ---- Inner: pipelines on one stream

impl Run {
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

/// Starts the steps of a run one after the other; without `own` the workspace is allocated.
///
/// # Safety
/// The stream is one of the driver, and the tensors' memory stays as it is borrowed until all is done.
unsafe fn send_run(run: &mut Run, stream: *mut c_void, own: Option<u64>, started: &Cell<bool>) -> Result<()> {
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
    started.set(true);
    for step in 0..run.steps.len() {
        // SAFETY: as the caller says.
        unsafe { run.send(driver, step, stream, step > 0)? };
    }
    Ok(())
}

/// Checks everything, then starts the launches on a stream, which is one of device `on`; -1: of any. `started` is set
/// where the stream may have been given some.
///
/// # Safety
/// The stream is one of the driver, and the tensors' memory stays as it is borrowed until all is done.
pub(super) unsafe fn run_on(
    set: &'static Pipelines,
    stream: *mut c_void,
    on: i32,
    workspace: Option<&Raw>,
    arguments: &[Argument<'_>],
    started: &Cell<bool>,
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
    unsafe { send_run(&mut run, stream, own, started) }
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
    let started = Cell::new(false);
    // SAFETY: the tensors are borrowed until this returns, and it waits: also for what was started before a failure.
    let run = unsafe { run_on(set, handle, device, workspace, arguments, &started) };
    settled(run, &started, stream)
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
    unsafe { run_on(set, handle, device, workspace, arguments, &scope.started) }
}
