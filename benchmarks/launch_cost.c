/* What a launch of `add` on 1024 elements costs the caller in C: the median of bursts that fit the GPU's queue, of a
 * whole launch, and of the checks in it. The rest is the driver's.
 *
 *     tilec build kernels/add.tile --emit header
 *     cc -std=c99 -O2 -Ibuild benchmarks/launch_cost.c -o build/launch_cost -ldl -lpthread
 *     build/launch_cost
 */
#define _POSIX_C_SOURCE 199309L
#include "add.h"

#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 101, BURST = 256, ELEMENTS = 1024 };

static tilec_tensor z, x, y;

static tilec_status launch(void) { return add_launch(NULL, &z, &x, &y); }
static tilec_status check(void) { return add_check(&z, &x, &y); }

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Microseconds of a call. */
static double cost_of(tilec_status (*call)(void), int (*synchronize)(void))
{
    double samples[ROUNDS];
    int round, i;
    for (round = 0; round < ROUNDS; round++) {
        double start = now_us();
        for (i = 0; i < BURST; i++)
            if (call()) {
                printf("%s\n", tilec_last_message());
                exit(1);
            }
        samples[round] = (now_us() - start) / BURST;
        synchronize();
    }
    qsort(samples, ROUNDS, sizeof *samples, compare);
    return samples[ROUNDS / 2];
}

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*init)(unsigned), (*retain)(void **, int), (*enter)(void *), (*synchronize)(void);
    int (*allocate)(uint64_t *, size_t);
    uint64_t memory = 0;
    int known;
    if (!library || !tilec_find(library, "cuInit", &init) || !tilec_find(library, "cuDevicePrimaryCtxRetain", &retain)
        || !tilec_find(library, "cuCtxSetCurrent", &enter) || !tilec_find(library, "cuCtxSynchronize", &synchronize)
        || !tilec_find(library, "cuMemAlloc_v2", &allocate) || init(0) || retain(&context, 0) || enter(context)
        || allocate(&memory, 3 * 4096))
        return puts("there is no GPU"), 1;
    z = tilec_vector((void *)(uintptr_t)memory, TILEC_F32, ELEMENTS);
    x = tilec_vector((void *)(uintptr_t)(memory + 4096), TILEC_F32, ELEMENTS);
    y = tilec_vector((void *)(uintptr_t)(memory + 8192), TILEC_F32, ELEMENTS);
    for (known = 0; known < 2; known++) {
        z.device = x.device = y.device = known ? 0 : -1;
        printf("device %s: a launch %.3f us, its checks %.3f us\n", known ? "given" : "asked for",
               cost_of(launch, synchronize), cost_of(check, synchronize));
    }
    return 0;
}
