
/* ---- Inner: which launch goes on which stream -------------------------------------------------------------------- */

enum { TILEC_STREAMS = 64 };

/* Which step goes on which stream, and who waits for whom. Rows have a bit for each step. */
typedef struct tilec_lanes {
    const tilec_stream *streams;
    int32_t count, used;
    int32_t last[TILEC_STREAMS]; /* the last step of each, or -1 */
    void *memory;
    int32_t *lane_of;     /* by step */
    void **events;        /* by step: done when it is; NULL where nobody waits for that */
    uint64_t *seen;       /* by stream: the steps that are done before what it is given next */
    uint64_t *seen_after; /* by step: those that are done when it is */
    uint64_t *waits;      /* by step: those on other streams that it waits for */
    uint64_t *ends;       /* the last ones of all streams but the first */
    uint64_t *joins;      /* those that the first stream waits for in the end */
    uint64_t *awaited;    /* those that anybody waits for */
    void *fork;           /* an event that is done when the first stream came to the pipeline */
    int code;             /* what the driver said first against an event */
} tilec_lanes;

TILEC_INNER size_t tilec_share_out_lanes(tilec_lanes *lanes, const tilec_run *run, char *block)
{
    size_t used = 0, steps = (size_t)run->step_count, words = (size_t)run->word_count;
    lanes->lane_of = (int32_t *)tilec_part_of(block, &used, steps, sizeof *lanes->lane_of);
    lanes->events = (void **)tilec_part_of(block, &used, steps, sizeof *lanes->events);
    lanes->seen = (uint64_t *)tilec_part_of(block, &used, (size_t)lanes->count * words, sizeof *lanes->seen);
    lanes->seen_after = (uint64_t *)tilec_part_of(block, &used, steps * words, sizeof *lanes->seen_after);
    lanes->waits = (uint64_t *)tilec_part_of(block, &used, steps * words, sizeof *lanes->waits);
    lanes->ends = (uint64_t *)tilec_part_of(block, &used, words, sizeof *lanes->ends);
    lanes->joins = (uint64_t *)tilec_part_of(block, &used, words, sizeof *lanes->joins);
    lanes->awaited = (uint64_t *)tilec_part_of(block, &used, words, sizeof *lanes->awaited);
    return used;
}

/* The stream of a predecessor that no later step took, else one on which nothing is that the step need not come after,
 * else the one that was taken the longest ago. */
TILEC_INNER int32_t tilec_lane_for(const tilec_run *run, const tilec_lanes *lanes, int32_t step)
{
    const uint64_t *row = tilec_before(run, step);
    const uint64_t *all = run->long_before + (size_t)step * (size_t)run->word_count;
    int32_t lane, oldest = 0;
    for (lane = 0; lane < lanes->used; lane++)
        if (lanes->last[lane] >= 0 && tilec_has_bit(row, lanes->last[lane]))
            return lane;
    for (lane = 0; lane < lanes->count; lane++) {
        if (lanes->last[lane] < 0 || tilec_has_bit(all, lanes->last[lane]))
            return lane;
        if (lanes->last[lane] < lanes->last[oldest])
            oldest = lane;
    }
    return oldest;
}

/* Has a stream wait for the steps of a row that it has not seen: notes them in `waits`. */
TILEC_INNER void tilec_plan_waits(const tilec_run *run, tilec_lanes *lanes, int32_t lane, const uint64_t *row,
                                  uint64_t *waits)
{
    size_t words = (size_t)run->word_count;
    uint64_t *seen = lanes->seen + (size_t)lane * words;
    int32_t one;
    for (one = run->step_count; one-- > 0;)
        if (tilec_has_bit(row, one) && !tilec_has_bit(seen, one)) {
            tilec_set_bit(waits, one);
            tilec_set_bit(lanes->awaited, one);
            tilec_join_row(seen, lanes->seen_after + (size_t)one * words, run->word_count);
        }
}

TILEC_INNER void tilec_plan_lanes(const tilec_run *run, tilec_lanes *lanes)
{
    size_t words = (size_t)run->word_count;
    uint64_t *ends = lanes->ends;
    int32_t i, lane;
    for (lane = 0; lane < lanes->count; lane++)
        lanes->last[lane] = -1;
    for (i = 0; i < run->step_count; i++) {
        uint64_t *seen;
        lane = tilec_lane_for(run, lanes, i);
        seen = lanes->seen + (size_t)lane * words;
        tilec_plan_waits(run, lanes, lane, tilec_before(run, i), lanes->waits + (size_t)i * words);
        tilec_set_bit(seen, i);
        memcpy(lanes->seen_after + (size_t)i * words, seen, words * sizeof *seen);
        lanes->lane_of[i] = lane;
        lanes->last[lane] = i;
        lanes->used = lane < lanes->used ? lanes->used : lane + 1;
    }
    for (lane = lanes->used; lane-- > 1;)
        tilec_set_bit(ends, lanes->last[lane]);
    tilec_plan_waits(run, lanes, 0, ends, lanes->joins);
}

/* Orders the steps and gives each a stream. */
TILEC_INNER tilec_status tilec_take_lanes(const tilec_run *run, tilec_lanes *lanes)
{
    size_t bytes = tilec_share_out_lanes(lanes, run, NULL);
    lanes->memory = calloc(1, bytes + 128);
    if (!lanes->memory)
        return tilec_no_memory(run, bytes);
    tilec_share_out_lanes(lanes, run, (char *)tilec_to_line((uintptr_t)lanes->memory));
    tilec_order_steps(run);
    tilec_plan_lanes(run, lanes);
    return TILEC_SUCCESS;
}
