// ---- Public: pipelines as CUDA graphs

/// A pipeline as a CUDA graph, with the memory for its temporaries. It borrows the tensors that it was made with, and
/// those that it was given later, for as long as it lives.
pub struct Graph<'a> {
    set: &'static Pipelines,
    given: Vec<Kept>,
    run: Run,
    /// Nothing where there is nothing to launch.
    made: Option<Made>,
    workspace: u64,
    workspace_bytes: i128,
    /// -1: nothing was on one yet.
    device: i32,
    borrowed: PhantomData<&'a ()>,
}

/// In a scope: a graph that is replayed without waiting for each.
#[derive(Debug)]
pub struct InFlightGraph<'scope> {
    graph: &'scope Graph<'scope>,
    stream: &'scope Stream,
    started: &'scope Cell<bool>,
}

/// An argument as a graph keeps it.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    tensor: Option<Raw>,
    value: Value,
}

impl Kept {
    pub(super) fn of(argument: &Argument<'_>) -> Kept {
        Kept { tensor: argument.tensor.copied(), value: argument.value }
    }

    fn argument(&self) -> Argument<'_> {
        Argument { tensor: self.tensor.as_ref(), value: self.value }
    }
}

// SAFETY: the driver takes handles from any thread, one at a time, as `&mut` and the borrow of a scope see to.
unsafe impl Send for Made {}
unsafe impl Sync for Graph<'_> {}

