/* A pipeline of three launches: at once, and as a graph that is launched again and given another vector. */
#include "../device.h"
#include "unit.h"

enum { COUNT = 5000 };

static void need(tilec_status status)
{
    if (!status)
        return;
    fprintf(stderr, "%s: %s\n", tilec_strerror(status), tilec_last_message());
    exit(1);
}

/* A vector of COUNT numbers, all of them `value`. */
static void *filled(float value)
{
    float values[COUNT];
    int i;
    for (i = 0; i < COUNT; i++)
        values[i] = value;
    return device_copy(values, sizeof values);
}

/* Its squares times COUNT, which is the square of its length if all are alike; the memory is released. */
static void print(const char *what, void *memory)
{
    float values[COUNT];
    device_take(values, memory, sizeof values);
    printf("%s: %.4f\n", what, COUNT * (double)values[COUNT - 1] * (double)values[COUNT - 1]);
}

int main(void)
{
    tilec_tensor x = tilec_vector((void *)65536, TILEC_F32, COUNT), y = tilec_vector((void *)4096, TILEC_F32, COUNT);
    tilec_graph *graph = NULL;
    void *ones, *threes, *given;
    int64_t bytes = 0;

    x.device = y.device = 0; /* so that nobody asks the driver */
    need(unit_workspace(&y, &x, &bytes));
    printf("the temporaries take %lld bytes\n", (long long)bytes);
    if (unit_check(&x, &x))
        printf("in place: %s\n", tilec_last_message());

    if (!device_open()) {
        printf("there is no GPU here\n");
        return 0;
    }
    ones = filled(1), threes = filled(3), given = filled(0);
    x = tilec_vector(ones, TILEC_F32, COUNT);
    y = tilec_vector(given, TILEC_F32, COUNT);
    need(unit_launch(NULL, &y, &x));
    print("at once", given);

    y = tilec_vector(given = filled(0), TILEC_F32, COUNT);
    need(unit_graph(&graph, &y, &x));
    need(tilec_graph_launch(graph, NULL));
    need(tilec_graph_launch(graph, NULL));
    print("as a graph", given);

    x = tilec_vector(threes, TILEC_F32, COUNT);
    y = tilec_vector(given = filled(0), TILEC_F32, COUNT);
    need(unit_graph_update(graph, &y, &x));
    need(tilec_graph_launch(graph, NULL));
    print("of another vector", given);
    tilec_graph_destroy(graph);
    return 0;
}
