
/* ---- Inner: what a call of a pipeline launches --------------------------------------------------------------------- */

TILEC_INNER tilec_status tilec_blame_launch(const tilec_run *run, const tilec_pipeline_launch *launch,
                                            tilec_status status)
{
    char said[TILEC_MESSAGE_BYTES];
    memcpy(said, tilec_message_1, sizeof said);
    /* Cut off where there is no room: said so to the compiler by the precision. */
    return tilec_fail(status, "`%.300s`: %.1000s: %.2700s", run->pipeline->contract->symbol, launch->text, said);
}

TILEC_INNER tilec_status tilec_check_nulls(const tilec_run *run)
{
    const tilec_kernel *contract = run->set->pipelines[0].contract;
    int32_t p;
    for (p = 0; p < contract->parameter_count; p++)
        if (contract->parameters[p].rank && !run->arguments[p].tensor)
            return tilec_fail(TILEC_ERROR_NULL, "`%s`: `%s` is a null pointer", run->set->name,
                              contract->parameters[p].name);
    return TILEC_SUCCESS;
}

TILEC_INNER size_t tilec_to_line(size_t bytes)
{
    return (bytes + 127) / 128 * 128;
}

/* Takes the next part of a block of memory; of no block, only counts. */
TILEC_INNER void *tilec_part_of(char *block, size_t *used, size_t count, size_t size)
{
    char *start = block ? block + *used : NULL;
    *used += tilec_to_line((count ? count : 1) * size);
    return start;
}

/* Shares out a block of memory, or counts what it must have. `ordered`: who comes before whom is asked for. */
TILEC_INNER size_t tilec_share_out(tilec_run *run, char *block, int ordered)
{
    const tilec_pipeline *pipeline = run->pipeline;
    size_t used = 0, launches = (size_t)pipeline->launch_count, words = ordered ? (launches + 63) / 64 : 0;
    size_t tensors = (size_t)(pipeline->contract->parameter_count + pipeline->temporary_count);
    run->word_count = (int32_t)words;
    run->maps = (tilec_map *)tilec_part_of(block, &used, (size_t)pipeline->map_count, sizeof *run->maps);
    run->tensors = (tilec_tensor *)tilec_part_of(block, &used, tensors, sizeof *run->tensors);
    run->slots = (tilec_wide *)tilec_part_of(block, &used, (size_t)pipeline->slot_count, sizeof *run->slots);
    run->steps = (tilec_launch_step *)tilec_part_of(block, &used, launches, sizeof *run->steps);
    run->step_of = (int32_t *)tilec_part_of(block, &used, launches, sizeof *run->step_of);
    run->before = (uint64_t *)tilec_part_of(block, &used, launches * words, sizeof *run->before);
    run->long_before = (uint64_t *)tilec_part_of(block, &used, launches * words, sizeof *run->long_before);
    run->cells = (uint64_t *)tilec_part_of(block, &used, (size_t)pipeline->cell_count, sizeof *run->cells);
    run->cell_places = (void **)tilec_part_of(block, &used, (size_t)(pipeline->cell_count + pipeline->map_count),
                                              sizeof *run->cell_places);
    return used;
}

TILEC_INNER tilec_status tilec_no_memory(const tilec_run *run, size_t bytes)
{
    return tilec_fail(TILEC_ERROR_MEMORY, "`%s`: the host has no %llu bytes for the launches",
                      run->pipeline->contract->symbol, (unsigned long long)bytes);
}

TILEC_INNER tilec_status tilec_take_memory(tilec_run *run, int ordered)
{
    size_t bytes = tilec_share_out(run, NULL, ordered);
    run->memory = calloc(1, bytes + 128);
    if (!run->memory)
        return tilec_no_memory(run, bytes);
    tilec_share_out(run, (char *)(tilec_to_line((uintptr_t)run->memory)), ordered);
    return TILEC_SUCCESS;
}

/* A tensor as a launch gets it. */
TILEC_INNER const tilec_tensor *tilec_turned(const tilec_run *run, const tilec_given *given, tilec_tensor *room)
{
    const tilec_tensor *tensor = &run->tensors[given->tensor];
    int32_t axis, in_order = 1;
    for (axis = 0; axis < tensor->rank; axis++)
        in_order &= given->axes[axis] == axis;
    if (in_order)
        return tensor;
    *room = *tensor;
    for (axis = 0; axis < tensor->rank; axis++) {
        room->extents[axis] = tensor->extents[(int)given->axes[axis]];
        room->strides[axis] = tensor->strides[(int)given->axes[axis]];
    }
    return room;
}

