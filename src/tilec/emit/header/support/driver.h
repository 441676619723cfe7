/* ---- Inner: the CUDA driver ---------------------------------------------------------------------------------------- */

/* A CUtensorMap. */
typedef struct tilec_map {
    uint64_t opaque[16];
} __attribute__((aligned(128))) tilec_map;

/* A CUlaunchAttribute that says a cluster. */
typedef struct tilec_cluster_attribute {
    int id;
    char padding[8 - sizeof(int)];
    union {
        char room[64];
        uint32_t cluster[3];
    } value;
} tilec_cluster_attribute;

/* A CUlaunchConfig. */
typedef struct tilec_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    tilec_stream stream;
    tilec_cluster_attribute *attributes;
    uint32_t attribute_count;
} tilec_launch_config;

/* Constants of cuda.h. */
enum {
    TILEC_CU_INVALID_VALUE = 1,
    TILEC_CU_MULTIPROCESSOR_COUNT = 16,
    TILEC_CU_CAPABILITY_MAJOR = 75,
    TILEC_CU_CAPABILITY_MINOR = 76,
    TILEC_CU_MAX_DYNAMIC_SHARED_BYTES = 8,
    TILEC_CU_DEVICE_ORDINAL = 9,
    TILEC_CU_CLUSTER_DIMENSION = 4
};

/* Where cuda.h is there, what is declared here is compared with it. */
#ifdef CUDA_VERSION
#define TILEC_SAME(name, condition) typedef char tilec_same_##name[(condition) ? 1 : -1] __attribute__((unused))
TILEC_SAME(map, sizeof(tilec_map) == sizeof(CUtensorMap));
TILEC_SAME(config, sizeof(tilec_launch_config) == sizeof(CUlaunchConfig));
TILEC_SAME(stream, offsetof(tilec_launch_config, stream) == offsetof(CUlaunchConfig, hStream));
TILEC_SAME(attributes, offsetof(tilec_launch_config, attributes) == offsetof(CUlaunchConfig, attrs));
TILEC_SAME(attribute, sizeof(tilec_cluster_attribute) == sizeof(CUlaunchAttribute));
TILEC_SAME(value, offsetof(tilec_cluster_attribute, value) == offsetof(CUlaunchAttribute, value));
TILEC_SAME(cluster, (int)TILEC_CU_CLUSTER_DIMENSION == (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
TILEC_SAME(count, (int)TILEC_CU_MULTIPROCESSOR_COUNT == (int)CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
TILEC_SAME(major, (int)TILEC_CU_CAPABILITY_MAJOR == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
TILEC_SAME(minor, (int)TILEC_CU_CAPABILITY_MINOR == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
TILEC_SAME(shared,
           (int)TILEC_CU_MAX_DYNAMIC_SHARED_BYTES == (int)CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
TILEC_SAME(ordinal, (int)TILEC_CU_DEVICE_ORDINAL == (int)CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
TILEC_SAME(bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 == 9 && CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 == 11);
TILEC_SAME(float, CU_TENSOR_MAP_DATA_TYPE_FLOAT16 == 6 && CU_TENSOR_MAP_DATA_TYPE_FLOAT64 == 8);
TILEC_SAME(swizzle, CU_TENSOR_MAP_SWIZZLE_32B == 1 && CU_TENSOR_MAP_SWIZZLE_128B == 3);
TILEC_SAME(promotion, CU_TENSOR_MAP_L2_PROMOTION_L2_128B == 2 && CU_TENSOR_MAP_L2_PROMOTION_L2_256B == 3);
#endif

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
    return status ? status : tilec_need_driver();
}

