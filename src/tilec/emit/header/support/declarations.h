/* ---- Inner: what is used of cuda.h, under names of its own --------------------------------------------------------- */

/* A CUtensorMap. */
typedef struct tilec_map {
    uint64_t opaque[16];
} __attribute__((aligned(128))) tilec_map;

/* A CUlaunchAttributeValue. */
typedef union tilec_attribute_value {
    char room[64];
    uint32_t cluster[3];
    int allowed; /* programmatic serialization */
} tilec_attribute_value;

/* A CUlaunchAttribute. */
typedef struct tilec_attribute {
    int id;
    char padding[8 - sizeof(int)];
    tilec_attribute_value value;
} tilec_attribute;

/* A CUlaunchConfig. */
typedef struct tilec_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    tilec_stream stream;
    tilec_attribute *attributes;
    uint32_t attribute_count;
} tilec_launch_config;

/* A CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct tilec_node {
    void *function; /* NULL: `kernel` counts */
    uint32_t grid[3], block[3], shared_bytes;
    void **slots, **extra;
    void *kernel, *context;
} tilec_node;

/* A CUgraphEdgeData. */
typedef struct tilec_edge {
    unsigned char from_port, to_port, type, reserved[5];
} tilec_edge;

/* Constants of cuda.h. */
enum {
    TILEC_CU_INVALID_VALUE = 1,
    TILEC_CU_MULTIPROCESSOR_COUNT = 16,
    TILEC_CU_CAPABILITY_MAJOR = 75,
    TILEC_CU_CAPABILITY_MINOR = 76,
    TILEC_CU_MAX_DYNAMIC_SHARED_BYTES = 8,
    TILEC_CU_DEVICE_ORDINAL = 9,
    TILEC_CU_CLUSTER_DIMENSION = 4,
    TILEC_CU_PROGRAMMATIC_SERIALIZATION = 6,
    TILEC_CU_OUT_OF_MEMORY = 2,
    TILEC_CU_EVENT_WITHOUT_TIME = 2,
    TILEC_CU_PROGRAMMATIC_PORT = 1,
    TILEC_CU_PROGRAMMATIC_DEPENDENCY = 1
};

/* Where cuda.h is there, what is declared here is compared with it. */
#ifdef CUDA_VERSION
#define TILEC_SAME(name, condition) typedef char tilec_same_##name[(condition) ? 1 : -1] __attribute__((unused))
TILEC_SAME(map, sizeof(tilec_map) == sizeof(CUtensorMap));
TILEC_SAME(config, sizeof(tilec_launch_config) == sizeof(CUlaunchConfig));
TILEC_SAME(node, sizeof(tilec_node) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
TILEC_SAME(slots, offsetof(tilec_node, slots) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
TILEC_SAME(kernel, offsetof(tilec_node, kernel) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
TILEC_SAME(event, (int)TILEC_CU_EVENT_WITHOUT_TIME == (int)CU_EVENT_DISABLE_TIMING);
#if CUDA_VERSION >= 12030
TILEC_SAME(edge, sizeof(tilec_edge) == sizeof(CUgraphEdgeData));
TILEC_SAME(type, offsetof(tilec_edge, type) == offsetof(CUgraphEdgeData, type));
TILEC_SAME(port, (int)TILEC_CU_PROGRAMMATIC_PORT == (int)CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
TILEC_SAME(dependency, (int)TILEC_CU_PROGRAMMATIC_DEPENDENCY == (int)CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
#endif
TILEC_SAME(stream, offsetof(tilec_launch_config, stream) == offsetof(CUlaunchConfig, hStream));
TILEC_SAME(attributes, offsetof(tilec_launch_config, attributes) == offsetof(CUlaunchConfig, attrs));
TILEC_SAME(attribute, sizeof(tilec_attribute) == sizeof(CUlaunchAttribute));
TILEC_SAME(value, offsetof(tilec_attribute, value) == offsetof(CUlaunchAttribute, value));
TILEC_SAME(cluster, (int)TILEC_CU_CLUSTER_DIMENSION == (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
TILEC_SAME(early,
           (int)TILEC_CU_PROGRAMMATIC_SERIALIZATION == (int)CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
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

