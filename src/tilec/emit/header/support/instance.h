/* ---- Inner: one instance ------------------------------------------------------------------------------------------- */

/* The variant to launch: the first that takes shapes and strides, and the addresses too if `addresses` says so.
 * NULL if there is none. */
TILEC_INNER tilec_status tilec_take_variant(tilec_call *call, int addresses)
{
    int32_t i;
    call->variant = NULL;
    memset(call->grid, 0, sizeof call->grid);
    for (i = 0; i < call->kernel->variant_count && !call->variant; i++) {
        const tilec_variant *variant = &call->kernel->variants[i];
        if (!tilec_fits(call, variant) || (addresses && !tilec_is_aligned(call, variant)))
            continue;
        if (call->programs > 0) {
            if (variant->persistent_blocks_per_sm) {
                tilec_status status = tilec_need_machine(call);
                if (status)
                    return status;
            }
            if (!tilec_grid_of(call, variant, call->sm_count, call->grid))
                continue;
        }
        call->variant = variant;
    }
    return TILEC_SUCCESS;
}

/* Everything of an instance's contract but what addresses decide. */
TILEC_INNER tilec_status tilec_fit(tilec_call *call, const tilec_kernel *kernel)
{
    int32_t p;
    tilec_status status = TILEC_SUCCESS;
    call->kernel = kernel;
    for (p = 0; p < kernel->parameter_count && !status; p++)
        if (kernel->parameters[p].rank >= 0)
            status = tilec_check_type(&kernel->parameters[p], call->arguments[p].tensor);
    for (p = 0; p < kernel->parameter_count && !status; p++)
        if (kernel->parameters[p].rank >= 0)
            status = tilec_check_form(&kernel->parameters[p], call->arguments[p].tensor);
    if (!status)
        status = tilec_take_device(call);
    if (!status)
        status = tilec_take_scalars(call);
    if (!status)
        status = tilec_bind_dims(call);
    if (!status)
        status = tilec_check_requires(call);
    return status ? status : tilec_take_grid(call);
}

TILEC_INNER int tilec_is_of_types(const tilec_call *call, const tilec_kernel *kernel)
{
    int32_t p;
    for (p = 0; p < kernel->parameter_count; p++)
        if (kernel->parameters[p].rank >= 0 && tilec_check_type(&kernel->parameters[p], call->arguments[p].tensor))
            return 0;
    return 1;
}