TILEC_INNER tilec_status tilec_take_value(const tilec_run *run, const tilec_given *given, tilec_value *value)
{
    tilec_evaluation e = {0, 0, 0};
    value->kind = given->kind;
    value->whole = run->pipeline->contract->evaluate(given->value->expression, run->call.values, &e);
    value->real = e.real;
    return e.overflow ? tilec_too_large(given->value) : TILEC_SUCCESS;
}

TILEC_INNER void tilec_open_run(tilec_run *run, const tilec_pipelines *set, const tilec_argument *arguments,
                                int needs_driver)
{
    memset(run, 0, sizeof *run);
    run->set = set;
    run->arguments = arguments;
    tilec_begin(&run->call, NULL, arguments, needs_driver);
}

TILEC_INNER void tilec_close_run(tilec_run *run)
{
    free(run->memory);
    run->memory = NULL;
}

/* For another instance. */
TILEC_INNER void tilec_reopen_run(tilec_run *run)
{
    tilec_close_run(run);
    run->step_count = 0;
    run->bytes = 0;
}

/* Makes a launch that is worked out, and has programs, a step. */
TILEC_INNER void tilec_add_step_of(tilec_run *run, int32_t number, const tilec_call *call)
{
    tilec_launch_step *step = &run->steps[run->step_count];
    int32_t count = tilec_pack(call, run->cells), i;
    run->step_of[number] = run->step_count++;
    step->launch = &run->pipeline->launches[number];
    step->number = number;
    step->cells = run->cells;
    step->maps = run->maps;
    step->ready.kernel = call->kernel;
    step->ready.variant = call->variant;
    step->ready.entry = &call->build->cubin->entries[call->variant->entry];
    step->ready.slots = run->cell_places;
    memcpy(step->ready.grid, call->grid, sizeof call->grid);
    for (i = 0; i < count; i++)
        step->ready.slots[i] = &step->cells[i];
    for (i = 0; i < call->variant->map_count; i++)
        step->ready.slots[count + i] = &step->maps[i];
    run->cells += count;
    run->maps += call->variant->map_count;
    run->cell_places += count + call->variant->map_count;
}

/* Works a launch out. What addresses decide is asked for only while nothing was found against it in this run; that is
 * `late`, and may be overruled by what another launch's shapes are refused for. */
TILEC_INNER tilec_status tilec_work_out_launch(tilec_run *run, int32_t number, tilec_status *late)
{
    const tilec_pipeline_launch *launch = &run->pipeline->launches[number];
    const tilec_kernel *kernel = launch->set->builds[0].groups[0].kernels[0];
    tilec_argument arguments[TILEC_ARGUMENTS];
    tilec_tensor turned[TILEC_ARGUMENTS];
    tilec_call call;
    int32_t p;
    tilec_status status = TILEC_SUCCESS;
    for (p = 0; p < kernel->parameter_count && !status; p++) {
        const tilec_given *given = &launch->given[p];
        arguments[p] = tilec_of_tensor(given->value ? NULL : tilec_turned(run, given, &turned[p]));
        if (given->value)
            status = tilec_take_value(run, given, &arguments[p].value);
    }
    if (!status) {
        tilec_begin(&call, launch->set, arguments, run->call.needs_driver);
        tilec_guess_build(&call);
        status = tilec_take_instance(&call);
    }
    if (status)
        return tilec_blame_launch(run, launch, status);
    run->step_of[number] = -1;
    if (*late)
        return TILEC_SUCCESS;
    *late = tilec_take_addresses(&call);
    if (*late)
        *late = tilec_blame_launch(run, launch, *late);
    else if (call.programs > 0)
        tilec_add_step_of(run, number, &call);
    return TILEC_SUCCESS;
}

/* The parameters as launches get them: they then find the device known. */
TILEC_INNER void tilec_take_tensors(tilec_run *run)
{
    const tilec_kernel *contract = run->pipeline->contract;
    int32_t p;
    if (run->call.device < 0)
        run->call.device = tilec_current_device();
    for (p = 0; p < contract->parameter_count; p++)
        if (contract->parameters[p].rank) {
            run->tensors[p] = *run->arguments[p].tensor;
            run->tensors[p].dtype = contract->parameters[p].dtype;
            run->tensors[p].device = run->call.device;
        }
}

/* Works an instance of the pipeline out for arguments of its types: gives what the shapes are refused for, for which
 * another instance may do; `late` is what addresses are refused for. */
