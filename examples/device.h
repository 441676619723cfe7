/* Device memory for examples, by CUDA's driver, which is opened when a program runs: nothing of CUDA is needed to build. */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*enter)(void *);
    int (*allocate)(uint64_t *, size_t);
    int (*release)(uint64_t);
    int (*to_device)(uint64_t, const void *, size_t);
    int (*to_host)(void *, uint64_t, size_t);
    int (*wait)(void);
} device_functions;

static device_functions cuda;

/* Ends the program if a step fails. */
static void device_need(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "%s failed (%d)\n", what, failed);
    exit(1);
}

static int device_find(void *library, const char *name, void *place)
{
    *(void **)place = dlsym(library, name);
    return *(void **)place != NULL;
}

/* Opens the driver and makes device 0 current; 0 if this machine has none. */
static int device_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    return library && device_find(library, "cuInit", &cuda.init) &&
           device_find(library, "cuDevicePrimaryCtxRetain", &cuda.retain) &&
           device_find(library, "cuCtxSetCurrent", &cuda.enter) &&
           device_find(library, "cuMemAlloc_v2", &cuda.allocate) && device_find(library, "cuMemFree_v2", &cuda.release) &&
           device_find(library, "cuMemcpyHtoD_v2", &cuda.to_device) &&
           device_find(library, "cuMemcpyDtoH_v2", &cuda.to_host) &&
           device_find(library, "cuCtxSynchronize", &cuda.wait) && !cuda.init(0) && !cuda.retain(&context, 0) &&
           !cuda.enter(context);
}

/* Memory of the device with these bytes in it. */
static void *device_copy(const void *values, size_t bytes)
{
    uint64_t address = 0;
    device_need(cuda.allocate(&address, bytes), "allocating memory");
    device_need(cuda.to_device(address, values, bytes), "copying to the device");
    return (void *)(uintptr_t)address;
}

/* The bytes back on the host, once all work is done; the memory is released. */
static void device_take(void *values, void *memory, size_t bytes)
{
    device_need(cuda.wait(), "a kernel");
    device_need(cuda.to_host(values, (uint64_t)(uintptr_t)memory, bytes), "copying to the host");
    device_need(cuda.release((uint64_t)(uintptr_t)memory), "releasing memory");
}

#endif
