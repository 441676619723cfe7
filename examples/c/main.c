/* y = a * x + y on the GPU, with everything that a caller does wrong found out before anything is launched. */
#include "../device.h"
#include "axpy.h"

enum { COUNT = 1000 };

/* Of a check or a launch. */
static void show(const char *what, tilec_status status)
{
    printf("%s: %s", what, tilec_strerror(status));
    printf(status ? ": %s\n" : "\n", tilec_last_message());
}

int main(void)
{
    float x_values[COUNT], y_values[COUNT];
    void *x_memory, *y_memory;
    tilec_tensor x, y, shorter;
    tilec_status status;
    double sum = 0;
    int i;

    /* No GPU is needed to check arguments, if they say themselves on which device they are. */
    y = tilec_vector((void *)4096, TILEC_F32, COUNT);
    x = tilec_vector((void *)65536, TILEC_F32, COUNT);
    shorter = tilec_vector((void *)65536, TILEC_F32, COUNT - 1);
    y.device = x.device = shorter.device = 0;
    show("equal lengths", axpy_check(&y, &x, 2));
    show("a shorter x", axpy_check(&y, &shorter, 2));
    show("y is x", axpy_check(&y, &y, 2));

    if (!device_open()) {
        printf("there is no GPU here\n");
        return 0;
    }
    for (i = 0; i < COUNT; i++) {
        x_values[i] = (float)i;
        y_values[i] = 1;
    }
    x_memory = device_copy(x_values, sizeof x_values);
    y_memory = device_copy(y_values, sizeof y_values);
    y = tilec_vector(y_memory, TILEC_F32, COUNT);
    x = tilec_vector(x_memory, TILEC_F32, COUNT);
    status = axpy_launch(NULL, &y, &x, 2);
    if (status) {
        show("the launch", status);
        return 1;
    }
    device_take(y_values, y_memory, sizeof y_values);
    device_take(x_values, x_memory, sizeof x_values);
    for (i = 0; i < COUNT; i++)
        sum += y_values[i];
    printf("y[7] = %g, the sum of y = %.0f\n", (double)y_values[7], sum); /* 15, 2 * 499500 + 1000 */
    return 0;
}
