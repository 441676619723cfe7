/* ---- Inner: the CUDA driver ---------------------------------------------------------------------------------------- */

/* What is called of the driver. Results are CUresult, which is an int; devices are CUdevice, which is one too. */
typedef struct tilec_driver {
    int (*init)(unsigned);
    int (*error_name)(int, const char **);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*device_name)(char *, int, int);
    int (*device_attribute)(int *, int, int);
    int (*primary_retain)(void **, int);
    int (*context_current)(void **);
    int (*context_device)(int *);
    int (*context_push)(void *);
    int (*context_pop)(void **);
    int (*pointer_attribute)(void *, int, uint64_t);
    int (*library_load)(void **, const void *, int *, void **, unsigned, int *, void **, unsigned);
    int (*library_unload)(void *);
    int (*library_kernel)(void **, void *, const char *);
    int (*kernel_set)(int, int, void *, int);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, tilec_stream, void **,
                  void **);
    int (*launch_extended)(const tilec_launch_config *, void *, void **, void **);
    int (*clusters_at_once)(int *, void *, const tilec_launch_config *);
    int (*map_encode)(tilec_map *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                      const uint32_t *, int, int, int, int);
    int (*stream_device)(tilec_stream, int *); /* NULL where the driver is older than CUDA 12.8 */
    int (*stream_create)(tilec_stream *, unsigned);
    int (*stream_wait)(tilec_stream);
    int (*stream_destroy)(tilec_stream);
    /* Of pipelines; NULL where the driver lacks them. Events, graphs and their nodes are handles. */
    int (*memory_take)(uint64_t *, size_t, tilec_stream);
    int (*memory_give)(uint64_t, tilec_stream);
    int (*memory_allocate)(uint64_t *, size_t);
    int (*memory_free)(uint64_t);
    int (*context_wait)(void);
    int (*event_create)(void **, unsigned);
    int (*event_record)(void *, tilec_stream);
    int (*event_destroy)(void *);
    int (*stream_wait_event)(tilec_stream, void *, unsigned);
    int (*stream_captured)(tilec_stream, int *);
    int (*graph_create)(void **, unsigned);
    int (*graph_destroy)(void *);
    int (*graph_add_kernel)(void **, void *, void *const *, size_t, const tilec_node *);
    int (*graph_add_edges)(void *, void *const *, void *const *, const tilec_edge *, size_t);
    int (*graph_set_attribute)(void *, int, const tilec_attribute_value *);
    int (*graph_instantiate)(void **, void *, unsigned long long);
    int (*graph_set_kernel)(void *, void *, const tilec_node *);
    int (*graph_launch)(void *, tilec_stream);
    int (*graph_forget)(void *);
} tilec_driver;

/* What is known of a device, once `is_known`. */
typedef struct tilec_device {
    int is_known, handle, sm_count, major, minor;
    char name[128];
    void *primary; /* its primary context, or NULL if nobody needed it */
} tilec_device;

enum { TILEC_DEVICES = 64 };

typedef struct tilec_state {
    void *library; /* what dlopen or the program gave */
    int is_ready;  /* `driver` may be used */
    int device_count;
    tilec_driver driver;
    tilec_device devices[TILEC_DEVICES];
} tilec_state;

TILEC_ONE pthread_mutex_t tilec_lock_1 = PTHREAD_MUTEX_INITIALIZER; /* for all that is done once */
TILEC_ONE tilec_state tilec_state_1;

TILEC_INNER const char *tilec_cuda_error(int code)
{
    const char *name = NULL;
    if (tilec_state_1.driver.error_name)
        tilec_state_1.driver.error_name(code, &name);
    return name ? name : "an unknown error of CUDA";
}

/* Puts the address of a function of the driver into a pointer to a function, which C has no cast for. */
TILEC_INNER int tilec_find(void *library, const char *name, void *place)
{
    void *found = dlsym(library, name);
    memcpy(place, &found, sizeof found);
    return found != NULL;
}

TILEC_INNER void tilec_find_for_pipelines(void *library, tilec_driver *driver)
{
    tilec_find(library, "cuMemAllocAsync", &driver->memory_take);
    tilec_find(library, "cuMemFreeAsync", &driver->memory_give);
    tilec_find(library, "cuMemAlloc_v2", &driver->memory_allocate);
    tilec_find(library, "cuMemFree_v2", &driver->memory_free);
    tilec_find(library, "cuCtxSynchronize", &driver->context_wait);
    tilec_find(library, "cuEventCreate", &driver->event_create);
    tilec_find(library, "cuEventRecord", &driver->event_record);
    tilec_find(library, "cuEventDestroy_v2", &driver->event_destroy);
    tilec_find(library, "cuStreamWaitEvent", &driver->stream_wait_event);
    tilec_find(library, "cuStreamIsCapturing", &driver->stream_captured);
    tilec_find(library, "cuGraphCreate", &driver->graph_create);
    tilec_find(library, "cuGraphDestroy", &driver->graph_destroy);
    tilec_find(library, "cuGraphAddKernelNode_v2", &driver->graph_add_kernel);
    tilec_find(library, "cuGraphAddDependencies_v2", &driver->graph_add_edges);
    tilec_find(library, "cuGraphKernelNodeSetAttribute", &driver->graph_set_attribute);
    tilec_find(library, "cuGraphInstantiateWithFlags", &driver->graph_instantiate);
    tilec_find(library, "cuGraphExecKernelNodeSetParams_v2", &driver->graph_set_kernel);
    tilec_find(library, "cuGraphLaunch", &driver->graph_launch);
    tilec_find(library, "cuGraphExecDestroy", &driver->graph_forget);
}

