
/* ---- Inner: a pipeline on several streams ------------------------------------------------------------------------ */

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

TILEC_INNER tilec_status tilec_launch_run_on(tilec_run *run, tilec_lanes *lanes)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int32_t i;
    int pushed = 0;
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
    tilec_open_run(&run, set, arguments, 1, TILEC_ROOM_OF(set));
    status = tilec_work_out_run(&run, 1);
    if (!status && run.step_count)
        status = tilec_launch_run_on(&run, &lanes);
    tilec_close_run(&run);
    return status;
}
