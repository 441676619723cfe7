/* ---- Inner: what is used of cuda.h, under names of its own --------------------------------------------------------- */

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

