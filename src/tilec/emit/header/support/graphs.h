
/* ---- Inner: a pipeline as a graph -------------------------------------------------------------------------------- */

struct tilec_graph {
    pthread_mutex_t lock; /* the driver takes one call of a graph at a time */
    tilec_run run;        /* what it launches; its pointers to arguments are not looked at */
    tilec_made made;      /* nothing where there is nothing to launch */
    uint64_t workspace;
    size_t workspace_bytes;
    int32_t device; /* -1: nothing was on one yet */
    int was_launched;
};

/* Whether two sets are the same: each translation unit has its own tables, and all of a program have one cubin. */
TILEC_INNER int tilec_is_same_set(const tilec_pipelines *one, const tilec_pipelines *other)
{
    return one->pipelines[0].contract->cubin->library == other->pipelines[0].contract->cubin->library &&
           one->count == other->count && !strcmp(one->name, other->name);
}

TILEC_INNER int tilec_set_node(const tilec_graph *graph, int32_t number, const tilec_run *run)
{
    tilec_node node = tilec_node_of(&run->steps[number].ready);
    if (tilec_is_same_step(&run->steps[number], &graph->run.steps[number]) && run != &graph->run)
        return 0;
    return tilec_state_1.driver.graph_set_kernel(graph->made.exec, graph->made.nodes[number], &node);
}

/* Gives the nodes the parameters of a run that has the same; if the driver refuses one, those that they had. */
TILEC_INNER tilec_status tilec_set_nodes(const tilec_graph *graph, const tilec_run *run)
{
    int32_t i;
    for (i = 0; i < run->step_count; i++) {
        int code = tilec_set_node(graph, i, run);
        if (!code)
            continue;
        while (i-- > 0)
            tilec_set_node(graph, i, &graph->run);
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

/* The run that a graph is of from now on; its call is over, with the room that it had. */
TILEC_INNER void tilec_keep_run(tilec_graph *graph, const tilec_run *run)
{
    tilec_close_run(&graph->run);
    graph->run = *run;
    memset(&graph->run.call, 0, sizeof graph->run.call);
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
    tilec_keep_run(graph, run);
    run->memory = NULL;
    return TILEC_SUCCESS;
}

/* Works out what arguments give, and makes a graph launch it. */
TILEC_INNER tilec_status tilec_fill_graph(tilec_graph *graph, const tilec_pipelines *set,
                                          const tilec_argument *arguments)
{
    tilec_run run;
    int32_t device;
    int pushed = 0;
    tilec_status status;
    tilec_open_run(&run, set, arguments, 1, TILEC_ROOM_OF(set));
    status = tilec_work_out_run(&run, 1);
    if (!status && graph->device >= 0 && run.step_count && run.call.device != graph->device)
        status = tilec_fail(TILEC_ERROR_DEVICE, "`%s`: the graph is on device %d, the tensors on device %d",
                            run.pipeline->contract->symbol, (int)graph->device, (int)run.call.device);
    if (!status && run.step_count)
        status = tilec_take_run_device(&run);
    if (!status && run.step_count)
        status = tilec_need_graphs();
    if (!status && !run.step_count && !graph->made.exec) {
        tilec_keep_run(graph, &run); /* nothing to launch, as before: no driver is asked for */
        return TILEC_SUCCESS;
    }
    device = graph->device < 0 ? run.call.device : graph->device;
    if (!status)
        status = tilec_enter(device, &pushed);
    if (!status) {
        tilec_order_steps(&run);
        status = tilec_change_graph(graph, &run);
        tilec_leave(pushed);
    }
    if (!status)
        graph->device = device;
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
    tilec_give_back(&graph->made); /* if it was not: at the end of a process there may be no context */
    tilec_close_run(&graph->run);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

TILEC_INNER int tilec_is_captured(tilec_stream stream)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int how = 0;
    return driver->stream_captured && !driver->stream_captured(stream, &how) && how;
}

/* Public: launches a graph on a stream, and returns at once. Launches of one graph wait for each other. */
TILEC_PUBLIC tilec_status tilec_graph_launch(tilec_graph *graph, tilec_stream stream)
{
    int pushed = 0, code;
    tilec_status status = TILEC_SUCCESS;
    if (!graph)
        return tilec_fail(TILEC_ERROR_NULL, "`graph` is a null pointer");
    pthread_mutex_lock(&graph->lock);
    if (graph->made.exec) {
        status = tilec_check_stream(graph->run.pipeline->contract->symbol, graph->device, stream);
        if (!status && tilec_is_captured(stream))
            status = tilec_fail(TILEC_ERROR_GRAPH,
                                "the graph of `%s` is not launched on a stream that is being captured into another "
                                "graph; the pipeline is",
                                graph->run.pipeline->contract->symbol);
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
    return tilec_done(status);
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
    if (!tilec_is_same_set(graph->run.set, set))
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
