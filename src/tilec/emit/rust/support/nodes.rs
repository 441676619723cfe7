// ---- Inner: the nodes of graphs

/// What the driver has of a graph; `nodes` are by step.
struct Made {
    graph: *mut c_void,
    exec: *mut c_void,
    nodes: Vec<*mut c_void>,
}

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
