/* Memory of the fake driver's devices: that of the host. Part of fake_cuda.c. */

static int memory_given, memory_taken_back;

/* For tests: the blocks that were given, and those that came back. */
int fake_memory_given(void) { return memory_given; }
int fake_memory_taken_back(void) { return memory_taken_back; }

#undef cuMemAlloc
#undef cuMemFree
#undef cuMemsetD8
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    void *made = bytes >> 40 ? NULL : calloc(1, bytes);
    if (!made)
        return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
    *address = (CUdeviceptr)(uintptr_t)made;
    __atomic_fetch_add(&memory_given, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    free((void *)(uintptr_t)address);
    __atomic_fetch_add(&memory_taken_back, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char byte, size_t count)
{
    memset((void *)(uintptr_t)address, byte, count);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t count)
{
    memcpy((void *)(uintptr_t)to, from, count);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t count)
{
    memcpy(to, (const void *)(uintptr_t)from, count);
    return CUDA_SUCCESS;
}
