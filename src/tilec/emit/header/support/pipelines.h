/* What the launchers of all pipelines share; it follows what those of kernels do. */
#ifndef TILEC_PIPELINES
#define TILEC_PIPELINES 1
#ifdef __cplusplus
extern "C" {
#endif

/* Public: a pipeline as a CUDA graph, with the memory for its temporaries; tilec_graph_destroy gives both back. */
typedef struct tilec_graph tilec_graph;

/* ---- Inner: what headers say of their pipelines, as data ----------------------------------------------------------- */

/* Each extent is an expression of the pipeline. Those of one slot are never in use at one time. */
typedef struct tilec_temporary {
    const char *name;
    int32_t rank, dtype, slot;
    const tilec_claim *extents;
} tilec_temporary;

/* What a launch gives for one parameter of its kernel: a tensor, or for a scalar the value of an expression. */
typedef struct tilec_given {
    int32_t tensor; /* the number of a parameter of the pipeline, or how many there are and that of a temporary */
    tilec_kind kind;
    const tilec_claim *value;     /* NULL: a tensor */
    signed char axes[TILEC_RANKS]; /* of the tensor, in the order in which the kernel gets them */
} tilec_given;

typedef struct tilec_pipeline_launch {
    const tilec_set *set; /* the instances that may be launched */
    const char *text; /* which launch it is, in words */
    int32_t after_count;
    const int32_t *after; /* the launches that must be done before */
    const tilec_given *given;
} tilec_pipeline_launch;

typedef struct tilec_pipeline {
    const tilec_kernel *contract; /* parameters, Dims and `requires!`, as a kernel has them */
    int32_t temporary_count, slot_count, launch_count;
    int32_t cell_count, map_count; /* of all launches together, at most */
    const tilec_temporary *temporaries;
    const tilec_pipeline_launch *launches;
} tilec_pipeline;

/* What one function runs: the first that takes the arguments. */
typedef struct tilec_pipelines {
    const char *name;
    const tilec_pipeline *pipelines;
    int32_t count;
    int32_t value_count; /* Dims and parameters of the instance with the most */
} tilec_pipelines;
