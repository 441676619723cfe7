/* A CUDA driver that launches nothing and writes down what it was asked: for tests of emitted launchers, which open it
 * instead of libcuda. Compiled against cuda.h where there is one, so that its functions have the driver's own
 * prototypes; otherwise what it needs is declared here. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef FAKE_WITH_CUDA_H
#include <cuda.h>
#else
typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUlib_st *CUlibrary;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef uint64_t CUdeviceptr, cuuint64_t;
typedef uint32_t cuuint32_t;
typedef int CUdevice_attribute, CUpointer_attribute, CUfunction_attribute, CUjit_option, CUlibraryOption;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion;
typedef int CUtensorMapFloatOOBfill;
typedef struct { uint64_t opaque[16]; } CUtensorMap;
typedef union {
    char pad[64];
    struct { unsigned x, y, z; } clusterDim;
    int programmaticStreamSerializationAllowed;
} CUlaunchAttributeValue;
typedef struct { int id; char pad[4]; CUlaunchAttributeValue value; } CUlaunchAttribute;
typedef int CUkernelNodeAttrID, CUstreamCaptureStatus, CUstreamCaptureMode;
typedef CUlaunchAttributeValue CUkernelNodeAttrValue;
typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
typedef struct { unsigned char from_port, to_port, type, reserved[5]; } CUgraphEdgeData;
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};
#endif

enum { KERNELS = 4096, PARAMETERS = 320, NOTED = 64, SLOT_BYTES = 128 };

/* What tests read and set. Tests are alone but where they start threads, which only count. */
struct fake {
    int major, minor, sm_count, device_count, clusters_at_once;
    int fail_init, fail_load, fail_launch, fail_map;
    uint64_t host_from; /* addresses from here on are no device memory */
    uint64_t second_from; /* addresses from here on are of device 1 */
    /* counted */
    int launches, loads, unloads, maps, retained;
    /* of the last launch */
    char kernel[256];
    unsigned grid[3], block[3], cluster[3], shared_bytes;
    uint64_t stream;
    int context; /* the device of the context that was current, or -1 */
    int parameter_count;
    unsigned char parameters[PARAMETERS][SLOT_BYTES];
    /* the greatest that was set of the last kernel asked for more shared memory */
    int shared_limit;
};

struct fake fake = {.major = 9, .sm_count = 132, .device_count = 1, .clusters_at_once = 32,
                    .host_from = UINT64_MAX, .second_from = UINT64_MAX};

static struct {
    char name[256];
    int count, sizes[PARAMETERS], attribute;
} kernels[KERNELS];
static int kernel_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char contexts[64];
static __thread int stack[16];
static __thread int depth; /* stack[depth - 1] is the device of the current context */

/* What the parameters of a kernel are, in bytes each. */
void fake_describe(const char *name, int count, const int *sizes)
{
    int i;
    for (i = 0; i < kernel_count && strcmp(kernels[i].name, name); i++)
        ;
    if (i == KERNELS || count > PARAMETERS)
        abort(); /* a test has outgrown this driver */
    if (i == kernel_count)
        kernel_count++;
    strcpy(kernels[i].name, name);
    kernels[i].count = count;
    memcpy(kernels[i].sizes, sizes, (size_t)count * sizeof *sizes);
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    return fake.fail_init ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    switch ((int)error) {
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) { *count = fake.device_count; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return CUDA_SUCCESS; }

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    strncpy(name, "A Card", (size_t)length);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = fake.sm_count; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = fake.major; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = fake.minor; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    __atomic_fetch_add(&fake.retained, 1, __ATOMIC_RELAXED);
    *context = (CUcontext)(void *)&contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = depth ? (CUcontext)(void *)&contexts[stack[depth - 1]] : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (!depth)
        return CUDA_ERROR_INVALID_VALUE;
    *device = stack[depth - 1];
    return CUDA_SUCCESS;
}

#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    stack[depth++] = (int)((char *)(void *)context - contexts);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult status = cuCtxGetCurrent(context);
    depth--;
    return status;
}

/* For programs that do not know `struct fake`. */
int fake_loads(void) { return fake.loads; }
int fake_launches(void) { return fake.launches; }

/* For tests: the context that this thread has, -1 for none. */
void fake_enter(int device) { depth = 0; if (device >= 0) stack[depth++] = device; }
int fake_current(void) { return depth ? stack[depth - 1] : -1; }

