/* What the fake driver's memory holds: what was last copied to, or set at, each address. Part of fake_cuda.c. */

enum { HELD = 256 };
static struct { CUdeviceptr address; size_t bytes; void *content; } held[HELD];

/* For tests: the blocks of memory that were not given back. */
int fake_memory_live(void) { return noted.allocated + noted.taken; }

static void *content_of(CUdeviceptr address, size_t bytes)
{
    int i;
    for (i = 0; i < HELD && held[i].bytes && held[i].address != address; i++)
        ;
    if (i == HELD)
        abort(); /* a test has outgrown this driver */
    if (held[i].bytes < bytes) {
        free(held[i].content);
        held[i].content = calloc(1, bytes);
        held[i].address = address;
        held[i].bytes = bytes;
    }
    return held[i].content;
}

#undef cuMemsetD8
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char byte, size_t count)
{
    memset(content_of(address, count), byte, count);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t count)
{
    memcpy(content_of(to, count), from, count);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t count)
{
    memcpy(to, content_of(from, count), count);
    return CUDA_SUCCESS;
}
