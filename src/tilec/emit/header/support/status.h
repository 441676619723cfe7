/* ---- Public: status codes ------------------------------------------------------------------------------------------ */

typedef enum tilec_status {
    TILEC_SUCCESS = 0,
    TILEC_ERROR_NULL = 1,
    TILEC_ERROR_DTYPE = 2,
    TILEC_ERROR_RANK = 3,
    TILEC_ERROR_EXTENT = 4,
    TILEC_ERROR_LIMIT = 5,
    TILEC_ERROR_STRIDE = 6,
    TILEC_ERROR_SELF_OVERLAP = 7,
    TILEC_ERROR_DEVICE = 8,
    TILEC_ERROR_SCALAR = 9,
    TILEC_ERROR_REQUIRES = 10,
    TILEC_ERROR_GRID = 11,
    TILEC_ERROR_ADDRESS = 12,
    TILEC_ERROR_OVERLAP = 13,
    TILEC_ERROR_NO_VARIANT = 14,
    TILEC_ERROR_NO_INSTANCE = 15,
    TILEC_ERROR_ARITHMETIC = 16,
    TILEC_ERROR_NO_DRIVER = 17,
    TILEC_ERROR_NO_DEVICE = 18,
    TILEC_ERROR_ARCHITECTURE = 19,
    TILEC_ERROR_LOAD = 20,
    TILEC_ERROR_TENSOR_MAP = 21,
    TILEC_ERROR_LAUNCH = 22,
    TILEC_ERROR_WORKSPACE = 23,
    TILEC_ERROR_MEMORY = 24,
    TILEC_ERROR_GRAPH = 25
} tilec_status;

/* What a status means; of a number that is none, too. The pointer is to a constant. */
TILEC_PUBLIC const char *tilec_strerror(tilec_status status)
{
    switch (status) {
    case TILEC_SUCCESS: return "success";
    case TILEC_ERROR_NULL: return "an argument is a null pointer";
    case TILEC_ERROR_DTYPE: return "a tensor has another element type than the kernel";
    case TILEC_ERROR_RANK: return "a tensor has another number of axes than the kernel";
    case TILEC_ERROR_EXTENT: return "an extent is not the one that the kernel, or another tensor, asks for";
    case TILEC_ERROR_LIMIT: return "an extent is negative or above the limit";
    case TILEC_ERROR_STRIDE: return "a stride is negative, or that of the last axis is not 1";
    case TILEC_ERROR_SELF_OVERLAP: return "a tensor that is written has several elements at one place";
    case TILEC_ERROR_DEVICE: return "a tensor or the stream is not on the device of the other arguments";
    case TILEC_ERROR_SCALAR: return "a scalar is out of the range of its type";
    case TILEC_ERROR_REQUIRES: return "a `requires!` of the kernel does not hold";
    case TILEC_ERROR_GRID: return "the grid is negative or above the limit";
    case TILEC_ERROR_ADDRESS: return "a tensor has no memory, or is not aligned to its elements";
    case TILEC_ERROR_OVERLAP: return "a tensor that is written shares memory with another";
    case TILEC_ERROR_NO_VARIANT: return "no variant of the kernel takes these alignments, strides or extents";
    case TILEC_ERROR_NO_INSTANCE: return "no instance of the kernel takes these arguments";
    case TILEC_ERROR_ARITHMETIC: return "an expression of the kernel's contract is too large to compute";
    case TILEC_ERROR_NO_DRIVER: return "the CUDA driver cannot be loaded, or is too old";
    case TILEC_ERROR_NO_DEVICE: return "there is no such CUDA device, or it does not answer";
    case TILEC_ERROR_ARCHITECTURE: return "the kernel is not built for the architecture of the device";
    case TILEC_ERROR_LOAD: return "the driver does not load the machine code";
    case TILEC_ERROR_TENSOR_MAP: return "the driver refuses a tensor map";
    case TILEC_ERROR_LAUNCH: return "the driver refuses the launch";
    case TILEC_ERROR_WORKSPACE: return "the workspace of a pipeline is too small, not aligned, or shares memory";
    case TILEC_ERROR_MEMORY: return "there is no memory for a pipeline";
    case TILEC_ERROR_GRAPH: return "the driver refuses the graph, or it is one of another pipeline";
    }
    return "no status of tilec";
}

enum { TILEC_MESSAGE_BYTES = 4096 };
TILEC_ONE __thread char tilec_message_1[TILEC_MESSAGE_BYTES];

/* What went wrong in the last call of this thread, if that call failed: the argument by name, and the values. If it
 * succeeded, "". */
TILEC_PUBLIC const char *tilec_last_message(void)
{
    return tilec_message_1;
}

/* What a call gives. Of one that succeeded there is nothing to say, whatever was tried on the way. */
TILEC_INNER tilec_status tilec_done(tilec_status status)
{
    if (!status)
        tilec_message_1[0] = 0;
    return status;
}