TILEC_INNER tilec_status tilec_work_out_pipeline(tilec_run *run, int ordered, tilec_status *late)
{
    char said[TILEC_MESSAGE_BYTES];
    int32_t i;
    tilec_status status = tilec_fit(&run->call, run->pipeline->contract);
    if (status)
        return tilec_blame_pipeline(run, status);
    status = tilec_take_memory(run, ordered);
    if (status)
        return status;
    tilec_take_tensors(run);
    status = tilec_take_temporaries(run);
    if (status)
        return tilec_blame_pipeline(run, status);
    *late = tilec_check_addresses(&run->call);
    if (*late)
        *late = tilec_blame_pipeline(run, *late);
    if (*late)
        memcpy(said, tilec_message_1, sizeof said);
    for (i = 0; i < run->pipeline->launch_count; i++) {
        tilec_status before = *late;
        status = tilec_work_out_launch(run, i, late);
        if (status)
            return status;
        if (*late != before)
            memcpy(said, tilec_message_1, sizeof said);
    }
    return *late ? tilec_fail(TILEC_SUCCESS, "%s", said) : TILEC_SUCCESS;
}

/* Everything that the first instance launches whose types and contract fit. */
TILEC_INNER tilec_status tilec_take_pipeline(tilec_run *run, int ordered)
{
    const tilec_pipelines *set = run->set;
    char reasons[TILEC_MESSAGE_BYTES];
    size_t at = 0;
    int mistyped, count = 0;
    int32_t i;
    tilec_status status = TILEC_SUCCESS;
    /* Those of other types are named only if all are. */
    for (mistyped = 0; mistyped < 2 && !count; mistyped++)
        for (i = 0; i < set->count; i++) {
            tilec_status late = TILEC_SUCCESS;
            run->pipeline = &set->pipelines[i];
            if (tilec_is_of_types(&run->call, run->pipeline->contract) == mistyped)
                continue;
            tilec_reopen_run(run);
            status = tilec_work_out_pipeline(run, ordered, &late);
            if (!status || status == TILEC_ERROR_MEMORY)
                return status ? status : late;
            count++;
            if (at < sizeof reasons)
                at += (size_t)snprintf(reasons + at, sizeof reasons - at, "\n  %s", tilec_message_1);
        }
    if (count == 1)
        return tilec_fail(status, "%s", reasons + 3);
    return tilec_fail(TILEC_ERROR_NO_INSTANCE, "no instance of `%.200s` takes these arguments%.3800s", set->name,
                      reasons);
}

/* Loads the machine code of all steps, in the context of the device. */
TILEC_INNER tilec_status tilec_load_steps(tilec_run *run)
{
    int32_t i;
    for (i = 0; i < run->step_count; i++) {
        tilec_ready *ready = &run->steps[i].ready;
        tilec_status status = tilec_need_entry(ready->kernel->cubin, ready->variant, run->call.device);
        if (status)
            return tilec_blame_launch(run, run->steps[i].launch, status);
        tilec_fit_clusters(ready, run->call.device);
    }
    return TILEC_SUCCESS;
}

/* Makes the tensor maps of all steps, in the context of the device, once the temporaries are placed. */
TILEC_INNER tilec_status tilec_map_steps(tilec_run *run)
{
    int32_t i, m;
    for (i = 0; i < run->step_count; i++) {
        const tilec_launch_step *step = &run->steps[i];
        for (m = 0; m < step->ready.variant->map_count; m++) {
            const tilec_wanted_map *wanted = &step->ready.variant->maps[m];
            tilec_tensor room;
            const tilec_tensor *tensor = tilec_turned(run, &step->launch->given[wanted->parameter], &room);
            tilec_status status = tilec_need_map(step->ready.kernel, wanted, tensor, &step->maps[m]);
            if (status)
                return tilec_blame_launch(run, step->launch, status);
        }
    }
    return TILEC_SUCCESS;
}

/* The device of a run that has steps, and that the machine code is built for it. */
TILEC_INNER tilec_status tilec_take_run_device(tilec_run *run)
{
    tilec_device *device = NULL;
    const tilec_build *build = NULL;
    tilec_status status = tilec_need_device(run->call.device, &device);
    return status ? status : tilec_take_build(run->steps[0].launch->set, run->call.device, &build);
}

TILEC_INNER int tilec_is_missing(int is_there, const char *name)
{
    if (!is_there)
        (void)tilec_fail(TILEC_ERROR_NO_DRIVER, "the CUDA driver has no `%s`: a later one is needed", name);
    return !is_there;
}

/* ---- Inner: on one stream ------------------------------------------------------------------------------------------ */

