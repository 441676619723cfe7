/* ---- Inner: machine code ------------------------------------------------------------------------------------------- */

/* Makes the context of a device current, if it is not. `pushed` says whether to take it off again. */
TILEC_INNER tilec_status tilec_enter(int32_t number, int *pushed)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    tilec_device *device = &tilec_state_1.devices[number];
    void *context = NULL;
    int current = -1, code = driver->context_current(&context);
    *pushed = 0;
    if (!code && context && !driver->context_device(&current) && current == device->handle)
        return TILEC_SUCCESS;
    pthread_mutex_lock(&tilec_lock_1);
    context = device->primary;
    code = context ? 0 : driver->primary_retain(&context, device->handle);
    device->primary = code ? NULL : context;
    pthread_mutex_unlock(&tilec_lock_1);
    if (!code)
        code = driver->context_push(context);
    if (code)
        return tilec_fail(TILEC_ERROR_NO_DEVICE, "device %d has no context: %s", (int)number, tilec_cuda_error(code));
    *pushed = 1;
    return TILEC_SUCCESS;
}

TILEC_INNER void tilec_leave(int pushed)
{
    void *context;
    if (pushed)
        tilec_state_1.driver.context_pop(&context);
}

TILEC_INNER tilec_status tilec_not_loaded(const tilec_cubin *cubin, const char *symbol, int code)
{
    return tilec_fail(TILEC_ERROR_LOAD, "%s: the driver does not load `%s`: %s", cubin->file, symbol,
                      tilec_cuda_error(code));
}

/* With the lock held, in the context of the device. */
TILEC_INNER tilec_status tilec_load(const tilec_cubin *cubin, const tilec_variant *variant, int32_t device)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    tilec_entry *entry = &cubin->entries[variant->entry];
    int code = 0;
    if (!*cubin->library) {
        void *library = NULL;
        code = driver->library_load(&library, cubin->image, NULL, NULL, 0, NULL, NULL, 0);
        if (code)
            return tilec_not_loaded(cubin, variant->symbol, code);
        *cubin->library = library;
    }
    if (!entry->function)
        code = driver->library_kernel(&entry->function, *cubin->library, variant->symbol);
    if (code) {
        entry->function = NULL;
        return tilec_not_loaded(cubin, variant->symbol, code);
    }
    if (variant->dynamic_smem_bytes && variant->static_smem_bytes + variant->dynamic_smem_bytes > 48 * 1024)
        code = driver->kernel_set(TILEC_CU_MAX_DYNAMIC_SHARED_BYTES, variant->dynamic_smem_bytes, entry->function,
                                  tilec_state_1.devices[device].handle);
    if (code)
        return tilec_fail(TILEC_ERROR_LAUNCH, "`%s` needs %d bytes of shared memory: %s", variant->symbol,
                          variant->static_smem_bytes + variant->dynamic_smem_bytes, tilec_cuda_error(code));
    __atomic_fetch_or(&entry->ready_on, (uint64_t)1 << device, __ATOMIC_RELEASE);
    return TILEC_SUCCESS;
}

/* The entry point of a variant on a device, whose context is current. */
TILEC_INNER tilec_status tilec_need_entry(const tilec_cubin *cubin, const tilec_variant *variant, int32_t device)
{
    tilec_entry *entry = &cubin->entries[variant->entry];
    uint64_t bit = (uint64_t)1 << device;
    tilec_status status = TILEC_SUCCESS;
    if (__atomic_load_n(&entry->ready_on, __ATOMIC_ACQUIRE) & bit)
        return TILEC_SUCCESS;
    pthread_mutex_lock(&tilec_lock_1);
    if (!(entry->ready_on & bit))
        status = tilec_load(cubin, variant, device);
    pthread_mutex_unlock(&tilec_lock_1);
    return status;
}

/* Gives machine code back, if it was loaded; the next launch loads it again. */
TILEC_INNER void tilec_unload(const tilec_cubin *cubin)
{
    pthread_mutex_lock(&tilec_lock_1);
    if (*cubin->library) {
        tilec_state_1.driver.library_unload(*cubin->library);
        memset(cubin->entries, 0, (size_t)cubin->entry_count * sizeof *cubin->entries);
        *cubin->library = NULL;
    }
    pthread_mutex_unlock(&tilec_lock_1);
}

