
/* ---- Inner: a pipeline on one stream ----------------------------------------------------------------------------- */

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

TILEC_INNER tilec_status tilec_launch_run(tilec_run *run, tilec_stream stream, void *own)
{
    int pushed = 0;
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
    tilec_open_run(&run, set, arguments, 1, TILEC_ROOM_OF(set));
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
