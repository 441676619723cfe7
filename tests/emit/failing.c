/* Lets every call of the driver fail, one after the other, in a process of its own each: goes through all that launchers
 * do, says which function failed in which step and how many statuses told of it, and ends where something is wrong after
 * it. `threads` goes through it on 16 threads at once. Built with the emitted header `sample.h`, and sanitized; tests put
 * in DESCRIBED, what the fake driver must know of the kernels. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing_driver.h"

/* Memory of the host is asked for as the driver is. */
static void *fake_memory(size_t bytes)
{
    if (fails_at && ++calls == fails_at) {
        failed = "malloc";
        return NULL;
    }
    return malloc(bytes);
}

static void *fake_cleared(size_t count, size_t bytes)
{
    void *made = fake_memory(count * bytes);
    return made ? memset(made, 0, count * bytes) : NULL;
}

#define malloc fake_memory
#define calloc fake_cleared
#include "sample.h"

static void describe(void)
{
#DESCRIBED
}

static __thread const char *step = "start";
static const char *failed_in; /* the step in which a call failed */
static int failures;

static void look(void)
{
    if (failed && !failed_in)
        failed_in = step;
}

/* A call succeeds, or has a status that is one, and says which error of the driver it was. */
static int told(tilec_status status)
{
    look();
    if (!status)
        return 0;
    failures++;
    if (!strcmp(tilec_strerror(status), "no status of tilec") ||
        !strstr(tilec_last_message(), failed && !strcmp(failed, "malloc") ? "the host has no " : "CUDA")) {
        printf("%s: %s: %d, %s\n", failed ? failed : "none", step, (int)status, tilec_last_message());
        exit(1);
    }
    return 1;
}

/* What every launcher does that there is, on memory that nobody reads. */
static void scenario(void *number)
{
    char *base = (char *)(((uintptr_t)number + 1) << 40);
    const int64_t square[] = {640, 640}, wide[] = {640, 64}, tall[] = {64, 640};
    tilec_tensor z = tilec_vector(base, TILEC_F32, 1000), x = tilec_vector(base + 65536, TILEC_F32, 1000);
    tilec_tensor c = tilec_packed(base + (1 << 21), TILEC_BF16, 2, square);
    tilec_tensor a = tilec_packed(base + (2 << 21), TILEC_BF16, 2, wide);
    tilec_tensor b = tilec_packed(base + (3 << 21), TILEC_BF16, 2, tall);
    tilec_tensor m = tilec_matrix(base + (4 << 21), TILEC_BF16, 64, 64);
    tilec_tensor n = tilec_matrix(base + (5 << 21), TILEC_BF16, 64, 64);
    tilec_stream streams[] = {(tilec_stream)0x100, (tilec_stream)0x200, (tilec_stream)0x300};
    tilec_graph *graph = NULL;
    tilec_plan plan;
    told((step = "load", sample_load(0)));
    told((step = "add", add_launch(streams[0], &z, &x, &x, 1)));
    told((step = "clustered", clustered_launch(streams[0], &c, &a, &b)));
    told((step = "persistent", persistent_launch(streams[0], &c, &a, &b)));
    told((step = "persistent_plan", persistent_plan(&c, &a, &b, &plan)));
    told((step = "scaled", scaled_launch(streams[0], &m, &n, 1)));
    told((step = "sums", sums_launch(streams[0], &z, &x, 1)));
    told((step = "wide", wide_launch(streams[0], &m, &n, 1)));
    told((step = "wide_on", wide_launch_on(streams, 3, &m, &n, 1)));
    if (!told((step = "sums_graph", sums_graph(&graph, &z, &x, 1)))) {
        told((step = "replay", tilec_graph_launch(graph, streams[1])));
        told((step = "update", sums_graph_update(graph, &z, &x, 2)));
        told((step = "replay again", tilec_graph_launch(graph, streams[1])));
    } else if (graph) {
        printf("%s: a graph that was not made is there\n", failed);
        exit(1);
    }
    step = "destroy";
    tilec_graph_destroy(graph);
    look();
}

static void *on_a_thread(void *number)
{
    scenario(number);
    return NULL;
}

static void start(void)
{
    fake.major = 9, fake.sm_count = 132, fake.device_count = 2, fake.clusters_at_once = 32;
    fake.host_from = fake.second_from = UINT64_MAX;
    describe();
    (void)tilec_set_driver(dlopen(NULL, RTLD_NOW));
    look();
}

/* Nothing but what was asked to be given back, and was not, may be left. */
static int is_clean(void)
{
    const int may_stay = failed && (strstr(failed, "Destroy") || strstr(failed, "Free") || strstr(failed, "Pop") ||
                                    !strcmp(failed_in, "destroy"));
    return may_stay || !(noted.events || noted.graphs || noted.executables || noted.taken || noted.allocated || depth);
}

static int child(int number)
{
    fake_fail(number);
    start();
    scenario(NULL);
    step = "unload";
    sample_unload();
    look();
    if (!failed)
        return 3; /* there are no so many calls */
    if (!is_clean() || failures > 1) {
        printf("%s: %d failures, left %d events, %d graphs, %d executables, %d and %d memory, %d contexts\n", failed,
               failures, noted.events, noted.graphs, noted.executables, noted.taken, noted.allocated, depth);
        return 1;
    }
    printf("%s in %s: %d\n", failed, failed_in, failures);
    failures = 0;
    fake_forget();
    depth = 0;
    (void)tilec_set_driver(dlopen(NULL, RTLD_NOW));
    scenario(NULL);
    if (failures || fake.launches < 10) {
        printf("%s: not usable afterwards: %d, %s\n", failed, failures, tilec_last_message());
        return 1;
    }
    sample_unload();
    return 0;
}

int main(int argc, char **argv)
{
    int number, state = 0;
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        pthread_t threads[16];
        start();
        for (number = 0; number < 16; number++)
            pthread_create(&threads[number], NULL, on_a_thread, (void *)(uintptr_t)number);
        for (number = 0; number < 16; number++)
            pthread_join(threads[number], NULL);
        return failures || !is_clean();
    }
    for (number = 1; number < 5000; number++) {
        pid_t one = fork();
        if (!one)
            exit(child(number));
        waitpid(one, &state, 0);
        if (WIFEXITED(state) && WEXITSTATUS(state) == 3)
            return 0;
        if (state)
            return 1;
    }
    return 2;
}
