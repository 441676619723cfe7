
/* ---- Inner: as a graph --------------------------------------------------------------------------------------------- */

/* What the driver has of a graph. */
typedef struct tilec_made {
    void *graph, *exec;
    void **nodes; /* by step */
} tilec_made;

struct tilec_graph {
    pthread_mutex_t lock; /* the driver takes one call of a graph at a time */
    tilec_run run;        /* what it launches; its pointers to arguments are not looked at */
    tilec_made made;      /* nothing where there is nothing to launch */
    uint64_t workspace;
    size_t workspace_bytes;
    int32_t device; /* -1: nothing was on one yet */
    int was_launched;
};

TILEC_INNER tilec_status tilec_need_graphs(void)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    if (tilec_is_missing(driver->graph_create && driver->graph_destroy, "cuGraphCreate") ||
        tilec_is_missing(driver->graph_add_kernel != NULL, "cuGraphAddKernelNode_v2") ||
        tilec_is_missing(driver->graph_set_attribute != NULL, "cuGraphKernelNodeSetAttribute") ||
        tilec_is_missing(driver->graph_instantiate && driver->graph_forget, "cuGraphInstantiateWithFlags") ||
        tilec_is_missing(driver->graph_set_kernel != NULL, "cuGraphExecKernelNodeSetParams_v2") ||
        tilec_is_missing(driver->graph_launch != NULL, "cuGraphLaunch") ||
        tilec_is_missing(driver->context_wait != NULL, "cuCtxSynchronize") ||
        tilec_is_missing(driver->memory_allocate && driver->memory_free, "cuMemAlloc_v2"))
        return TILEC_ERROR_NO_DRIVER;
    return TILEC_SUCCESS;
}

TILEC_INNER void tilec_give_back(tilec_made *made)
{
    if (made->exec)
        tilec_state_1.driver.graph_forget(made->exec);
    if (made->graph)
        tilec_state_1.driver.graph_destroy(made->graph);
    free(made->nodes);
    memset(made, 0, sizeof *made);
}

TILEC_INNER tilec_node tilec_node_of(const tilec_ready *ready)
{
    tilec_node node;
    memset(&node, 0, sizeof node);
    memcpy(node.grid, ready->grid, sizeof node.grid);
    node.block[0] = (uint32_t)ready->variant->threads;
    node.block[1] = node.block[2] = 1;
    node.shared_bytes = (uint32_t)ready->variant->dynamic_smem_bytes;
    node.slots = ready->slots;
    node.kernel = ready->entry->function;
    return node;
}

/* The one step that a step may be started early after; -1 if it waits for all before it to be done. */
TILEC_INNER int32_t tilec_early_after(const tilec_run *run, int32_t step)
{
    const uint64_t *row = tilec_before(run, step);
    int32_t one, found = -1;
    if (!run->steps[step].ready.variant->starts_early || !tilec_state_1.driver.graph_add_edges)
        return -1;
    for (one = 0; one < step; one++)
        if (tilec_has_bit(row, one)) {
            if (found >= 0)
                return -1;
            found = one;
        }
    return found;
}

/* Adds a step to a graph that has those before it. `before` has room for as many nodes as there are steps. */
TILEC_INNER int tilec_add_step(const tilec_run *run, const tilec_made *made, int32_t step, void **before)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    const tilec_variant *variant = run->steps[step].ready.variant;
    tilec_node node = tilec_node_of(&run->steps[step].ready);
    int32_t early_after = tilec_early_after(run, step), one;
    size_t count = 0;
    int code;
    for (one = 0; one < step; one++)
        if (one != early_after && tilec_has_bit(tilec_before(run, step), one))
            before[count++] = made->nodes[one];
    code = driver->graph_add_kernel(&made->nodes[step], made->graph, before, count, &node);
    if (!code && early_after >= 0) {
        tilec_edge edge;
        memset(&edge, 0, sizeof edge);
        edge.from_port = TILEC_CU_PROGRAMMATIC_PORT;
        edge.type = TILEC_CU_PROGRAMMATIC_DEPENDENCY;
        code = driver->graph_add_edges(made->graph, &made->nodes[early_after], &made->nodes[step], &edge, 1);
    }
    if (!code && tilec_is_clustered(variant)) {
        tilec_attribute_value value;
        memset(&value, 0, sizeof value);
        memcpy(value.cluster, variant->cluster, sizeof value.cluster);
        code = driver->graph_set_attribute(made->nodes[step], TILEC_CU_CLUSTER_DIMENSION, &value);
    }
    return code;
}

TILEC_INNER tilec_status tilec_refused_graph(const tilec_run *run, int code)
{
    return tilec_fail(TILEC_ERROR_GRAPH, "no graph could be made of `%s`: %s", run->pipeline->contract->symbol,
                      tilec_cuda_error(code));
}

