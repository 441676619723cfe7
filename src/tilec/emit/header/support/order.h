
/* ---- Inner: which launches come before which --------------------------------------------------------------------- */

TILEC_INNER int tilec_has_bit(const uint64_t *row, int32_t bit)
{
    return (int)(row[bit / 64] >> (bit % 64) & 1);
}

TILEC_INNER void tilec_set_bit(uint64_t *row, int32_t bit)
{
    row[bit / 64] |= (uint64_t)1 << (bit % 64);
}

TILEC_INNER void tilec_join_row(uint64_t *row, const uint64_t *other, int32_t words)
{
    while (words-- > 0)
        row[words] |= other[words];
}

/* The steps that must be done before a step starts, but for those that another of them comes after. */
TILEC_INNER uint64_t *tilec_before(const tilec_run *run, int32_t step)
{
    return run->before + (size_t)run->steps[step].number * (size_t)run->word_count;
}

/* Leaves out of a row what another of it comes after; gives all that is done then. */
TILEC_INNER void tilec_order_step(const tilec_run *run, int32_t step)
{
    int32_t words = run->word_count, one;
    uint64_t *row = tilec_before(run, step), *all = run->long_before + (size_t)step * (size_t)words;
    for (one = 0; one < step; one++)
        if (tilec_has_bit(row, one))
            tilec_join_row(all, run->long_before + (size_t)one * (size_t)words, words);
    for (one = 0; one < words; one++)
        row[one] &= ~all[one];
    tilec_join_row(all, row, words);
}

/* Finds out which steps come before which, through launches without programs. */
TILEC_INNER void tilec_order_steps(const tilec_run *run)
{
    int32_t words = run->word_count, i, a;
    for (i = 0; i < run->pipeline->launch_count; i++) {
        const tilec_pipeline_launch *launch = &run->pipeline->launches[i];
        uint64_t *row = run->before + (size_t)i * (size_t)words;
        for (a = 0; a < launch->after_count; a++) {
            int32_t one = launch->after[a];
            if (run->step_of[one] >= 0)
                tilec_set_bit(row, run->step_of[one]);
            else
                tilec_join_row(row, run->before + (size_t)one * (size_t)words, words);
        }
        if (run->step_of[i] >= 0)
            tilec_order_step(run, run->step_of[i]);
    }
}
