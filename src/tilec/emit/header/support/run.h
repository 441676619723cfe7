
/* ---- Inner: a call of a pipeline --------------------------------------------------------------------------------- */

/* A launch that has programs, as far as it is worked out. */
typedef struct tilec_launch_step {
    const tilec_pipeline_launch *launch;
    int32_t number; /* of the launch */
    int32_t cell_count;
    tilec_ready ready;
    uint64_t *cells;
    tilec_map *maps;
} tilec_launch_step;

/* A call of a pipeline as far as it is worked out. `memory` holds all that its pointers of its own point to. */
typedef struct tilec_run {
    const tilec_pipelines *set;
    const tilec_pipeline *pipeline;
    const tilec_argument *arguments;
    tilec_call call; /* the contract of the pipeline */
    void *memory;
    tilec_tensor *tensors; /* of parameters, then temporaries */
    tilec_wide *slots;     /* where each slot of the workspace begins */
    tilec_launch_step *steps;
    int32_t *step_of;    /* by launch: its step; -1 where there is nothing to launch */
    uint64_t *before;    /* by launch: a bit for each step that must be done before it (streams.h) */
    uint64_t *long_before; /* by step: all those that are done when it starts */
    int32_t step_count, word_count; /* words of a row of bits */
    uint64_t *cells;
    void **cell_places;
    tilec_map *maps;
    tilec_plan *plans; /* where launches are told, as many as have room */
    int32_t plan_room;
    uint64_t workspace; /* where the temporaries lie, or would */
    tilec_wide bytes;
} tilec_run;

TILEC_INNER tilec_status tilec_blame_pipeline(const tilec_run *run, tilec_status status)
{
    return tilec_blame(run->pipeline->contract, status);
}

TILEC_INNER tilec_status tilec_blame_launch(const tilec_run *run, const tilec_pipeline_launch *launch,
                                            tilec_status status)
{
    char said[TILEC_MESSAGE_BYTES];
    memcpy(said, tilec_message_1, sizeof said);
    /* Cut off where there is no room: said so to the compiler by the precision. */
    return tilec_fail(status, "`%.300s`: %.1000s: %.2700s", run->pipeline->contract->symbol, launch->text, said);
}

/* Takes the next part of a block of memory; of no block, only counts. */
TILEC_INNER void *tilec_part_of(char *block, size_t *used, size_t count, size_t size)
{
    char *start = block ? block + *used : NULL;
    *used += tilec_to_line((count ? count : 1) * size);
    return start;
}

/* Shares out a block of memory, or counts what it must have. `ordered`: who comes before whom is asked for. */
TILEC_INNER size_t tilec_share_out(tilec_run *run, char *block, int ordered)
{
    const tilec_pipeline *pipeline = run->pipeline;
    size_t used = 0, launches = (size_t)pipeline->launch_count, words = ordered ? (launches + 63) / 64 : 0;
    size_t tensors = (size_t)(pipeline->contract->parameter_count + pipeline->temporary_count);
    run->word_count = (int32_t)words;
    run->maps = (tilec_map *)tilec_part_of(block, &used, (size_t)pipeline->map_count, sizeof *run->maps);
    run->tensors = (tilec_tensor *)tilec_part_of(block, &used, tensors, sizeof *run->tensors);
    run->slots = (tilec_wide *)tilec_part_of(block, &used, (size_t)pipeline->slot_count, sizeof *run->slots);
    run->steps = (tilec_launch_step *)tilec_part_of(block, &used, launches, sizeof *run->steps);
    run->step_of = (int32_t *)tilec_part_of(block, &used, launches, sizeof *run->step_of);
    run->before = (uint64_t *)tilec_part_of(block, &used, launches * words, sizeof *run->before);
    run->long_before = (uint64_t *)tilec_part_of(block, &used, launches * words, sizeof *run->long_before);
    run->cells = (uint64_t *)tilec_part_of(block, &used, (size_t)pipeline->cell_count, sizeof *run->cells);
    run->cell_places = (void **)tilec_part_of(block, &used, (size_t)(pipeline->cell_count + pipeline->map_count),
                                              sizeof *run->cell_places);
    return used;
}

TILEC_INNER tilec_status tilec_no_memory(const tilec_run *run, size_t bytes)
{
    return tilec_fail(TILEC_ERROR_MEMORY, "`%s`: the host has no %llu bytes for the launches",
                      run->pipeline->contract->symbol, (unsigned long long)bytes);
}

TILEC_INNER tilec_status tilec_take_memory(tilec_run *run, int ordered)
{
    size_t bytes = tilec_share_out(run, NULL, ordered);
    run->memory = calloc(1, bytes + 128);
    if (!run->memory)
        return tilec_no_memory(run, bytes);
    tilec_share_out(run, (char *)(tilec_to_line((uintptr_t)run->memory)), ordered);
    return TILEC_SUCCESS;
}

/* `room` is that of tilec_begin. */
TILEC_INNER void tilec_open_run(tilec_run *run, const tilec_pipelines *set, const tilec_argument *arguments,
                                int needs_driver, void *room)
{
    memset(run, 0, sizeof *run);
    run->set = set;
    run->arguments = arguments;
    tilec_begin(&run->call, NULL, arguments, needs_driver, room, set->value_count);
}

TILEC_INNER void tilec_close_run(tilec_run *run)
{
    free(run->memory);
    run->memory = NULL;
}

/* For another instance. */
TILEC_INNER void tilec_reopen_run(tilec_run *run)
{
    tilec_close_run(run);
    run->step_count = 0;
    run->bytes = 0;
}