impl Graph<'_> {
    pub(super) fn new(set: &'static Pipelines, arguments: &[Argument<'_>]) -> Result<Self> {
        let run = Run::new(set, arguments, true, -1)?;
        let mut graph = Graph {
            set,
            given: arguments.iter().map(Kept::of).collect(),
            run: Run::empty(run.pipeline, -1),
            made: None,
            workspace: 0,
            workspace_bytes: 0,
            device: -1,
            borrowed: PhantomData,
        };
        graph.fill(run)?;
        Ok(graph)
    }

    /// Gives a graph other arguments; those that are none stay. If that fails, it launches what it did before.
    pub(super) fn change(&mut self, set: &'static Pipelines, changes: &[Option<Kept>]) -> Result<()> {
        if !ptr::eq(self.set, set) {
            let (name, other) = (self.set.contracts.name, set.contracts.name);
            return failed(Status::Graph, format!("the graph is one of `{name}`, not of `{other}`"));
        }
        let both = self.given.iter().zip(changes);
        let given: Vec<Kept> = both.map(|(old, new)| new.unwrap_or(*old)).collect();
        let arguments: Vec<Argument<'_>> = given.iter().map(Kept::argument).collect();
        self.fill(Run::new(set, &arguments, true, self.device)?)?;
        self.given = given;
        Ok(())
    }

    /// Makes the graph launch a run.
    fn fill(&mut self, mut run: Run) -> Result<()> {
        let (symbol, device) = (run.pipeline.contract.symbol, self.device);
        if run.steps.is_empty() {
            let _entered = self.made.is_some().then(|| enter(device)).transpose()?;
            self.made = None;
            self.run = run;
            return Ok(());
        }
        if device >= 0 && device != run.device {
            let other = run.device;
            return failed(
                Status::Device,
                format!("`{symbol}`: the graph is on device {device}, the tensors on device {other}"),
            );
        }
        run.check_device()?;
        let _entered = enter(run.device)?;
        let driver = &need_driver()?.driver;
        let graphing = Graphing::of(driver)?;
        run.load(driver)?;
        let taken = self.take_more(&run, &graphing)?;
        run.place(taken.unwrap_or(self.workspace));
        let changed = run.map(driver).and_then(|()| match &self.made {
            Some(made) if is_same_graph(&self.run, &run) => made.set(&mut run, &mut self.run, &graphing).map(|()| None),
            _ => Made::of(&mut run, driver, &graphing).map(Some),
        });
        match changed {
            Ok(Some(made)) => self.made = Some(made),
            Ok(None) => (),
            Err(error) => {
                free(driver, taken.unwrap_or(0));
                return Err(error);
            }
        }
        if let Some(address) = taken {
            free(driver, self.workspace);
            self.workspace = address;
            self.workspace_bytes = run.bytes;
        }
        self.device = run.device;
        self.run = run;
        Ok(())
    }

    /// Memory for a run that the graph's own workspace does not suffice for; none where it does.
    fn take_more(&self, run: &Run, graphing: &Graphing) -> Result<Option<u64>> {
        if run.bytes <= self.workspace_bytes {
            return Ok(None);
        }
        let mut address = 0;
        // SAFETY: a place for an address.
        let code = unsafe { (graphing.allocate)(&mut address, run.bytes as usize) };
        if code != 0 {
            let (symbol, bytes, why) = (run.pipeline.contract.symbol, run.bytes, cuda_error(code));
            return failed(
                Status::Memory,
                format!("no graph could be made of `{symbol}`: no workspace of {bytes} bytes: {why}"),
            );
        }
        Ok(Some(address))
    }

    /// Launches the graph on a stream, which is one of device `on`, -1: of any, and returns at once. `started` is set
    /// where the stream may have been given it.
    ///
    /// # Safety
    /// What the graph borrows stays so until it is done, and it is launched on one stream at a time.
    pub(super) unsafe fn launch(&self, stream: *mut c_void, on: i32, started: &Cell<bool>) -> Result<()> {
        let Some(made) = &self.made else { return Ok(()) };
        let symbol = self.run.pipeline.contract.symbol;
        check_stream(symbol, self.device, stream, on)?;
        let _entered = enter(self.device)?;
        let driver = &need_driver()?.driver;
        let launch = needed(driver.graph_launch, c"cuGraphLaunch")?;
        if is_captured(driver, stream) {
            return failed(
                Status::Graph,
                format!(
                    "the graph of `{symbol}` is not launched on a stream that is being captured into another graph; \
                     the pipeline is"
                ),
            );
        }
        started.set(true);
        // SAFETY: as the caller says.
        let code = unsafe { launch(made.exec, stream) };
        if code != 0 {
            let why = cuda_error(code);
            return failed(Status::Launch, format!("`{symbol}` was not launched: {why}"));
        }
        Ok(())
    }

    /// Launches the graph on a stream, and returns when it is done.
    pub fn replay(&mut self, stream: &Stream) -> Result<()> {
        let (handle, device) = stream.parts()?;
        let started = Cell::new(false);
        // SAFETY: it is borrowed until this returns, and this waits.
        settled(unsafe { self.launch(handle, device, &started) }, &started, stream)
    }

    /// A tensor that it was given, by the name of the parameter, to read while nothing of the graph is under way.
    ///
    /// Errors: `Null` where there is no such tensor, `Dtype` where it has other elements.
    pub fn tensor<T: Element<Same = T>>(&self, name: &str) -> Result<Tensor<'_, T>> {
        let parameters = self.run.pipeline.contract.parameters;
        let found = parameters.iter().zip(&self.given).find(|(parameter, _)| parameter.name == name);
        let Some(raw) = found.and_then(|(_, given)| given.tensor) else {
            let symbol = self.run.pipeline.contract.symbol;
            return failed(Status::Null, format!("`{symbol}` has no tensor `{name}`"));
        };
        if raw.dtype != T::DTYPE {
            let (wanted, got) = (T::DTYPE.name(), raw.dtype.name());
            return failed(Status::Dtype, format!("`{name}`: expected elements of type `{wanted}`, got `{got}`"));
        }
        Ok(Tensor { raw, borrowed: PhantomData })
    }

    /// The bytes of memory that it holds for temporaries.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes as usize
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Graph");
        fields.field("pipeline", &self.run.pipeline.contract.symbol).field("nodes", &self.run.steps.len());
        fields.field("workspace_bytes", &self.workspace_bytes).finish_non_exhaustive()
    }
}

fn is_captured(driver: &Driver, stream: *mut c_void) -> bool {
    let mut how = 0;
    // SAFETY: a stream of the driver, and a place for what is asked for.
    driver.stream_captured.is_some_and(|captured| unsafe { captured(stream, &mut how) } == 0 && how != 0)
}

fn free(driver: &Driver, address: u64) {
    if let Some(free) = driver.memory_free.filter(|_| address != 0) {
        // SAFETY: what was allocated for a graph of which nothing is under way.
        unsafe { free(address) };
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        if self.made.is_none() && self.workspace == 0 {
            return;
        }
        if let (Ok(_entered), Ok(started)) = (enter(self.device), need_driver()) {
            self.made = None;
            free(&started.driver, self.workspace);
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Lends a graph to the scope: it is replayed in the order of the scope's launches.
    pub fn graph(&'scope self, graph: &'scope mut Graph<'_>) -> InFlightGraph<'scope> {
        InFlightGraph { graph, stream: self.stream, started: &self.started }
    }
}

impl InFlightGraph<'_> {
    /// Launches the graph on the stream of the scope, and returns at once.
    pub fn replay(&mut self) -> Result<()> {
        let (handle, device) = self.stream.parts()?;
        // SAFETY: the graph, and all that it borrows, is borrowed until the scope has waited; replays are on one stream.
        unsafe { self.graph.launch(handle, device, self.started) }
    }
}
