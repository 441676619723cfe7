/* ---- Inner: the launch --------------------------------------------------------------------------------------------- */

/* How many parameters the machine code of a kernel has beside tensor maps. */
TILEC_INNER int32_t tilec_cell_count(const tilec_kernel *kernel)
{
    int32_t p, count = kernel->dim_count;
    for (p = 0; p < kernel->parameter_count; p++)
        count += kernel->parameters[p].rank > 1 ? kernel->parameters[p].rank : 1;
    return count;
}

/* The next multiple of what tensor maps lie at. */
TILEC_INNER size_t tilec_to_line(size_t bytes)
{
    return (bytes + 127) / 128 * 128;
}

/* The parameters of the machine code, each in a cell of 64 bits, as docs/abi.md orders them. */
TILEC_INNER int32_t tilec_pack(const tilec_call *call, uint64_t *cells)
{
    const tilec_kernel *kernel = call->kernel;
    int32_t p, axis, count = 0;
    for (p = 0; p < kernel->parameter_count; p++) {
        const tilec_tensor *tensor = call->arguments[p].tensor;
        if (kernel->parameters[p].rank < 0) {
            cells[count++] = call->bits[p];
            continue;
        }
        cells[count++] = (uint64_t)(uintptr_t)tensor->data;
        for (axis = 0; axis < tensor->rank - 1; axis++)
            cells[count++] = (uint64_t)tilec_step(tensor, axis);
    }
    for (p = 0; p < kernel->dim_count; p++)
        cells[count++] = (uint64_t)call->values[p].whole;
    return count;
}

/* A launch that is worked out, as the driver is told of it. */
typedef struct tilec_ready {
    const tilec_kernel *kernel;
    const tilec_variant *variant;
    tilec_entry *entry;
    void **slots;
    uint32_t grid[3];
} tilec_ready;

TILEC_INNER int tilec_is_clustered(const tilec_variant *variant)
{
    return variant->cluster[0] * variant->cluster[1] * variant->cluster[2] > 1;
}

/* The launch for cuLaunchKernelEx; `early`: it may begin while the one before it on its stream still runs. */
TILEC_INNER void tilec_configure(const tilec_ready *ready, int early, tilec_launch_config *config,
                                 tilec_attribute attributes[2])
{
    memset(config, 0, sizeof *config);
    memset(attributes, 0, 2 * sizeof *attributes);
    memcpy(config->grid, ready->grid, sizeof config->grid);
    config->block[0] = (uint32_t)ready->variant->threads;
    config->block[1] = config->block[2] = 1;
    config->shared_bytes = (uint32_t)ready->variant->dynamic_smem_bytes;
    config->attributes = attributes;
    if (tilec_is_clustered(ready->variant)) {
        tilec_attribute *attribute = &attributes[config->attribute_count++];
        attribute->id = TILEC_CU_CLUSTER_DIMENSION;
        memcpy(attribute->value.cluster, ready->variant->cluster, sizeof attribute->value.cluster);
    }
    if (early) {
        tilec_attribute *attribute = &attributes[config->attribute_count++];
        attribute->id = TILEC_CU_PROGRAMMATIC_SERIALIZATION;
        attribute->value.allowed = 1;
    }
}

/* So many of the blocks of a persistent variant that all their clusters run at one time: multiprocessors come in
 * groups, which hold whole clusters, and a cluster without room would begin when all others are done. */
TILEC_INNER void tilec_fit_clusters(tilec_ready *ready, int32_t device)
{
    const tilec_variant *variant = ready->variant;
    tilec_entry *entry = ready->entry;
    tilec_attribute attributes[2];
    tilec_launch_config config;
    int clusters = 0;
    uint32_t room;
    if (!variant->persistent_blocks_per_sm || variant->cluster[0] <= 2)
        return;
    pthread_mutex_lock(&tilec_lock_1);
    if (entry->clusters_on != device + 1) {
        int32_t sm_count = tilec_state_1.devices[device].sm_count;
        tilec_configure(ready, 0, &config, attributes);
        config.grid[0] =
            (uint32_t)(variant->persistent_blocks_per_sm * sm_count / variant->cluster[0] * variant->cluster[0]);
        if (config.grid[0] < (uint32_t)variant->cluster[0])
            config.grid[0] = (uint32_t)variant->cluster[0];
        if (tilec_state_1.driver.clusters_at_once(&clusters, entry->function, &config))
            clusters = 0;
        entry->clusters = clusters;
        entry->clusters_on = device + 1;
    }
    clusters = entry->clusters;
    pthread_mutex_unlock(&tilec_lock_1);
    room = (uint32_t)(clusters * variant->cluster[0]);
    if (clusters > 0 && room < ready->grid[0])
        ready->grid[0] = room;
}

/* Loads the machine code of a launch, in the context of the device. The slots are the caller's to fill. */
TILEC_INNER tilec_status tilec_make_ready(tilec_ready *ready, const tilec_call *call, void **slots)
{
    const tilec_cubin *cubin = call->build->cubin;
    tilec_status status = tilec_need_entry(cubin, call->variant, call->device);
    ready->kernel = call->kernel;
    ready->variant = call->variant;
    ready->entry = &cubin->entries[call->variant->entry];
    ready->slots = slots;
    memcpy(ready->grid, call->grid, sizeof ready->grid);
    if (!status)
        tilec_fit_clusters(ready, call->device);
    return status;
}

