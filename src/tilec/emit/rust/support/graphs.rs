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
pub struct InFlightGraph<'scope> {
    graph: &'scope Graph<'scope>,
    stream: &'scope Stream,
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

/// What the driver has of a graph; `nodes` are by step.
struct Made {
    graph: *mut c_void,
    exec: *mut c_void,
    nodes: Vec<*mut c_void>,
}

// SAFETY: the driver takes handles from any thread, one at a time, as `&mut` and the borrow of a scope see to.
unsafe impl Send for Made {}
unsafe impl Sync for InFlightGraph<'_> {}
unsafe impl Sync for Graph<'_> {}

/// The functions for graphs; a driver that lacks one makes none.
struct Graphing {
    create: unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int,
    add: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const *mut c_void, usize, *const Node) -> c_int,
    set_attribute: unsafe extern "C" fn(*mut c_void, c_int, *const [u32; 16]) -> c_int,
    instantiate: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, u64) -> c_int,
    set: unsafe extern "C" fn(*mut c_void, *mut c_void, *const Node) -> c_int,
    allocate: unsafe extern "C" fn(*mut u64, usize) -> c_int,
}

impl Graphing {
    fn of(driver: &Driver) -> Result<Graphing> {
        needed(driver.graph_destroy, c"cuGraphDestroy")?;
        needed(driver.graph_forget, c"cuGraphExecDestroy")?;
        needed(driver.graph_launch, c"cuGraphLaunch")?;
        needed(driver.memory_free, c"cuMemFree_v2")?;
        Ok(Graphing {
            create: needed(driver.graph_create, c"cuGraphCreate")?,
            add: needed(driver.graph_add_kernel, c"cuGraphAddKernelNode_v2")?,
            set_attribute: needed(driver.graph_set_attribute, c"cuGraphKernelNodeSetAttribute")?,
            instantiate: needed(driver.graph_instantiate, c"cuGraphInstantiateWithFlags")?,
            set: needed(driver.graph_set_kernel, c"cuGraphExecKernelNodeSetParams_v2")?,
            allocate: needed(driver.memory_allocate, c"cuMemAlloc_v2")?,
        })
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let Ok(started) = need_driver() else { return };
        // SAFETY: what this value made, of which nothing is under way: who replays a graph waits.
        unsafe {
            if let Some(forget) = started.driver.graph_forget.filter(|_| !self.exec.is_null()) {
                forget(self.exec);
            }
            if let Some(destroy) = started.driver.graph_destroy.filter(|_| !self.graph.is_null()) {
                destroy(self.graph);
            }
        }
    }
}

impl Step {
    /// Whether a node of one is a node of the other.
    fn does_as(&self, other: &Step) -> bool {
        self.ready.function == other.ready.function
            && self.ready.grid == other.ready.grid
            && self.cells == other.cells
            && self.maps == other.maps
    }

    /// Calls with the step as the driver is told of it as a node.
    fn as_node(&mut self, call: impl FnOnce(&Node) -> c_int) -> c_int {
        let mut slots = self.slots();
        let Ready { variant, function, grid, .. } = self.ready;
        call(&Node {
            function: ptr::null_mut(),
            grid,
            block: [variant.threads, 1, 1],
            shared_bytes: variant.dynamic_bytes,
            slots: slots.as_mut_ptr(),
            extra: ptr::null_mut(),
            kernel: function,
            context: ptr::null_mut(),
        })
    }
}

fn refused_graph<T>(run: &Run, code: c_int) -> Result<T> {
    let (symbol, why) = (run.pipeline.contract.symbol, cuda_error(code));
    failed(Status::Graph, format!("no graph could be made of `{symbol}`: {why}"))
}

impl Made {
    /// Builds the graph of a run whose temporaries are placed; in the context of the device.
    fn of(run: &mut Run, driver: &Driver, graphing: &Graphing) -> Result<Made> {
        let order = Order::of(run);
        let mut made = Made { graph: ptr::null_mut(), exec: ptr::null_mut(), nodes: Vec::new() };
        // SAFETY: a place for the graph.
        let mut code = unsafe { (graphing.create)(&mut made.graph, 0) };
        for step in 0..run.steps.len() {
            if code == 0 {
                code = made.add(&mut run.steps[step], &order.before[step], driver, graphing);
            }
        }
        if code == 0 {
            // SAFETY: a place for what is made of a whole graph.
            code = unsafe { (graphing.instantiate)(&mut made.exec, made.graph, 0) };
        }
        if code != 0 { refused_graph(run, code) } else { Ok(made) }
    }

