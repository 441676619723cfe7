/* ---- Inner: the plan ----------------------------------------------------------------------------------------------- */

TILEC_INNER tilec_status tilec_check_null(const tilec_call *call)
{
    const tilec_kernel *kernel = call->set->builds[0].groups[0].kernels[0];
    int32_t p;
    for (p = 0; p < kernel->parameter_count; p++)
        if (kernel->parameters[p].rank >= 0 && !call->arguments[p].tensor)
            return tilec_fail(TILEC_ERROR_NULL, "`%s`: `%s` is a null pointer", call->set->name,
                              kernel->parameters[p].name);
    return TILEC_SUCCESS;
}

/* Where the kernels of several targets are there, those for the device that the tensors are on. The contract is the
 * same for all, so that any will do where no device is known, or none of them runs there: a launch says so later. */
TILEC_INNER void tilec_guess_build(tilec_call *call)
{
    const tilec_kernel *kernel;
    int32_t p, device = -1;
    call->build = &call->set->builds[0];
    if (call->set->build_count == 1)
        return;
    kernel = call->build->groups[0].kernels[0];
    for (p = 0; p < kernel->parameter_count && device < 0; p++)
        if (kernel->parameters[p].rank >= 0 && call->arguments[p].tensor->rank <= TILEC_RANKS)
            (void)tilec_device_of_argument(call, p, "", &device);
    (void)tilec_take_build(call->set, device < 0 ? tilec_current_device() : device, &call->build);
}

/* The instance for the arguments, with all of its contract but addresses checked. */
TILEC_INNER tilec_status tilec_take_instance(tilec_call *call)
{
    const tilec_group *first = &call->build->groups[0];
    uint64_t shapes;
    tilec_memory *memory;
    int32_t g, chosen;
    if (call->build->group_count == 1 && first->kernel_count == 1) {
        tilec_status status = tilec_fit(call, first->kernels[0]);
        return status ? tilec_blame(first->kernels[0], status) : TILEC_SUCCESS;
    }
    shapes = tilec_shapes_of(call);
    memory = &tilec_memory_1[shapes % TILEC_REMEMBERED];
    if (memory->build == call->build && memory->shapes == shapes && !tilec_fit(call, memory->kernel))
        return TILEC_SUCCESS;
    for (g = 0; g < call->build->group_count; g++) {
        const tilec_group *group = &call->build->groups[g];
        tilec_status status = tilec_choose(call, group, &chosen);
        if (status)
            return status;
        if (chosen < 0)
            continue;
        if (call->needs_driver) {
            memory->build = call->build;
            memory->shapes = shapes;
            memory->kernel = group->kernels[chosen];
        }
        return tilec_fit(call, group->kernels[chosen]);
    }
    return tilec_refuse(call);
}

TILEC_INNER tilec_status tilec_no_variant(const tilec_kernel *kernel)
{
    char asked[TILEC_MESSAGE_BYTES];
    size_t at = 0;
    int32_t i;
    asked[0] = 0;
    for (i = 0; i < kernel->variant_count && at < sizeof asked; i++)
        at += (size_t)snprintf(asked + at, sizeof asked - at, "%s`%s` asks for %s", i ? "; " : "",
                               kernel->variants[i].symbol, kernel->variants[i].asks);
    return tilec_fail(TILEC_ERROR_NO_VARIANT, "the arguments meet the preconditions of no variant: %.3900s", asked);
}

/* With the instance known, what addresses decide: the rest of the contract, and the variant. */
TILEC_INNER tilec_status tilec_take_addresses(tilec_call *call)
{
    tilec_status status = tilec_check_addresses(call);
    if (!status)
        status = tilec_take_variant(call, 1);
    if (!status && !call->variant)
        status = tilec_no_variant(call->kernel);
    return status ? tilec_blame(call->kernel, status) : TILEC_SUCCESS;
}

/* Checks the whole contract, and finds the instance, its variant and its grid. */
TILEC_INNER tilec_status tilec_work_out(tilec_call *call)
{
    tilec_status status = tilec_check_null(call);
    if (status)
        return status;
    tilec_guess_build(call);
    status = tilec_take_instance(call);
    return status ? status : tilec_take_addresses(call);
}

/* Says what a call that is worked out would launch. */
TILEC_INNER void tilec_tell(const tilec_call *call, tilec_plan *plan)
{
    int i;
    plan->kernel = call->kernel->symbol;
    plan->variant = call->variant->symbol;
    plan->target = call->build->cubin->target;
    plan->device = call->device;
    plan->shared_bytes = (uint32_t)call->variant->dynamic_smem_bytes;
    for (i = 0; i < 3; i++) {
        plan->grid[i] = call->grid[i];
        plan->block[i] = i ? 1 : (uint32_t)call->variant->threads;
        plan->cluster[i] = (uint32_t)call->variant->cluster[i];
    }
}

/* `room` is of tilec_room_bytes for so many Dims and parameters, and of the caller. */
TILEC_INNER void tilec_begin(tilec_call *call, const tilec_set *set, const tilec_argument *arguments, int needs_driver,
                             void *room, int32_t value_count)
{
    int32_t i;
    call->set = set;
    call->arguments = arguments;
    call->values = (tilec_value *)room;
    call->bits = (uint64_t *)(call->values + value_count);
    call->devices = (int32_t *)(call->bits + value_count);
    call->owners = call->devices + value_count;
    for (i = 0; i < value_count; i++)
        call->devices[i] = TILEC_NOT_ASKED;
    call->device = -1;
    call->sm_count = 0;
    call->card = "";
    call->needs_driver = needs_driver;
}