/* Starts it, in the context of the device. */
TILEC_INNER tilec_status tilec_send(const tilec_ready *ready, tilec_stream stream, int early)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    const tilec_variant *variant = ready->variant;
    int code;
    if (early || tilec_is_clustered(variant)) {
        tilec_attribute attributes[2];
        tilec_launch_config config;
        tilec_configure(ready, early, &config, attributes);
        config.stream = stream;
        code = driver->launch_extended(&config, ready->entry->function, ready->slots, NULL);
    } else {
        code = driver->launch(ready->entry->function, ready->grid[0], ready->grid[1], ready->grid[2],
                              (unsigned)variant->threads, 1, 1, (unsigned)variant->dynamic_smem_bytes, stream,
                              ready->slots, NULL);
    }
    if (code)
        return tilec_fail(TILEC_ERROR_LAUNCH, "`%s` was not launched: %s", ready->kernel->symbol,
                          tilec_cuda_error(code));
    return TILEC_SUCCESS;
}

/* In the context of the device. */
TILEC_INNER tilec_status tilec_start(const tilec_call *call, tilec_stream stream)
{
    const tilec_variant *variant = call->variant;
    int32_t count = tilec_cell_count(call->kernel), i;
    size_t map_count = (size_t)variant->map_count, slot_count = (size_t)count + map_count;
    uint64_t *cells = (uint64_t *)__builtin_alloca((size_t)count * sizeof *cells);
    void **slots = (void **)__builtin_alloca(slot_count * sizeof *slots);
    tilec_map *maps = (tilec_map *)tilec_to_line((uintptr_t)__builtin_alloca(map_count * sizeof *maps + 127));
    tilec_ready ready;
    tilec_status status = tilec_make_ready(&ready, call, slots);
    (void)tilec_pack(call, cells);
    for (i = 0; i < count; i++)
        slots[i] = &cells[i];
    for (i = 0; i < variant->map_count && !status; i++) {
        const tilec_wanted_map *wanted = &variant->maps[i];
        status = tilec_need_map(call->kernel, wanted, call->arguments[wanted->parameter].tensor, &maps[i]);
        slots[count + i] = &maps[i];
    }
    return status ? status : tilec_send(&ready, stream, 0);
}

/* That a stream is one of the device; for machines with several. The default streams are of every device. */
TILEC_INNER tilec_status tilec_check_stream(const char *name, int32_t number, tilec_stream stream)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int device = -1;
    if ((uintptr_t)stream <= 2 || tilec_state_1.device_count < 2 || !driver->stream_device)
        return TILEC_SUCCESS;
    if (driver->stream_device(stream, &device) || device == tilec_state_1.devices[number].handle)
        return TILEC_SUCCESS;
    return tilec_fail(TILEC_ERROR_DEVICE, "`%s`: the tensors are on device %d, the stream on device %d",
                      name, (int)number, device);
}

TILEC_INNER tilec_status tilec_launch(const tilec_set *set, tilec_stream stream, const tilec_argument *arguments)
{
    tilec_call call;
    tilec_device *device = NULL;
    tilec_status status;
    int pushed = 0;
    tilec_begin(&call, set, arguments, 1, TILEC_ROOM_OF(set), set->value_count);
    status = tilec_work_out(&call);
    if (status || call.programs == 0)
        return status; /* without programs there is nothing to do, and that is success */
    status = tilec_need_driver();
    if (status)
        return status;
    if (call.device < 0)
        call.device = tilec_current_device();
    status = tilec_need_device(call.device, &device);
    if (!status)
        status = tilec_take_build(set, call.device, &call.build);
    if (!status)
        status = tilec_check_stream(call.kernel->symbol, call.device, stream);
    if (!status)
        status = tilec_enter(call.device, &pushed);
    if (status)
        return status;
    status = tilec_start(&call, stream);
    tilec_leave(pushed);
    return status;
}

TILEC_INNER tilec_status tilec_check(const tilec_set *set, const tilec_argument *arguments)
{
    tilec_call call;
    tilec_begin(&call, set, arguments, 0, TILEC_ROOM_OF(set), set->value_count);
    return tilec_work_out(&call);
}

TILEC_INNER tilec_status tilec_plan_of(const tilec_set *set, const tilec_argument *arguments, tilec_plan *plan)
{
    tilec_call call;
    tilec_status status;
    if (!plan)
        return tilec_fail(TILEC_ERROR_NULL, "`%s`: `plan` is a null pointer", set->name);
    memset(plan, 0, sizeof *plan);
    tilec_begin(&call, set, arguments, 1, TILEC_ROOM_OF(set), set->value_count);
    status = tilec_work_out(&call);
    if (!status)
        tilec_tell(&call, plan);
    return status;
}

/* Loads all that some sets launch, before the first launch does. */
TILEC_INNER tilec_status tilec_preload(const tilec_set *const *sets, int32_t count, int32_t number)
{
    const tilec_build *build = NULL;
    int32_t s, g, k, v;
    int pushed = 0;
    tilec_status status = tilec_take_build(sets[0], number, &build);
    if (!status)
        status = tilec_enter(number, &pushed);
    if (status)
        return status;
    for (s = 0; s < count && !status; s++) {
        status = tilec_take_build(sets[s], number, &build);
        for (g = 0; !status && g < build->group_count; g++)
            for (k = 0; !status && k < build->groups[g].kernel_count; k++) {
                const tilec_kernel *kernel = build->groups[g].kernels[k];
                for (v = 0; !status && v < kernel->variant_count; v++)
                    status = tilec_need_entry(build->cubin, &kernel->variants[v], number);
            }
    }
    tilec_leave(pushed);
    return status;
}

TILEC_INNER void tilec_unload_all(const tilec_set *set)
{
    int32_t i;
    for (i = 0; i < set->build_count; i++)
        tilec_unload(set->builds[i].cubin);
}