/* Builds the graph of a run whose temporaries are placed; in the context of the device. */
TILEC_INNER tilec_status tilec_make_graph(const tilec_run *run, tilec_made *made)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    void **before = (void **)calloc((size_t)run->step_count, sizeof *before);
    int32_t i;
    int code;
    memset(made, 0, sizeof *made);
    made->nodes = (void **)calloc((size_t)run->step_count, sizeof *made->nodes);
    if (!before || !made->nodes) {
        free(before);
        tilec_give_back(made);
        return tilec_no_memory(run, (size_t)run->step_count * sizeof *before);
    }
    code = driver->graph_create(&made->graph, 0);
    if (code)
        made->graph = NULL;
    for (i = 0; i < run->step_count && !code; i++)
        code = tilec_add_step(run, made, i, before);
    if (!code) {
        code = driver->graph_instantiate(&made->exec, made->graph, 0);
        if (code)
            made->exec = NULL;
    }
    free(before);
    if (!code)
        return TILEC_SUCCESS;
    tilec_give_back(made);
    return tilec_refused_graph(run, code);
}

/* Whether a graph of one run becomes that of another by other parameters. */
TILEC_INNER int tilec_is_same_graph(const tilec_run *one, const tilec_run *other)
{
    int32_t i;
    if (one->pipeline != other->pipeline || one->step_count != other->step_count)
        return 0;
    for (i = 0; i < one->step_count; i++) {
        const tilec_variant *variant = one->steps[i].ready.variant, *other_variant = other->steps[i].ready.variant;
        if (one->steps[i].launch != other->steps[i].launch ||
            memcmp(variant->cluster, other_variant->cluster, sizeof variant->cluster) ||
            variant->starts_early != other_variant->starts_early)
            return 0;
    }
    return 1;
}

/* Gives all nodes the parameters of a run that has the same; if the driver refuses one, those that they had. */
TILEC_INNER tilec_status tilec_set_nodes(const tilec_graph *graph, const tilec_run *run)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int32_t i;
    for (i = 0; i < run->step_count; i++) {
        tilec_node node = tilec_node_of(&run->steps[i].ready);
        int code = driver->graph_set_kernel(graph->made.exec, graph->made.nodes[i], &node);
        if (!code)
            continue;
        while (i-- > 0) {
            node = tilec_node_of(&graph->run.steps[i].ready);
            driver->graph_set_kernel(graph->made.exec, graph->made.nodes[i], &node);
        }
        return tilec_refused_graph(run, code);
    }
    return TILEC_SUCCESS;
}

/* Memory for a run that the graph's own workspace does not suffice for; 0 where it does. */
TILEC_INNER tilec_status tilec_take_more(const tilec_graph *graph, const tilec_run *run, uint64_t *taken)
{
    int code;
    *taken = 0;
    if (run->bytes <= (tilec_wide)graph->workspace_bytes)
        return TILEC_SUCCESS;
    code = tilec_state_1.driver.memory_allocate(taken, (size_t)run->bytes);
    if (!code)
        return TILEC_SUCCESS;
    *taken = 0;
    return tilec_fail(TILEC_ERROR_MEMORY, "no graph could be made of `%s`: no workspace of %s bytes: %s",
                      run->pipeline->contract->symbol, tilec_number(run->bytes, 10).text, tilec_cuda_error(code));
}

/* Makes a graph launch a run, which is its own from then on. If that fails, it launches what it did before. In the
 * context of the device. */
TILEC_INNER tilec_status tilec_change_graph(tilec_graph *graph, tilec_run *run)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int is_same = graph->made.exec && tilec_is_same_graph(&graph->run, run);
    tilec_made made = graph->made;
    uint64_t taken = 0;
    tilec_status status = tilec_load_steps(run);
    if (!status)
        status = tilec_take_more(graph, run, &taken);
    if (status)
        return status;
    tilec_place_temporaries(run, !run->bytes ? 0 : taken ? taken : graph->workspace);
    status = tilec_map_steps(run);
    if (!status && is_same)
        status = tilec_set_nodes(graph, run);
    else if (!status) {
        memset(&made, 0, sizeof made);
        status = run->step_count ? tilec_make_graph(run, &made) : TILEC_SUCCESS;
    }
    if (status) {
        if (taken)
            driver->memory_free(taken);
        return status;
    }
    /* Launches under way use the old workspace, and launches of another graph do not wait for them. */
    if (graph->was_launched && (taken || !is_same))
        driver->context_wait();
    if (!is_same) {
        tilec_give_back(&graph->made);
        graph->made = made;
    }
    if (taken) {
        if (graph->workspace)
            driver->memory_free(graph->workspace);
        graph->workspace = taken;
        graph->workspace_bytes = (size_t)run->bytes;
    }
    tilec_close_run(&graph->run);
    graph->run = *run;
    run->memory = NULL;
    return TILEC_SUCCESS;
}

