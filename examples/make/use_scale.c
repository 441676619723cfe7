#include "scale.h"

/* Whether a vector of this length would be scaled. */
int may_scale(int64_t length)
{
    tilec_tensor z = tilec_vector((void *)0x1000000, TILEC_F32, length);
    tilec_tensor x = tilec_vector((void *)0x2000000, TILEC_F32, length);
    z.device = x.device = 0; /* so that nobody asks the driver */
    return scale_check(&z, &x, 2) == TILEC_SUCCESS;
}
