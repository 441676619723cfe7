/* ---- Inner: what the headers say of their kernels, as data --------------------------------------------------------- */

/* Holds every number that expressions, strides and addresses give, so that nothing wraps unseen. */
__extension__ typedef __int128 tilec_wide;

/* The limits of docs/abi.md. */
#define TILEC_COUNT_LIMIT ((tilec_wide)1 << 40)
#define TILEC_ELEMENT_LIMIT ((tilec_wide)1 << 60)
#define TILEC_SPAN_LIMIT ((tilec_wide)1 << 63)
#define TILEC_ADDRESS_END ((tilec_wide)1 << 64)
#define TILEC_NUMBERED_LIMIT ((tilec_wide)1 << 26)
#define TILEC_GRID_X_LIMIT ((tilec_wide)2147483647)
#define TILEC_GRID_YZ_LIMIT ((tilec_wide)65535)
enum { TILEC_MAP_RANKS = 5 };

typedef enum tilec_kind { TILEC_TRUTH, TILEC_WHOLE, TILEC_REAL } tilec_kind;

typedef struct tilec_value {
    tilec_wide whole;
    double real;
    tilec_kind kind;
} tilec_value;

/* What a caller passes for one parameter; `tensor` is NULL for a scalar. */
typedef struct tilec_argument {
    const tilec_tensor *tensor;
    tilec_value value;
} tilec_argument;

typedef struct tilec_evaluation {
    int overflow;         /* a number does not fit in 64 bits where it should, or in tilec_wide */
    int division_by_zero; /* which a `requires!` must not do */
    double real;          /* the value, if it is a real number that a launch is given */
} tilec_evaluation;

/* Expression number `which` of a kernel; values are those of its Dims, then those of its parameters. */
typedef tilec_wide tilec_expressions(int which, const tilec_value *v, tilec_evaluation *e);

typedef struct tilec_parameter {
    const char *name;
    int32_t rank; /* -1: a scalar */
    int32_t dtype;
    int32_t is_written;
    int64_t extents[TILEC_RANKS]; /* a number, or -1 less the number of a Dim */
} tilec_parameter;

/* A `requires!`, or an extent of the grid. */
typedef struct tilec_claim {
    int32_t expression;
    const char *text;
    const int32_t *named; /* the values that it mentions, then -1 */
} tilec_claim;

typedef struct tilec_precondition {
    int32_t parameter;
    int64_t base_bytes, stride_bytes, row_elements; /* multiples of these */
} tilec_precondition;

typedef struct tilec_wanted_map {
    int32_t parameter, swizzle, writes, rounds;
    uint32_t box[TILEC_MAP_RANKS]; /* the last axis first, as CUDA has it */
} tilec_wanted_map;

/* A part of the model of costs (docs/abi.md, "Families"); `turns` is an expression. */
typedef struct tilec_part {
    int32_t turns;
    int64_t tensor_cycles, shared_cycles, memory_cycles, thread_cycles, alone_cycles;
} tilec_part;

typedef struct tilec_cost {
    int64_t blocks_per_sm, start_cycles, blocks_per_program, cluster_blocks;
    int32_t memory_cycles, first_cycles; /* expressions */
    int32_t part_count;                  /* 0: nobody knows */
    const tilec_part *parts;
} tilec_cost;

typedef struct tilec_variant {
    const char *symbol;
    const char *asks; /* its preconditions, in words */
    int32_t threads, static_smem_bytes, dynamic_smem_bytes;
    int32_t cluster[3];
    int32_t persistent_blocks_per_sm; /* 0: not persistent */
    int32_t split;
    int32_t precondition_count, map_count;
    const tilec_precondition *preconditions;
    const tilec_wanted_map *maps;
    const tilec_cost *cost;
    int32_t entry; /* its number in the cubin */
    int32_t starts_early; /* it may be started while kernels before it run, for which it waits itself */
} tilec_variant;

/* An entry point as the driver has loaded it. */
typedef struct tilec_entry {
    void *function;
    uint64_t ready_on; /* a bit for each device on which it may be launched as it is */
    int32_t clusters_on, clusters;
} tilec_entry;

/* A cubin. */
typedef struct tilec_cubin {
    const char *file, *target;
    int32_t major, minor, specific; /* 'a' and 'f' as in sm_90a; 0 */
    const uint64_t *image;
    void **library; /* what the driver gave for it, or NULL */
    tilec_entry *entries;
    int32_t entry_count;
} tilec_cubin;

typedef struct tilec_kernel {
    const char *symbol;
    const tilec_cubin *cubin;
    int32_t parameter_count, dim_count, requires_count, grid_rank, variant_count;
    const tilec_parameter *parameters;
    const char *const *dims;
    const tilec_claim *requirements, *grid;
    const tilec_variant *variants;
    tilec_expressions *evaluate;
} tilec_kernel;

/* What was measured on a card: rows of extents, each row ended by the number of the fastest member. */
typedef struct tilec_table {
    const char *card;
    const int64_t *rows;
    int32_t row_count;
} tilec_table;

/* Kernels of which the cheapest that takes the arguments is launched; a kernel that is in no family is alone. */
typedef struct tilec_group {
    const tilec_kernel *const *kernels;
    int32_t kernel_count, table_count;
    const tilec_table *tables;
} tilec_group;

typedef struct tilec_build {
    const tilec_cubin *cubin;
    const tilec_group *groups;
    int32_t group_count;
} tilec_build;

/* What one launch function launches, for each target the better first. */
typedef struct tilec_set {
    const char *name;
    const tilec_build *builds;
    int32_t build_count;
    int32_t value_count; /* Dims and parameters of the instance with the most */
} tilec_set;