static int questions; /* about pointers */
int fake_questions(void) { return questions; }

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
    (void)attribute;
    __atomic_fetch_add(&questions, 1, __ATOMIC_RELAXED);
    if (pointer >= fake.host_from)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)data = pointer >= fake.second_from;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                           unsigned count, CUlibraryOption *library_options, void **library_values,
                           unsigned library_count)
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    if (fake.fail_load || memcmp(code, "\177ELF", 4))
        return CUDA_ERROR_INVALID_IMAGE;
    __atomic_fetch_add(&fake.loads, 1, __ATOMIC_RELAXED);
    *library = (CUlibrary)(void *)kernels;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    (void)library;
    fake.unloads++;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    int i;
    (void)library;
    for (i = 0; i < kernel_count; i++)
        if (!strcmp(kernels[i].name, name)) {
            *kernel = (CUkernel)(void *)&kernels[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    (void)attribute, (void)kernel, (void)device;
    fake.shared_limit = value;
    return CUDA_SUCCESS;
}

/* What waiting for a stream gives; of the context too if `context` says so. An error of captures is one until the
 * driver was asked so many times whether there is one. */
static int refusal, refused_looks, refuses_context;

void fake_refuse(int code, int looks, int context)
{
    refusal = code;
    refused_looks = looks;
    refuses_context = context;
}

#ifndef FAKE_OLD /* a driver without what pipelines need */
#include "fake_pipelines.h"
#else
static void note_launch(const CUlaunchConfig *config, int index, void **parameters) { (void)config, (void)index, (void)parameters; }
static int fails(int *counter) { (void)counter; return 0; }
static struct { int launch; } fail;
#endif

static CUresult launched(const CUlaunchConfig *config, CUfunction function, void **parameters)
{
    int i, index = (int)((char *)(void *)function - (char *)kernels) / (int)sizeof *kernels;
    if (fake.fail_launch || fails(&fail.launch))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    pthread_mutex_lock(&lock);
    fake.launches++;
    strcpy(fake.kernel, kernels[index].name);
    fake.grid[0] = config->gridDimX, fake.grid[1] = config->gridDimY, fake.grid[2] = config->gridDimZ;
    fake.block[0] = config->blockDimX, fake.block[1] = config->blockDimY, fake.block[2] = config->blockDimZ;
    fake.cluster[0] = fake.cluster[1] = fake.cluster[2] = 1;
    for (i = 0; i < (int)config->numAttrs; i++)
        if ((int)config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            fake.cluster[0] = config->attrs[i].value.clusterDim.x;
            fake.cluster[1] = config->attrs[i].value.clusterDim.y;
            fake.cluster[2] = config->attrs[i].value.clusterDim.z;
        }
    fake.shared_bytes = config->sharedMemBytes;
    fake.stream = (uint64_t)(uintptr_t)config->hStream;
    fake.context = fake_current();
    fake.parameter_count = kernels[index].count;
    memset(fake.parameters, 0, sizeof fake.parameters);
    for (i = 0; i < kernels[index].count; i++)
        memcpy(fake.parameters[i], parameters[i], (size_t)kernels[index].sizes[i]);
    note_launch(config, index, parameters);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
    CUlaunchConfig config;
    (void)extra;
    memset(&config, 0, sizeof config);
    config.gridDimX = x, config.gridDimY = y, config.gridDimZ = z;
    config.blockDimX = bx, config.blockDimY = by, config.blockDimZ = bz;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    return launched(&config, function, parameters);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    (void)extra;
    return launched(config, function, parameters);
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    (void)function, (void)config;
    *clusters = fake.clusters_at_once;
    return CUDA_SUCCESS;
}

/* What it was told, packed: tests read it as the map. */
struct told {
    uint8_t type, rank, interleave, swizzle, promotion, fill, padding[2];
    uint64_t address;
    uint32_t extents[5];
    uint16_t box[5], steps;
    uint64_t strides[4];
};

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    struct told told;
    uint32_t i;
    if (fake.fail_map || (uintptr_t)map % 64)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_fetch_add(&fake.maps, 1, __ATOMIC_RELAXED);
    memset(&told, 0, sizeof told);
    told.type = (uint8_t)type, told.rank = (uint8_t)rank, told.interleave = (uint8_t)interleave;
    told.swizzle = (uint8_t)swizzle, told.promotion = (uint8_t)promotion, told.fill = (uint8_t)fill;
    told.address = (uint64_t)(uintptr_t)address;
    for (i = 0; i < rank; i++) {
        told.extents[i] = (uint32_t)extents[i];
        told.box[i] = (uint16_t)box[i];
        told.steps += (uint16_t)steps[i];
        if (i + 1 < rank)
            told.strides[i] = strides[i];
    }
    memset(map, 0, sizeof *map);
    memcpy(map, &told, sizeof told);
    return CUDA_SUCCESS;
}

#ifdef FAKE_WITH_CUDA_H
#undef cuStreamGetDevice
#endif
CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    *device = (uintptr_t)stream >= 0x20000; /* streams from here on are of device 1 */
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = (CUstream)(uintptr_t)0x10000;
    return CUDA_SUCCESS;
}

static int waits; /* for streams */
int fake_waits(void) { return waits; }

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    return (CUresult)refusal;
}

static __thread CUstreamCaptureMode capture_mode;
int fake_capture_mode(void) { return (int)capture_mode; }

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

#undef cuStreamDestroy
CUresult cuStreamDestroy_v2(CUstream stream) { (void)stream; return CUDA_SUCCESS; }

#ifndef FAKE_OLD
#include "fake_memory.h"
#endif
