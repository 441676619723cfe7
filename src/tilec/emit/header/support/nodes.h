
/* ---- Inner: launches as nodes of a graph ------------------------------------------------------------------------- */

/* What the driver has of a graph. */
typedef struct tilec_made {
    void *graph, *exec;
    void **nodes; /* by step */
} tilec_made;

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

/* Whether a graph of one run becomes that of another, of the same set, by other parameters. */
TILEC_INNER int tilec_is_same_graph(const tilec_run *one, const tilec_run *other)
{
    int32_t i;
    if (strcmp(one->pipeline->contract->symbol, other->pipeline->contract->symbol) ||
        one->step_count != other->step_count)
        return 0;
    for (i = 0; i < one->step_count; i++) {
        const tilec_variant *variant = one->steps[i].ready.variant, *other_variant = other->steps[i].ready.variant;
        if (one->steps[i].number != other->steps[i].number ||
            memcmp(variant->cluster, other_variant->cluster, sizeof variant->cluster) ||
            variant->starts_early != other_variant->starts_early)
            return 0;
    }
    return 1;
}

TILEC_INNER int tilec_is_same_step(const tilec_launch_step *one, const tilec_launch_step *other)
{
    return one->ready.entry == other->ready.entry && one->cell_count == other->cell_count &&
           !memcmp(one->ready.grid, other->ready.grid, sizeof one->ready.grid) &&
           !memcmp(one->cells, other->cells, (size_t)one->cell_count * sizeof *one->cells) &&
           !memcmp(one->maps, other->maps, (size_t)one->ready.variant->map_count * sizeof *one->maps);
}
