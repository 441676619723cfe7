#include <stdint.h>
#include <stdio.h>

int may_blend(int64_t z_length, int64_t x_length);
int may_scale(int64_t length);

int main(void)
{
    printf("blend 1000: %d, blend 1000 with 999: %d, scale 1000: %d\n", may_blend(1000, 1000), may_blend(1000, 999),
           may_scale(1000));
    return 0;
}
