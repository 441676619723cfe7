/* ---- Public: arguments --------------------------------------------------------------------------------------------- */

typedef enum tilec_dtype {
    TILEC_BOOL = 1, TILEC_I8, TILEC_U8, TILEC_F8E4M3, TILEC_F8E5M2, TILEC_I16, TILEC_U16, TILEC_F16, TILEC_BF16,
    TILEC_I32, TILEC_U32, TILEC_F32, TILEC_I64, TILEC_U64, TILEC_F64, TILEC_USIZE
} tilec_dtype;

enum { TILEC_RANKS = 8 };

/* A tensor in device memory. Extents and strides are in elements, the outermost axis first. */
typedef struct tilec_tensor {
    void *data; /* the address of element [0, ..., 0] */
    int64_t extents[TILEC_RANKS];
    int64_t strides[TILEC_RANKS];
    int32_t rank;
    int32_t dtype;  /* a tilec_dtype */
    int32_t device; /* the device that the memory is of; -1: ask the driver */
} tilec_tensor;

/* A CUstream or a cudaStream_t, which are the same; NULL is the default stream. */
typedef struct CUstream_st *tilec_stream;

/* What a launch is, or would be. */
typedef struct tilec_plan {
    const char *kernel;  /* the instance */
    const char *variant; /* the entry point of the cubin */
    const char *target;  /* what the cubin is built for */
    uint32_t grid[3];    /* blocks along x, y, z; all 0 if there is nothing to launch */
    uint32_t block[3];
    uint32_t cluster[3];
    uint32_t shared_bytes; /* dynamic shared memory */
    int32_t device;        /* -1: not known */
} tilec_plan;

/* A tensor of any strides. Of more than 8 axes none is made: its rank is refused by every launch. */
TILEC_PUBLIC tilec_tensor tilec_strided(void *data, tilec_dtype dtype, int32_t rank, const int64_t *extents,
                                        const int64_t *strides)
{
    tilec_tensor made;
    int32_t axis;
    memset(&made, 0, sizeof made);
    made.data = data;
    made.rank = rank;
    made.dtype = (int32_t)dtype;
    made.device = -1;
    for (axis = 0; axis < rank && axis < TILEC_RANKS; axis++) {
        made.extents[axis] = extents[axis];
        made.strides[axis] = strides[axis];
    }
    return made;
}

/* A tensor without gaps, in row-major order. */
TILEC_PUBLIC tilec_tensor tilec_packed(void *data, tilec_dtype dtype, int32_t rank, const int64_t *extents)
{
    int64_t strides[TILEC_RANKS] = {0};
    uint64_t stride = 1;
    int32_t axis = rank < TILEC_RANKS ? rank : TILEC_RANKS;
    while (axis-- > 0) {
        strides[axis] = (int64_t)stride;
        stride *= (uint64_t)(extents[axis] > 1 ? extents[axis] : 1); /* wraps only above what launches take */
    }
    return tilec_strided(data, dtype, rank, extents, strides);
}

TILEC_PUBLIC tilec_tensor tilec_vector(void *data, tilec_dtype dtype, int64_t elements)
{
    return tilec_packed(data, dtype, 1, &elements);
}

TILEC_PUBLIC tilec_tensor tilec_matrix(void *data, tilec_dtype dtype, int64_t rows, int64_t columns)
{
    int64_t extents[2];
    extents[0] = rows;
    extents[1] = columns;
    return tilec_packed(data, dtype, 2, extents);
}

