/* ---- Inner: `requires!` and the grid of programs ------------------------------------------------------------------- */

TILEC_INNER tilec_status tilec_too_large(const tilec_call *call, const tilec_claim *claim)
{
    return tilec_fail(TILEC_ERROR_ARITHMETIC, "`%.1000s` is too large to compute%s", claim->text,
                      tilec_where(call->kernel, claim, call->values).text);
}

TILEC_INNER tilec_status tilec_check_requires(const tilec_call *call)
{
    int32_t i;
    for (i = 0; i < call->kernel->requires_count; i++) {
        const tilec_claim *claim = &call->kernel->requirements[i];
        tilec_evaluation e = {0, 0, 0};
        tilec_wide holds = call->kernel->evaluate(claim->expression, call->values, &e);
        if (!holds || e.division_by_zero || e.overflow)
            return tilec_fail(TILEC_ERROR_REQUIRES, "%.1500s does not hold%s", claim->text,
                              tilec_where(call->kernel, claim, call->values).text);
    }
    return TILEC_SUCCESS;
}

TILEC_INNER tilec_status tilec_take_grid(tilec_call *call)
{
    tilec_evaluation e = {0, 0, 0};
    int32_t axis;
    call->programs = 1;
    for (axis = 0; axis < call->kernel->grid_rank; axis++) {
        const tilec_claim *claim = &call->kernel->grid[axis];
        tilec_wide extent = call->kernel->evaluate(claim->expression, call->values, &e);
        if (e.overflow)
            return tilec_too_large(call, claim);
        if (extent < 0 || extent > TILEC_COUNT_LIMIT)
            return tilec_fail(TILEC_ERROR_GRID, "grid extent %d, `%.1000s`, is %s%s%s", (int)axis, claim->text,
                              tilec_number(extent, 10).text,
                              extent > 0 ? ", above the limit of 1099511627776" : "",
                              tilec_where(call->kernel, claim, call->values).text);
        call->extents[axis] = (int64_t)extent;
    }
    for (axis = 0; axis < call->kernel->grid_rank; axis++)
        call->programs = tilec_mul(call->programs, call->extents[axis], &e);
    for (axis = 0; axis < call->kernel->grid_rank; axis++)
        if (call->extents[axis] == 0)
            call->programs = e.overflow = 0;
    if (e.overflow)
        return tilec_fail(TILEC_ERROR_GRID, "the grid has more programs than the limit of 1099511627776");
    if (call->programs > TILEC_COUNT_LIMIT)
        return tilec_fail(TILEC_ERROR_GRID, "the grid has %s programs, above the limit of 1099511627776",
                          tilec_number(call->programs, 10).text);
    return TILEC_SUCCESS;
}