    /// Adds a step to a graph that has those before it.
    fn add(&mut self, step: &mut Step, before: &Row, driver: &Driver, graphing: &Graphing) -> c_int {
        let variant = step.ready.variant;
        let mut first: Vec<*mut c_void> = before.steps().map(|one| self.nodes[one]).collect();
        // The one step that a step may be started early after.
        let edges = driver.graph_add_edges.filter(|_| variant.starts_early && first.len() == 1);
        let early_after = edges.and_then(|_| first.pop());
        let mut node = ptr::null_mut();
        // SAFETY: nodes of this graph, and a whole description of the new one, which the driver copies.
        let mut code = step
            .as_node(|wanted| unsafe { (graphing.add)(&mut node, self.graph, first.as_ptr(), first.len(), wanted) });
        if let (0, Some(add), Some(from)) = (code, edges, early_after) {
            let edge = Edge {
                from_port: CU_PROGRAMMATIC_PORT,
                to_port: 0,
                kind: CU_PROGRAMMATIC_DEPENDENCY,
                reserved: [0; 5],
            };
            // SAFETY: two nodes of this graph.
            code = unsafe { add(self.graph, &from, &node, &edge, 1) };
        }
        if code == 0 && variant.cluster != [1, 1, 1] {
            let LaunchAttribute { id, value, .. } = attribute(CU_CLUSTER_DIMENSION, &variant.cluster);
            // SAFETY: a node of this graph, and a whole value.
            code = unsafe { (graphing.set_attribute)(node, id, &value) };
        }
        self.nodes.push(node);
        code
    }

    /// Gives the nodes the parameters of a run that has the same; if the driver refuses one, those that they had.
    fn set(&self, run: &mut Run, old: &mut Run, graphing: &Graphing) -> Result<()> {
        // SAFETY: a node of the graph that this was made of, and a whole description.
        let set = |run: &mut Run, step: usize| {
            run.steps[step].as_node(|wanted| unsafe { (graphing.set)(self.exec, self.nodes[step], wanted) })
        };
        let changed: Vec<usize> = (0..run.steps.len()).filter(|&i| !run.steps[i].does_as(&old.steps[i])).collect();
        for (done, &step) in changed.iter().enumerate() {
            let code = set(run, step);
            if code != 0 {
                for &one in &changed[..done] {
                    set(old, one);
                }
                return refused_graph(run, code);
            }
        }
        Ok(())
    }
}

/// Whether a graph of one run becomes that of another by other parameters.
fn is_same_graph(one: &Run, other: &Run) -> bool {
    let same_step = |(one, other): (&Step, &Step)| {
        let (variant, other_variant) = (one.ready.variant, other.ready.variant);
        ptr::eq(one.launch, other.launch)
            && variant.cluster == other_variant.cluster
            && variant.starts_early == other_variant.starts_early
    };
    ptr::eq(one.pipeline, other.pipeline)
        && one.steps.len() == other.steps.len()
        && one.steps.iter().zip(&other.steps).all(same_step)
}

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

    /// Launches the graph on a stream, which is one of device `on`, -1: of any, and returns at once.
    ///
    /// # Safety
    /// What the graph borrows stays so until it is done, and it is launched on one stream at a time.
    pub(super) unsafe fn launch(&self, stream: *mut c_void, on: i32) -> Result<()> {
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
        // SAFETY: it is borrowed until this returns, and this waits.
        unsafe { self.launch(handle, device)? };
        stream.wait()
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
    pub fn graph(&self, graph: &'scope mut Graph<'_>) -> InFlightGraph<'scope> {
        let stream = self.stream;
        InFlightGraph { graph, stream }
    }
}

impl InFlightGraph<'_> {
    /// Launches the graph on the stream of the scope, and returns at once.
    pub fn replay(&mut self) -> Result<()> {
        let (handle, device) = self.stream.parts()?;
        // SAFETY: the graph, and all that it borrows, is borrowed until the scope has waited; replays are on one stream.
        unsafe { self.graph.launch(handle, device) }
    }
}
