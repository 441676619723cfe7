
/* ---- Inner: on several streams ------------------------------------------------------------------------------------- */

enum { TILEC_STREAMS = 64 };

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

TILEC_INNER void tilec_note(tilec_lanes *lanes, int code)
{
    if (!lanes->code)
        lanes->code = code;
}

/* An event that is done when a stream has done all that it was given so far. NULL if the driver refuses. */
TILEC_INNER void *tilec_recorded(tilec_lanes *lanes, int32_t lane)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    void *event = NULL;
    int code = driver->event_create(&event, TILEC_CU_EVENT_WITHOUT_TIME);
    if (code)
        event = NULL;
    else
        code = driver->event_record(event, lanes->streams[lane]);
    tilec_note(lanes, code);
    return event;
}

TILEC_INNER void tilec_await(tilec_lanes *lanes, int32_t lane, void *event)
{
    if (event)
        tilec_note(lanes, tilec_state_1.driver.stream_wait_event(lanes->streams[lane], event, 0));
}

/* Has a stream wait for the steps of a row; gives whether there are any. */
TILEC_INNER int tilec_await_row(const tilec_run *run, tilec_lanes *lanes, int32_t lane, const uint64_t *row)
{
    int32_t one;
    int found = 0;
    for (one = 0; one < run->step_count; one++)
        if (tilec_has_bit(row, one)) {
            tilec_await(lanes, lane, lanes->events[one]);
            found = 1;
        }
    return found;
}

TILEC_INNER tilec_status tilec_refused_streams(const tilec_run *run, int code)
{
    (void)tilec_fail(TILEC_ERROR_LAUNCH, "streams could not be ordered: %s", tilec_cuda_error(code));
    return tilec_blame_pipeline(run, TILEC_ERROR_LAUNCH);
}

/* Starts one step when those before it are done. */
TILEC_INNER tilec_status tilec_send_on(const tilec_run *run, tilec_lanes *lanes, int32_t number)
{
    const tilec_launch_step *step = &run->steps[number];
    int32_t lane = lanes->lane_of[number];
    int waits = tilec_await_row(run, lanes, lane, lanes->waits + (size_t)number * (size_t)run->word_count), early;
    tilec_status status;
    if (!waits && lane > 0 && lanes->last[lane] < 0)
        tilec_await(lanes, lane, lanes->fork);
    if (lanes->code)
        return tilec_refused_streams(run, lanes->code);
    early = !waits && lanes->last[lane] >= 0 && step->ready.variant->starts_early;
    status = tilec_send(&step->ready, lanes->streams[lane], early);
    if (status)
        return tilec_blame_launch(run, step->launch, status);
    lanes->last[lane] = number;
    if (tilec_has_bit(lanes->awaited, number))
        lanes->events[number] = tilec_recorded(lanes, lane);
    return lanes->code ? tilec_refused_streams(run, lanes->code) : TILEC_SUCCESS;
}

/* After a failure: has the first stream wait for what was started on the others, or waits itself. */
TILEC_INNER void tilec_join_started(tilec_lanes *lanes)
{
    int32_t lane;
    lanes->code = 0;
    for (lane = 1; lane < lanes->used; lane++)
        if (lanes->last[lane] >= 0) {
            void *event = tilec_recorded(lanes, lane);
            tilec_await(lanes, 0, event);
            if (event)
                tilec_state_1.driver.event_destroy(event);
        }
    if (lanes->code && tilec_state_1.driver.context_wait)
        tilec_state_1.driver.context_wait();
}

/* Starts the steps; in the context of the device, with the temporaries placed. */
TILEC_INNER tilec_status tilec_send_lanes(const tilec_run *run, tilec_lanes *lanes)
{
    int32_t i;
    tilec_status status = TILEC_SUCCESS;
    for (i = 0; i < lanes->used; i++)
        lanes->last[i] = -1;
    if (lanes->used > 1)
        lanes->fork = tilec_recorded(lanes, 0);
    for (i = 0; i < run->step_count && !status; i++)
        status = tilec_send_on(run, lanes, i);
    if (!status) {
        tilec_await_row(run, lanes, 0, lanes->joins);
        if (lanes->code)
            status = tilec_refused_streams(run, lanes->code);
    }
    if (status)
        tilec_join_started(lanes);
    for (i = 0; i < run->step_count; i++)
        if (lanes->events[i])
            tilec_state_1.driver.event_destroy(lanes->events[i]);
    if (lanes->fork)
        tilec_state_1.driver.event_destroy(lanes->fork);
    return status;
}

TILEC_INNER tilec_status tilec_send_run_on(tilec_run *run, tilec_lanes *lanes)
{
    tilec_status status = tilec_load_steps(run);
    if (!status)
        status = tilec_take_workspace(run, lanes->streams[0]);
    if (status)
        return status;
    status = tilec_map_steps(run);
    if (!status)
        status = tilec_send_lanes(run, lanes);
    if (run->bytes)
        tilec_state_1.driver.memory_give(run->workspace, lanes->streams[0]);
    return status;
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

TILEC_INNER tilec_status tilec_launch_run_on(tilec_run *run, tilec_lanes *lanes)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int32_t i;
    int pushed;
    tilec_status status = tilec_take_run_device(run);
    for (i = 0; i < lanes->count && !status; i++)
        status = tilec_check_stream(run->pipeline->contract->symbol, run->call.device, lanes->streams[i]);
    if (status)
        return status;
    if (tilec_is_missing(driver->event_create && driver->event_record, "cuEventCreate") ||
        tilec_is_missing(driver->event_destroy != NULL, "cuEventDestroy_v2") ||
        tilec_is_missing(driver->stream_wait_event != NULL, "cuStreamWaitEvent"))
        return TILEC_ERROR_NO_DRIVER;
    status = tilec_take_lanes(run, lanes);
    if (!status)
        status = tilec_enter(run->call.device, &pushed);
    if (!status) {
        status = tilec_send_run_on(run, lanes);
        tilec_leave(pushed);
    }
    free(lanes->memory);
    return status;
}

TILEC_INNER tilec_status tilec_pipeline_launch_on(const tilec_pipelines *set, const tilec_stream *streams,
                                                  int32_t stream_count, const tilec_argument *arguments)
{
    tilec_run run;
    tilec_lanes lanes;
    tilec_status status;
    if (!streams || stream_count < 1)
        return tilec_fail(TILEC_ERROR_NULL, "`%s`: expected one stream at least, got %s", set->name,
                          streams ? "none" : "a null pointer");
    memset(&lanes, 0, sizeof lanes);
    lanes.streams = streams;
    lanes.count = stream_count < TILEC_STREAMS ? stream_count : TILEC_STREAMS;
    tilec_open_run(&run, set, arguments, 1);
    status = tilec_work_out_run(&run, 1);
    if (!status && run.step_count)
        status = tilec_launch_run_on(&run, &lanes);
    tilec_close_run(&run);
    return status;
}