TILEC_INNER tilec_status tilec_find_all(void *library, tilec_driver *driver)
{
    const struct {
        const char *name;
        void *place;
    } wanted[] = {
        {"cuInit", &driver->init},
        {"cuGetErrorName", &driver->error_name},
        {"cuDeviceGetCount", &driver->device_count},
        {"cuDeviceGet", &driver->device_get},
        {"cuDeviceGetName", &driver->device_name},
        {"cuDeviceGetAttribute", &driver->device_attribute},
        {"cuDevicePrimaryCtxRetain", &driver->primary_retain},
        {"cuCtxGetCurrent", &driver->context_current},
        {"cuCtxGetDevice", &driver->context_device},
        {"cuCtxPushCurrent_v2", &driver->context_push},
        {"cuCtxPopCurrent_v2", &driver->context_pop},
        {"cuPointerGetAttribute", &driver->pointer_attribute},
        {"cuLibraryLoadData", &driver->library_load},
        {"cuLibraryUnload", &driver->library_unload},
        {"cuLibraryGetKernel", &driver->library_kernel},
        {"cuKernelSetAttribute", &driver->kernel_set},
        {"cuLaunchKernel", &driver->launch},
        {"cuLaunchKernelEx", &driver->launch_extended},
        {"cuOccupancyMaxActiveClusters", &driver->clusters_at_once},
        {"cuTensorMapEncodeTiled", &driver->map_encode},
        {"cuStreamCreate", &driver->stream_create},
        {"cuStreamSynchronize", &driver->stream_wait},
        {"cuStreamDestroy_v2", &driver->stream_destroy},
    };
    size_t i;
    for (i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!tilec_find(library, wanted[i].name, wanted[i].place))
            return tilec_fail(TILEC_ERROR_NO_DRIVER, "the CUDA driver has no `%s`: CUDA 12 or later is needed",
                              wanted[i].name);
    tilec_find(library, "cuStreamGetDevice", &driver->stream_device);
    tilec_find_for_pipelines(library, driver);
    return TILEC_SUCCESS;
}

/* With the lock held. */
TILEC_INNER tilec_status tilec_open_driver(void)
{
    tilec_state *state = &tilec_state_1;
    tilec_driver found;
    tilec_status status;
    int code;
    if (!state->library)
        state->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!state->library) {
        const char *why = dlerror();
        return tilec_fail(TILEC_ERROR_NO_DRIVER, "the CUDA driver cannot be loaded: %s", why ? why : "no reason given");
    }
    memset(&found, 0, sizeof found);
    status = tilec_find_all(state->library, &found);
    if (status)
        return status;
    state->driver = found;
    code = found.init(0);
    if (!code)
        code = found.device_count(&state->device_count);
    if (code)
        return tilec_fail(TILEC_ERROR_NO_DEVICE, "the CUDA driver does not start: %s", tilec_cuda_error(code));
    __atomic_store_n(&state->is_ready, 1, __ATOMIC_RELEASE);
    return TILEC_SUCCESS;
}

/* The driver, started. Cheap from the second time on. */
TILEC_INNER tilec_status tilec_need_driver(void)
{
    tilec_status status = TILEC_SUCCESS;
    if (__atomic_load_n(&tilec_state_1.is_ready, __ATOMIC_ACQUIRE))
        return TILEC_SUCCESS;
    pthread_mutex_lock(&tilec_lock_1);
    if (!tilec_state_1.is_ready)
        status = tilec_open_driver();
    pthread_mutex_unlock(&tilec_lock_1);
    return status;
}

/* Public: says which driver to use, a handle of dlopen, before the first launch; otherwise libcuda.so.1 is opened. */
TILEC_PUBLIC tilec_status tilec_set_driver(void *handle)
{
    tilec_status status = TILEC_SUCCESS;
    pthread_mutex_lock(&tilec_lock_1);
    if (tilec_state_1.is_ready && tilec_state_1.library != handle)
        status = tilec_fail(TILEC_ERROR_NO_DRIVER, "another CUDA driver is in use already");
    else
        tilec_state_1.library = handle;
    pthread_mutex_unlock(&tilec_lock_1);
    return tilec_done(status ? status : tilec_need_driver());
}

