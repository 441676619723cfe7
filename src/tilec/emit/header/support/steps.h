
/* ---- Inner: what a call of a pipeline launches ------------------------------------------------------------------- */

TILEC_INNER tilec_status tilec_check_nulls(const tilec_run *run)
{
    const tilec_kernel *contract = run->set->pipelines[0].contract;
    int32_t p;
    for (p = 0; p < contract->parameter_count; p++)
        if (contract->parameters[p].rank >= 0 && !run->arguments[p].tensor)
            return tilec_fail(TILEC_ERROR_NULL, "`%s`: `%s` is a null pointer", run->set->name,
                              contract->parameters[p].name);
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
    return e.overflow ? tilec_too_large(&run->call, given->value) : TILEC_SUCCESS;
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
    step->cell_count = count;
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
    size_t count = (size_t)kernel->parameter_count;
    tilec_argument *arguments = (tilec_argument *)__builtin_alloca(count * sizeof *arguments);
    tilec_tensor *turned = (tilec_tensor *)__builtin_alloca(count * sizeof *turned);
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
        tilec_begin(&call, launch->set, arguments, run->call.needs_driver, TILEC_ROOM_OF(launch->set),
                    launch->set->value_count);
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
    if (!*late && number < run->plan_room)
        tilec_tell(&call, &run->plans[number]);
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
        if (contract->parameters[p].rank >= 0) {
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

/* Everything that arguments launch. `ordered`: who comes before whom is asked for. */
TILEC_INNER tilec_status tilec_work_out_run(tilec_run *run, int ordered)
{
    tilec_status status = tilec_check_nulls(run);
    return status ? status : tilec_take_pipeline(run, ordered);
}

TILEC_INNER tilec_status tilec_pipeline_check(const tilec_pipelines *set, const tilec_argument *arguments)
{
    tilec_run run;
    tilec_status status;
    tilec_open_run(&run, set, arguments, 0, TILEC_ROOM_OF(set));
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
    tilec_open_run(&run, set, arguments, 0, TILEC_ROOM_OF(set));
    status = tilec_work_out_run(&run, 0);
    *workspace_bytes = status ? 0 : (int64_t)run.bytes;
    tilec_close_run(&run);
    return status;
}
