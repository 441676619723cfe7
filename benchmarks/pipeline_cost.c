/* What pipelines cost in C by each way to run them: the caller's time, and the time until all is done. The kernels are
 * so small that launching them is what takes the time: an MLP of four launches, a chain of a hundred. Medians of
 * bursts that fit the GPU's queue.
 *
 *     tilec build tests/pipelines/programs/{mlp,chain}.tile --emit header
 *     cc -std=c99 -O2 -Ibuild benchmarks/pipeline_cost.c -o build/pipeline_cost -ldl -lpthread
 *     build/pipeline_cost
 */
#define _POSIX_C_SOURCE 199309L
#include "chain.h"
#include "mlp.h"

#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 51, QUEUED = 512, ELEMENTS = 4096, M = 64, D = 128, F = 256 };

static int (*synchronize)(void);
static uint64_t memory;
static tilec_stream streams[2];
static tilec_tensor z, x, y, a, w1, w2, w3;
static tilec_graph *graph;
static int64_t workspace_bytes;

static void stop(const char *why)
{
    puts(why);
    exit(1);
}

static void check(tilec_status status)
{
    if (status)
        stop(tilec_last_message());
}

/* Memory of its own. */
static void *taken(size_t bytes)
{
    static uint64_t used;
    void *start = (void *)(uintptr_t)(memory + used);
    used += (bytes + 255) / 256 * 256;
    return start;
}

static void *workspace(void)
{
    static void *place;
    return place ? place : (place = taken(1 << 20));
}

static tilec_status chain_one(void) { return chain_launch(streams[0], &z, &x); }
static tilec_status chain_own(void)
{
    return chain_launch_with(streams[0], workspace(), workspace_bytes, &z, &x);
}
static tilec_status chain_two(void) { return chain_launch_on(streams, 2, &z, &x); }
static tilec_status chain_checked(void) { return chain_check(&z, &x); }
static tilec_status mlp_one(void) { return mlp_launch(streams[0], &y, &a, &w1, &w2, &w3); }
static tilec_status mlp_own(void)
{
    return mlp_launch_with(streams[0], workspace(), workspace_bytes, &y, &a, &w1, &w2, &w3);
}
static tilec_status mlp_two(void) { return mlp_launch_on(streams, 2, &y, &a, &w1, &w2, &w3); }
static tilec_status mlp_checked(void) { return mlp_check(&y, &a, &w1, &w2, &w3); }
static tilec_status replay(void) { return tilec_graph_launch(graph, streams[0]); }

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void *one, const void *other)
{
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

static void measure(const char *pipeline, const char *way, int launches, tilec_status (*call)(void))
{
    double caller[ROUNDS], done[ROUNDS];
    int burst = QUEUED / launches, round, i;
    for (round = 0; round < ROUNDS; round++) {
        double start;
        synchronize();
        start = now_us();
        for (i = 0; i < burst; i++)
            check(call());
        caller[round] = (now_us() - start) / burst;
        synchronize();
        done[round] = (now_us() - start) / burst;
    }
    qsort(caller, ROUNDS, sizeof *caller, compare);
    qsort(done, ROUNDS, sizeof *done, compare);
    printf("| %s, %d launches | %s | %.2f | %.2f | %.2f |\n", pipeline, launches, way, caller[ROUNDS / 2],
           done[ROUNDS / 2], done[ROUNDS / 2] / launches);
    fflush(stdout);
}

static void start_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*init)(unsigned), (*retain)(void **, int), (*enter)(void *), (*allocate)(uint64_t *, size_t);
    int (*make_stream)(tilec_stream *, unsigned), i;
    if (!library || !tilec_find(library, "cuInit", &init) || !tilec_find(library, "cuDevicePrimaryCtxRetain", &retain)
        || !tilec_find(library, "cuCtxSetCurrent", &enter) || !tilec_find(library, "cuCtxSynchronize", &synchronize)
        || !tilec_find(library, "cuMemAlloc_v2", &allocate) || !tilec_find(library, "cuStreamCreate", &make_stream)
        || init(0) || retain(&context, 0) || enter(context) || allocate(&memory, 1 << 23))
        stop("there is no GPU");
    for (i = 0; i < 2; i++)
        if (make_stream(&streams[i], 1))
            stop("there is no stream");
}

int main(void)
{
    start_driver();
    z = tilec_vector(taken(ELEMENTS * 4), TILEC_F32, ELEMENTS);
    x = tilec_vector(taken(ELEMENTS * 4), TILEC_F32, ELEMENTS);
    y = tilec_matrix(taken(M * D * 2), TILEC_BF16, M, D);
    a = tilec_matrix(taken(M * D * 2), TILEC_BF16, M, D);
    w1 = tilec_matrix(taken(D * F * 2), TILEC_BF16, D, F);
    w2 = tilec_matrix(taken(D * F * 2), TILEC_BF16, F, D);
    w3 = tilec_matrix(taken(D * F * 2), TILEC_BF16, D, F);
    z.device = x.device = y.device = a.device = w1.device = w2.device = w3.device = 0;
    puts("| pipeline | by | caller, µs | until done, µs | a launch, µs |\n| --- | --- | ---: | ---: | ---: |");
    check(mlp_workspace(&y, &a, &w1, &w2, &w3, &workspace_bytes));
    measure("mlp", "one stream", 4, mlp_one);
    measure("mlp", "one stream, workspace brought", 4, mlp_own);
    measure("mlp", "two streams", 4, mlp_two);
    check(mlp_graph(&graph, &y, &a, &w1, &w2, &w3));
    measure("mlp", "graph", 4, replay);
    measure("mlp", "(checks only)", 4, mlp_checked);
    tilec_graph_destroy(graph);
    check(chain_workspace(&z, &x, &workspace_bytes));
    measure("chain", "one stream", 100, chain_one);
    measure("chain", "one stream, workspace brought", 100, chain_own);
    measure("chain", "two streams", 100, chain_two);
    check(chain_graph(&graph, &z, &x));
    measure("chain", "graph", 100, replay);
    measure("chain", "(checks only)", 100, chain_checked);
    tilec_graph_destroy(graph);
    return 0;
}
