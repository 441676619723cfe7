/* ---- Inner: devices ------------------------------------------------------------------------------------------------ */

/* With the lock held. */
TILEC_INNER tilec_status tilec_ask_device(tilec_device *device, int32_t number)
{
    const tilec_driver *driver = &tilec_state_1.driver;
    int code = driver->device_get(&device->handle, number);
    if (!code)
        code = driver->device_attribute(&device->sm_count, TILEC_CU_MULTIPROCESSOR_COUNT, device->handle);
    if (!code)
        code = driver->device_attribute(&device->major, TILEC_CU_CAPABILITY_MAJOR, device->handle);
    if (!code)
        code = driver->device_attribute(&device->minor, TILEC_CU_CAPABILITY_MINOR, device->handle);
    if (!code)
        code = driver->device_name(device->name, (int)sizeof device->name, device->handle);
    if (code)
        return tilec_fail(TILEC_ERROR_NO_DEVICE, "device %d does not answer: %s", (int)number, tilec_cuda_error(code));
    __atomic_store_n(&device->is_known, 1, __ATOMIC_RELEASE);
    return TILEC_SUCCESS;
}

TILEC_INNER tilec_status tilec_need_device(int32_t number, tilec_device **found)
{
    tilec_status status = tilec_need_driver();
    tilec_device *device;
    if (status)
        return status;
    if (number < 0 || number >= TILEC_DEVICES || number >= tilec_state_1.device_count)
        return tilec_fail(TILEC_ERROR_NO_DEVICE, "there is no device %d: the driver has %d", (int)number,
                          tilec_state_1.device_count);
    *found = device = &tilec_state_1.devices[number];
    if (__atomic_load_n(&device->is_known, __ATOMIC_ACQUIRE))
        return TILEC_SUCCESS;
    pthread_mutex_lock(&tilec_lock_1);
    if (!device->is_known)
        status = tilec_ask_device(device, number);
    pthread_mutex_unlock(&tilec_lock_1);
    return status;
}

/* The device of this thread's context, or the first one. */
TILEC_INNER int32_t tilec_current_device(void)
{
    void *context = NULL;
    int device = 0;
    if (tilec_need_driver() || tilec_state_1.driver.context_current(&context) || !context ||
        tilec_state_1.driver.context_device(&device))
        return 0;
    return device;
}

/* The device of a tensor; -1 if nobody knows, as without a driver. */
TILEC_INNER tilec_status tilec_device_of(const char *name, const tilec_tensor *tensor, int32_t *device)
{
    int found = -1, code;
    *device = tensor->device;
    if (*device >= 0 || !tensor->data || tilec_is_empty(tensor) || tilec_need_driver())
        return TILEC_SUCCESS;
    code = tilec_state_1.driver.pointer_attribute(&found, TILEC_CU_DEVICE_ORDINAL, (uint64_t)(uintptr_t)tensor->data);
    if (code == TILEC_CU_INVALID_VALUE)
        return tilec_fail(TILEC_ERROR_DEVICE, "`%s`: %s is the address of no memory that CUDA knows", name,
                          tilec_number((tilec_wide)(uintptr_t)tensor->data, 16).text);
    *device = code ? -1 : found;
    return TILEC_SUCCESS;
}

/* The same of an argument, for which the driver is asked once in a call: it is most of what a launch costs beside
 * cuLaunchKernel. What was said in other calls does not count, for memory is freed and given out again. */
TILEC_INNER __inline__ __attribute__((always_inline)) tilec_status
tilec_device_of_argument(tilec_call *call, int32_t p, const char *name, int32_t *device)
{
    *device = call->arguments[p].tensor->device;
    if (*device >= 0)
        return TILEC_SUCCESS;
    if (call->devices[p] == TILEC_NOT_ASKED) {
        int32_t found;
        tilec_status status = tilec_device_of(name, call->arguments[p].tensor, &found);
        if (status)
            return status;
        call->devices[p] = found;
    }
    *device = call->devices[p];
    return TILEC_SUCCESS;
}

/* That all tensors lie on one device, which becomes the call's. */
TILEC_INNER tilec_status tilec_take_device(tilec_call *call)
{
    const tilec_kernel *kernel = call->kernel;
    int32_t p, first = -1, device;
    call->device = -1;
    for (p = 0; p < kernel->parameter_count; p++) {
        tilec_status status;
        if (kernel->parameters[p].rank < 0)
            continue;
        status = tilec_device_of_argument(call, p, kernel->parameters[p].name, &device);
        if (status)
            return status;
        if (device < 0)
            continue;
        if (first < 0) {
            first = p;
            call->device = device;
        }
        if (device != call->device)
            return tilec_fail(TILEC_ERROR_DEVICE, "`%s` is on device %d, `%s` on device %d", kernel->parameters[p].name,
                              (int)device, kernel->parameters[first].name, (int)call->device);
    }
    return TILEC_SUCCESS;
}

/* What choices and persistent grids ask of the device. Without a driver, a check, and a launch of no programs, go on as
 * if for some device. */
TILEC_INNER tilec_status tilec_need_machine(tilec_call *call)
{
    tilec_device *device = NULL;
    tilec_status status;
    if (call->sm_count)
        return TILEC_SUCCESS;
    status = tilec_need_device(call->device < 0 ? tilec_current_device() : call->device, &device);
    if (status && call->needs_driver && call->programs > 0)
        return status;
    call->sm_count = status ? 1 : device->sm_count;
    call->card = status ? "" : device->name;
    return TILEC_SUCCESS;
}

/* Whether a cubin runs on a compute capability: an `a` target on its own, others on later minor revisions too. */
TILEC_INNER int tilec_runs_on(const tilec_cubin *cubin, int major, int minor)
{
    if (cubin->major != major)
        return 0;
    return cubin->specific == 'a' ? cubin->minor == minor : cubin->minor <= minor;
}

/* The build for a device: the first that runs there. */
TILEC_INNER tilec_status tilec_take_build(const tilec_set *set, int32_t number, const tilec_build **found)
{
    tilec_device *device = NULL;
    tilec_names targets;
    size_t at = 0;
    int32_t i;
    tilec_status status = tilec_need_device(number, &device);
    if (status)
        return status;
    memset(&targets, 0, sizeof targets);
    for (i = 0; i < set->build_count; i++) {
        const tilec_cubin *cubin = set->builds[i].cubin;
        if (tilec_runs_on(cubin, device->major, device->minor)) {
            *found = &set->builds[i];
            return TILEC_SUCCESS;
        }
        if (at < sizeof targets.text)
            at += (size_t)snprintf(targets.text + at, sizeof targets.text - at, "%s%s", i ? ", " : "", cubin->target);
    }
    return tilec_fail(TILEC_ERROR_ARCHITECTURE, "%s is built for %s, device %d (%s) is sm_%d%d",
                      set->builds[0].cubin->file, targets.text, (int)number, device->name, device->major, device->minor);
}