TILEC_INNER tilec_status tilec_no_workspace(const tilec_run *run, int code)
{
    return tilec_fail(TILEC_ERROR_MEMORY, "`%s` was not launched: no workspace of %s bytes: %s",
                      run->pipeline->contract->symbol, tilec_number(run->bytes, 10).text, tilec_cuda_error(code));
}

/* Memory for the temporaries, in the order of the stream. */
TILEC_INNER tilec_status tilec_take_workspace(tilec_run *run, tilec_stream stream)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    uint64_t address = 0;
    int code;
    if (run->bytes) {
        if (tilec_is_missing(driver->memory_take != NULL, "cuMemAllocAsync") ||
            tilec_is_missing(driver->memory_give != NULL, "cuMemFreeAsync"))
            return TILEC_ERROR_NO_DRIVER;
        code = driver->memory_take(&address, (size_t)run->bytes, stream);
        if (code)
            return tilec_no_workspace(run, code);
    }
    tilec_place_temporaries(run, address);
    return TILEC_SUCCESS;
}

/* Starts all steps one after the other. */
TILEC_INNER tilec_status tilec_send_steps(const tilec_run *run, tilec_stream stream)
{
    int32_t i;
    for (i = 0; i < run->step_count; i++) {
        const tilec_launch_step *step = &run->steps[i];
        tilec_status status = tilec_send(&step->ready, stream, i > 0 && step->ready.variant->starts_early);
        if (status)
            return tilec_blame_launch(run, step->launch, status);
    }
    return TILEC_SUCCESS;
}

/* Starts the steps of a run; without `own` the workspace is allocated. In the context of the device. */
TILEC_INNER tilec_status tilec_send_run(tilec_run *run, tilec_stream stream, void *own)
{
    tilec_status status = tilec_load_steps(run);
    if (status)
        return status;
    if (own)
        tilec_place_temporaries(run, (uint64_t)(uintptr_t)own);
    else
        status = tilec_take_workspace(run, stream);
    if (status)
        return status;
    status = tilec_map_steps(run);
    if (!status)
        status = tilec_send_steps(run, stream);
    if (!own && run->bytes)
        tilec_state_1.driver.memory_give(run->workspace, stream);
    return status;
}

/* Everything that arguments launch. `ordered`: who comes before whom is asked for. */
TILEC_INNER tilec_status tilec_work_out_run(tilec_run *run, int ordered)
{
    tilec_status status = tilec_check_nulls(run);
    return status ? status : tilec_take_pipeline(run, ordered);
}

TILEC_INNER tilec_status tilec_launch_run(tilec_run *run, tilec_stream stream, void *own)
{
    int pushed;
    tilec_status status = tilec_take_run_device(run);
    if (!status)
        status = tilec_check_stream(run->pipeline->contract->symbol, run->call.device, stream);
    if (!status)
        status = tilec_enter(run->call.device, &pushed);
    if (status)
        return status;
    status = tilec_send_run(run, stream, own);
    tilec_leave(pushed);
    return status;
}

TILEC_INNER tilec_status tilec_pipeline_launch_with(const tilec_pipelines *set, tilec_stream stream, int brought,
                                                    void *workspace, int64_t workspace_bytes,
                                                    const tilec_argument *arguments)
{
    tilec_run run;
    tilec_status status;
    tilec_open_run(&run, set, arguments, 1);
    status = tilec_work_out_run(&run, 0);
    if (!status && brought) {
        status = tilec_check_workspace(&run, workspace, workspace_bytes);
        if (status)
            status = tilec_blame_pipeline(&run, status);
    }
    if (!status && run.step_count)
        status = tilec_launch_run(&run, stream, brought && run.bytes ? workspace : NULL);
    tilec_close_run(&run);
    return status;
}

TILEC_INNER tilec_status tilec_pipeline_check(const tilec_pipelines *set, const tilec_argument *arguments)
{
    tilec_run run;
    tilec_status status;
    tilec_open_run(&run, set, arguments, 0);
    status = tilec_work_out_run(&run, 0);
    tilec_close_run(&run);
    return status;
}

TILEC_INNER tilec_status tilec_pipeline_workspace(const tilec_pipelines *set, const tilec_argument *arguments,
                                                  int64_t *workspace_bytes)
{
    tilec_run run;
    tilec_status status;
    if (!workspace_bytes)
        return tilec_fail(TILEC_ERROR_NULL, "`%s`: `workspace_bytes` is a null pointer", set->name);
    tilec_open_run(&run, set, arguments, 0);
    status = tilec_work_out_run(&run, 0);
    *workspace_bytes = status ? 0 : (int64_t)run.bytes;
    tilec_close_run(&run);
    return status;
}
