#include "blend.h"

/* Whether a blend of vectors of these lengths would be launched. */
int may_blend(int64_t z_length, int64_t x_length)
{
    tilec_tensor z = tilec_vector((void *)0x1000000, TILEC_F32, z_length);
    tilec_tensor x = tilec_vector((void *)0x2000000, TILEC_F32, x_length);
    z.device = x.device = 0; /* so that nobody asks the driver */
    return blend_check(&z, &x, &x, &x) == TILEC_SUCCESS;
}