/* Works out what arguments give, and makes a graph launch it. */
TILEC_INNER tilec_status tilec_fill_graph(tilec_graph *graph, const tilec_pipelines *set,
                                          const tilec_argument *arguments)
{
    tilec_run run;
    int pushed;
    tilec_status status;
    tilec_open_run(&run, set, arguments, 1);
    status = tilec_work_out_run(&run, 1);
    if (!status && graph->device >= 0 && run.step_count && run.call.device != graph->device)
        status = tilec_fail(TILEC_ERROR_DEVICE, "`%s`: the graph is on device %d, the tensors on device %d",
                            run.pipeline->contract->symbol, (int)graph->device, (int)run.call.device);
    if (!status && run.step_count)
        status = tilec_take_run_device(&run);
    if (!status && run.step_count)
        status = tilec_need_graphs();
    if (!status && !run.step_count && !graph->made.exec) {
        tilec_close_run(&graph->run); /* nothing to launch, as before: no driver is asked for */
        graph->run = run;
        return TILEC_SUCCESS;
    }
    if (!status && graph->device < 0)
        graph->device = run.call.device;
    if (!status)
        status = tilec_enter(graph->device, &pushed);
    if (!status) {
        tilec_order_steps(&run);
        status = tilec_change_graph(graph, &run);
        tilec_leave(pushed);
    }
    tilec_close_run(&run);
    return status;
}

/* Public: gives a graph back. Waits for the device if what it launched may still use its workspace. */
TILEC_PUBLIC void tilec_graph_destroy(tilec_graph *graph)
{
    int pushed = 0;
    if (!graph)
        return;
    if ((graph->made.exec || graph->workspace) && !tilec_enter(graph->device, &pushed)) {
        if (graph->was_launched && graph->workspace)
            tilec_state_1.driver.context_wait();
        tilec_give_back(&graph->made);
        if (graph->workspace)
            tilec_state_1.driver.memory_free(graph->workspace);
        tilec_leave(pushed);
    }
    tilec_close_run(&graph->run);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

/* Public: launches a graph on a stream, and returns at once. Launches of one graph wait for each other. */
TILEC_PUBLIC tilec_status tilec_graph_launch(tilec_graph *graph, tilec_stream stream)
{
    int pushed, code;
    tilec_status status = TILEC_SUCCESS;
    if (!graph)
        return tilec_fail(TILEC_ERROR_NULL, "`graph` is a null pointer");
    pthread_mutex_lock(&graph->lock);
    if (graph->made.exec) {
        status = tilec_check_stream(graph->run.pipeline->contract->symbol, graph->device, stream);
        if (!status)
            status = tilec_enter(graph->device, &pushed);
        if (!status) {
            graph->was_launched = 1;
            code = tilec_state_1.driver.graph_launch(graph->made.exec, stream);
            if (code)
                status = tilec_fail(TILEC_ERROR_LAUNCH, "`%s` was not launched: %s",
                                    graph->run.pipeline->contract->symbol, tilec_cuda_error(code));
            tilec_leave(pushed);
        }
    }
    pthread_mutex_unlock(&graph->lock);
    return status;
}

TILEC_INNER tilec_status tilec_pipeline_graph(const tilec_pipelines *set, tilec_graph **made,
                                              const tilec_argument *arguments)
{
    tilec_graph *graph;
    tilec_status status;
    if (!made)
        return tilec_fail(TILEC_ERROR_NULL, "`%s`: `graph` is a null pointer", set->name);
    *made = NULL;
    graph = (tilec_graph *)calloc(1, sizeof *graph);
    if (!graph)
        return tilec_fail(TILEC_ERROR_MEMORY, "`%s`: the host has no memory for the graph", set->name);
    pthread_mutex_init(&graph->lock, NULL);
    graph->device = -1;
    status = tilec_fill_graph(graph, set, arguments);
    if (status)
        tilec_graph_destroy(graph);
    else
        *made = graph;
    return status;
}

TILEC_INNER tilec_status tilec_pipeline_graph_update(const tilec_pipelines *set, tilec_graph *graph,
                                                     const tilec_argument *arguments)
{
    tilec_status status;
    if (!graph)
        return tilec_fail(TILEC_ERROR_NULL, "`%s`: `graph` is a null pointer", set->name);
    pthread_mutex_lock(&graph->lock);
    if (graph->run.set != set)
        status = tilec_fail(TILEC_ERROR_GRAPH, "the graph is one of `%s`, not of `%s`", graph->run.set->name,
                            set->name);
    else
        status = tilec_fill_graph(graph, set, arguments);
    pthread_mutex_unlock(&graph->lock);
    return status;
}

#ifdef __cplusplus
} /* extern "C" */
#endif
