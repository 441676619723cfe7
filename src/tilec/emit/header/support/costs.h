/* ---- Inner: what is known of how long a launch takes --------------------------------------------------------------- */

/* How long a launch of the fitted variant takes by the model of docs/abi.md ("Families"); -1 if it says nothing. */
TILEC_INNER tilec_wide tilec_cycles(const tilec_call *call)
{
    const tilec_cost *cost = call->variant ? call->variant->cost : NULL;
    tilec_wide busy[4] = {0, 0, 0, 0}, alone = 0, most, blocks, sms = call->sm_count, per_sm, hidden, first, memory;
    tilec_evaluation e = {0, 0, 0};
    int32_t i;
    if (!cost || !cost->part_count)
        return -1;
    for (i = 0; i < cost->part_count; i++) {
        const tilec_part *part = &cost->parts[i];
        tilec_wide turns = tilec_max(0, call->kernel->evaluate(part->turns, call->values, &e));
        busy[0] = tilec_add(busy[0], tilec_mul(turns, part->tensor_cycles, &e), &e);
        busy[1] = tilec_add(busy[1], tilec_mul(turns, part->shared_cycles, &e), &e);
        busy[2] = tilec_add(busy[2], tilec_mul(turns, part->memory_cycles, &e), &e);
        busy[3] = tilec_add(busy[3], tilec_mul(turns, part->thread_cycles, &e), &e);
        alone = tilec_add(alone, tilec_mul(turns, part->alone_cycles, &e), &e);
    }
    most = tilec_max(tilec_max(busy[0], busy[1]), tilec_max(busy[2], busy[3]));
    if (cost->blocks_per_program > 2 || cost->cluster_blocks > 2)
        sms -= sms / 16;
    blocks = call->programs * cost->blocks_per_program;
    per_sm = (blocks + sms - 1) / sms;
    memory = call->kernel->evaluate(cost->memory_cycles, call->values, &e);
    first = call->kernel->evaluate(cost->first_cycles, call->values, &e);
    first /= tilec_max(1, tilec_min(blocks, sms * cost->blocks_per_sm));
    hidden = tilec_max(tilec_max(tilec_mul(per_sm, most, &e), memory), first);
    if (hidden) {
        const tilec_part *start = &cost->parts[0];
        most = tilec_max(tilec_max(start->tensor_cycles, start->shared_cycles),
                         tilec_max(start->memory_cycles, start->thread_cycles));
        hidden = tilec_add(hidden, tilec_max(0, start->alone_cycles - most), &e);
    }
    per_sm = (per_sm + cost->blocks_per_sm - 1) / cost->blocks_per_sm;
    hidden = tilec_add(cost->start_cycles, tilec_max(tilec_mul(per_sm, alone, &e), hidden), &e);
    return e.overflow ? -1 : hidden;
}

/* The number of the member that was measured as the fastest at the fitted extents on this card, or -1. */
TILEC_INNER int64_t tilec_measured(const tilec_call *call, const tilec_group *group)
{
    int32_t dims = call->kernel->dim_count, i, row, dim;
    for (i = 0; i < group->table_count; i++) {
        const tilec_table *table = &group->tables[i];
        if (strcmp(table->card, call->card))
            continue;
        for (row = 0; row < table->row_count; row++) {
            const int64_t *extents = table->rows + (int64_t)row * (dims + 1);
            for (dim = 0; dim < dims && call->values[dim].whole == extents[dim]; dim++)
                ;
            if (dim == dims)
                return extents[dims];
        }
    }
    return -1;
}

