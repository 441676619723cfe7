
/* ---- Inner: the workspace ---------------------------------------------------------------------------------------- */

/* Where slots begin, as what cuMemAlloc gives does. */
enum { TILEC_SLOT_BYTES = 256 };

/* Where nothing lies, for when there is no workspace yet; no better aligned than any other. */
#define TILEC_SOMEWHERE (((uint64_t)1 << 62) + TILEC_SLOT_BYTES)

TILEC_INNER tilec_status tilec_take_temporary(tilec_run *run, const tilec_temporary *temporary, tilec_tensor *tensor)
{
    int64_t extents[TILEC_RANKS];
    tilec_wide count = 1;
    int32_t axis;
    for (axis = 0; axis < temporary->rank; axis++) {
        const tilec_claim *claim = &temporary->extents[axis];
        tilec_evaluation e = {0, 0, 0};
        tilec_wide extent = run->pipeline->contract->evaluate(claim->expression, run->call.values, &e);
        if (e.overflow)
            return tilec_too_large(&run->call, claim);
        if (extent < 0 || extent > TILEC_COUNT_LIMIT)
            return tilec_fail(TILEC_ERROR_LIMIT, "the temporary `%s` has the extent %s", temporary->name,
                              tilec_number(extent, 10).text);
        extents[axis] = (int64_t)extent;
    }
    for (axis = 0; axis < temporary->rank && count <= TILEC_ELEMENT_LIMIT; axis++)
        count *= extents[axis] > 1 ? extents[axis] : 1;
    if (count > TILEC_ELEMENT_LIMIT)
        return tilec_fail(TILEC_ERROR_LIMIT, "the temporary `%s` has more than 2^60 elements", temporary->name);
    *tensor = tilec_packed(NULL, (tilec_dtype)temporary->dtype, temporary->rank, extents);
    tensor->device = run->call.device;
    return TILEC_SUCCESS;
}

/* The extents of the temporaries, and where they lie: slots one after the other, each as large as its largest. */
TILEC_INNER tilec_status tilec_take_temporaries(tilec_run *run)
{
    const tilec_pipeline *pipeline = run->pipeline;
    tilec_tensor *tensors = run->tensors + pipeline->contract->parameter_count;
    int32_t i;
    for (i = 0; i < pipeline->temporary_count; i++) {
        const tilec_temporary *temporary = &pipeline->temporaries[i];
        tilec_wide size;
        tilec_status status = tilec_take_temporary(run, temporary, &tensors[i]);
        if (status)
            return status;
        size = (tilec_span_bytes(&tensors[i]) + TILEC_SLOT_BYTES - 1) / TILEC_SLOT_BYTES * TILEC_SLOT_BYTES;
        run->slots[temporary->slot] = tilec_max(run->slots[temporary->slot], size);
    }
    for (i = 0; i < pipeline->slot_count; i++) {
        tilec_wide size = run->slots[i];
        run->slots[i] = run->bytes;
        run->bytes += size;
    }
    if (run->bytes > INT64_MAX)
        return tilec_fail(TILEC_ERROR_LIMIT, "the workspace has %s bytes, more than there are addresses",
                          tilec_number(run->bytes, 10).text);
    run->workspace = TILEC_SOMEWHERE;
    for (i = 0; i < pipeline->temporary_count; i++)
        tensors[i].data = (void *)(uintptr_t)(run->workspace + (uint64_t)run->slots[pipeline->temporaries[i].slot]);
    return TILEC_SUCCESS;
}

/* Puts the temporaries into a workspace: in the parameters of all steps, too. */
TILEC_INNER void tilec_place_temporaries(tilec_run *run, uint64_t workspace)
{
    const tilec_pipeline *pipeline = run->pipeline;
    int32_t parameters = pipeline->contract->parameter_count, i, p;
    uint64_t moved = workspace - run->workspace;
    run->workspace = workspace;
    for (i = 0; i < pipeline->temporary_count; i++) {
        tilec_tensor *tensor = &run->tensors[parameters + i];
        tensor->data = (void *)(uintptr_t)((uint64_t)(uintptr_t)tensor->data + moved);
    }
    for (i = 0; i < run->step_count; i++) {
        const tilec_launch_step *step = &run->steps[i];
        uint64_t *cell = step->cells;
        for (p = 0; p < step->ready.kernel->parameter_count; p++) {
            const tilec_given *given = &step->launch->given[p];
            if (!given->value && given->tensor >= parameters)
                *cell += moved;
            cell += step->ready.kernel->parameters[p].rank > 1 ? step->ready.kernel->parameters[p].rank : 1;
        }
    }
}

/* That a workspace that the caller brought will do. */
TILEC_INNER tilec_status tilec_check_workspace(const tilec_run *run, void *workspace, int64_t workspace_bytes)
{
    const tilec_kernel *contract = run->pipeline->contract;
    tilec_tensor whole = tilec_vector(workspace, TILEC_U8, (int64_t)run->bytes);
    tilec_wide start = (tilec_wide)(uintptr_t)workspace;
    int32_t p, device = -1;
    tilec_status status;
    if (!run->bytes)
        return TILEC_SUCCESS;
    if (workspace_bytes < run->bytes)
        return tilec_fail(TILEC_ERROR_WORKSPACE, "expected a workspace of %s bytes, got %lld",
                          tilec_number(run->bytes, 10).text, (long long)workspace_bytes);
    if (!workspace || (uintptr_t)workspace % TILEC_SLOT_BYTES)
        return tilec_fail(TILEC_ERROR_WORKSPACE, "expected a workspace at a multiple of %d bytes, got %s",
                          (int)TILEC_SLOT_BYTES, tilec_number((tilec_wide)(uintptr_t)workspace, 16).text);
    if (start + run->bytes > TILEC_ADDRESS_END)
        return tilec_fail(TILEC_ERROR_WORKSPACE, "the workspace: %s bytes from address %s on pass the end of the address "
                          "space", tilec_number(run->bytes, 10).text, tilec_number(start, 16).text);
    for (p = 0; p < contract->parameter_count; p++) {
        const tilec_tensor *tensor = &run->tensors[p];
        tilec_wide first = (tilec_wide)(uintptr_t)tensor->data, last;
        if (contract->parameters[p].rank < 0 || tilec_is_empty(tensor))
            continue;
        last = first + tilec_span_bytes(tensor);
        if (first < start + run->bytes && start < last)
            return tilec_fail(TILEC_ERROR_WORKSPACE, "the workspace overlaps `%s`: bytes %.40s to %.40s and %.40s to %.40s",
                              contract->parameters[p].name, tilec_number(start, 16).text,
                              tilec_number(start + run->bytes, 16).text, tilec_number(first, 16).text,
                              tilec_number(last, 16).text);
    }
    status = tilec_device_of("workspace", &whole, &device);
    if (status)
        return status;
    if (device >= 0 && device != run->call.device)
        return tilec_fail(TILEC_ERROR_DEVICE, "the workspace is on device %d, the tensors on %d", (int)device,
                          (int)run->call.device);
    return TILEC_SUCCESS;
}
