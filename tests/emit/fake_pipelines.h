/* What the fake driver does for pipelines: memory, events and graphs, counted and written down in order. Part of
 * fake_cuda.c. */

enum { NOTES = 1024, BEFORE = 64, HANDLES = 1024 };
enum { LAUNCHED = 1, RECORDED, WAITED, TAKEN, GIVEN, ALLOCATED, FREED, ADDED, EDGE, INSTANTIATED, CHANGED, REPLAYED };

/* One thing that was asked of the driver. `before` are events waited for, or nodes, by the numbers of what made them. */
struct note {
    int kind, early, parameter_count, number, before_count, before[BEFORE];
    uint64_t stream, address, bytes;
    char kernel[256];
    unsigned grid[3], block[3], cluster[3], shared_bytes;
    unsigned char parameters[NOTED][SLOT_BYTES];
};

struct noted {
    int count;
    int events, graphs, executables, taken, allocated; /* that were not given back */
    int contexts_waited_for;
    struct note notes[NOTES];
} noted;

/* Each the number of calls after which one fails, once; 0 for never. */
struct failing {
    int launch, event, record, wait, take, allocate, graph, node, instantiate, change, replay;
} fail;

static struct { int is_used, note; } events[HANDLES], nodes[HANDLES];
static int event_count, node_count;
static uint64_t next_address = (uint64_t)1 << 50;
static char graph, executables[2];

void fake_forget(void)
{
    memset(&noted, 0, sizeof noted);
    memset(&fail, 0, sizeof fail);
    memset(events, 0, sizeof events);
    event_count = node_count = 0;
}

static int fails(int *counter)
{
    return *counter && --*counter == 0;
}

/* With the lock held, or alone. */
static struct note *noted_as(int kind, CUstream stream)
{
    struct note *note = &noted.notes[noted.count < NOTES ? noted.count : NOTES - 1];
    noted.count++;
    memset(note, 0, sizeof *note);
    note->kind = kind;
    note->stream = (uint64_t)(uintptr_t)stream;
    return note;
}

static void note_parameters(struct note *note, int index, void **parameters)
{
    int i;
    strcpy(note->kernel, kernels[index].name);
    note->parameter_count = kernels[index].count < NOTED ? kernels[index].count : NOTED;
    for (i = 0; i < note->parameter_count; i++)
        memcpy(note->parameters[i], parameters[i], (size_t)kernels[index].sizes[i]);
}

static void note_launch(const CUlaunchConfig *config, int index, void **parameters)
{
    struct note *note = noted_as(LAUNCHED, config->hStream);
    int i;
    memcpy(note->grid, fake.grid, sizeof note->grid);
    memcpy(note->block, fake.block, sizeof note->block);
    memcpy(note->cluster, fake.cluster, sizeof note->cluster);
    note->shared_bytes = config->sharedMemBytes;
    for (i = 0; i < (int)config->numAttrs; i++)
        if ((int)config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            note->early = config->attrs[i].value.programmaticStreamSerializationAllowed;
    note_parameters(note, index, parameters);
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    struct note *note;
    if (fails(&fail.take) || !bytes || bytes >> 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    note = noted_as(TAKEN, stream);
    note->address = *address = next_address;
    note->bytes = bytes;
    noted.taken++;
    next_address += (bytes + 511) / 512 * 512; /* freed memory is not given out again: each has its own address */
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    pthread_mutex_lock(&lock);
    noted_as(GIVEN, stream)->address = address;
    noted.taken--;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

#undef cuMemAlloc
#undef cuMemFree
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    struct note *note;
    if (fails(&fail.allocate) || !bytes || bytes >> 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    note = noted_as(ALLOCATED, NULL);
    note->address = *address = next_address;
    note->bytes = bytes;
    noted.allocated++;
    next_address += (bytes + 511) / 512 * 512;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    noted_as(FREED, NULL)->address = address;
    noted.allocated--;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    noted.contexts_waited_for++;
    return (CUresult)(refuses_context ? refusal : 0);
}

/* Events are their numbers from 1 on. */
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    if (fails(&fail.event) || flags != 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    event_count = event_count % (HANDLES - 1) + 1;
    events[event_count].is_used = 1;
    events[event_count].note = -1;
    *event = (CUevent)(uintptr_t)event_count;
    noted.events++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    if (fails(&fail.record) || !events[(uintptr_t)event].is_used)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    events[(uintptr_t)event].note = noted.count;
    noted_as(RECORDED, stream)->number = (int)(uintptr_t)event;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    struct note *note;
    if (fails(&fail.wait) || flags || !events[(uintptr_t)event].is_used || events[(uintptr_t)event].note < 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    note = noted_as(WAITED, stream);
    note->before[0] = events[(uintptr_t)event].note;
    note->before_count = 1;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

#undef cuEventDestroy
CUresult cuEventDestroy_v2(CUevent event)
{
    if (!events[(uintptr_t)event].is_used)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    events[(uintptr_t)event].is_used = 0;
    noted.events--;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = (uintptr_t)stream == 0x700; /* the one that is */
    if (refusal >= 900 && refused_looks-- > 0)
        return (CUresult)refusal;
    if (refusal >= 900)
        refusal = 0;
    return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *made, unsigned flags)
{
    if (fails(&fail.graph) || flags)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (CUgraph)(void *)&graph;
    noted.graphs++;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph made)
{
    (void)made;
    noted.graphs--;
    return CUDA_SUCCESS;
}

static void note_node(struct note *note, const CUDA_KERNEL_NODE_PARAMS *wanted)
{
    int index = (int)((char *)(void *)wanted->kern - (char *)kernels) / (int)sizeof *kernels;
    note->grid[0] = wanted->gridDimX, note->grid[1] = wanted->gridDimY, note->grid[2] = wanted->gridDimZ;
    note->block[0] = wanted->blockDimX, note->block[1] = wanted->blockDimY, note->block[2] = wanted->blockDimZ;
    note->cluster[0] = note->cluster[1] = note->cluster[2] = 1;
    note->shared_bytes = wanted->sharedMemBytes;
    note_parameters(note, index, wanted->kernelParams);
}

/* Nodes are their numbers from 1 on. */
#undef cuGraphAddKernelNode
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph in, const CUgraphNode *before, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *wanted)
{
    struct note *note;
    size_t i;
    (void)in;
    if (fails(&fail.node) || count > BEFORE || wanted->func || wanted->extra || !depth || node_count + 1 == HANDLES)
        return CUDA_ERROR_INVALID_VALUE;
    nodes[++node_count].note = noted.count < NOTES ? noted.count : NOTES - 1;
    note = noted_as(ADDED, NULL);
    note->number = node_count;
    note->before_count = (int)count;
    for (i = 0; i < count; i++)
        note->before[i] = (int)(uintptr_t)before[i];
    note_node(note, wanted);
    *node = (CUgraphNode)(uintptr_t)node_count;
    return CUDA_SUCCESS;
}

#undef cuGraphAddDependencies
CUresult cuGraphAddDependencies_v2(CUgraph in, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    struct note *note;
    (void)in;
    if (fails(&fail.node) || count != 1 || edges->from_port != 1 || edges->to_port || edges->type != 1)
        return CUDA_ERROR_INVALID_VALUE;
    note = noted_as(EDGE, NULL);
    note->before[0] = (int)(uintptr_t)from[0];
    note->before_count = 1;
    note->number = (int)(uintptr_t)to[0];
    note->early = 1;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID which, const CUkernelNodeAttrValue *value)
{
    struct note *note = &noted.notes[nodes[(uintptr_t)node].note];
    if (fails(&fail.node) || (int)which != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        return CUDA_ERROR_INVALID_VALUE;
    note->cluster[0] = value->clusterDim.x, note->cluster[1] = value->clusterDim.y;
    note->cluster[2] = value->clusterDim.z;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph from, unsigned long long flags)
{
    (void)from;
    if (fails(&fail.instantiate) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    noted_as(INSTANTIATED, NULL);
    noted.executables++;
    *made = (CUgraphExec)(void *)executables;
    return CUDA_SUCCESS;
}

#undef cuGraphExecKernelNodeSetParams
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec made, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *wanted)
{
    struct note *note;
    (void)made;
    if (fails(&fail.change) || wanted->func || wanted->extra)
        return CUDA_ERROR_INVALID_VALUE;
    note = noted_as(CHANGED, NULL);
    note->number = (int)(uintptr_t)node;
    note_node(note, wanted);
    memcpy(note->cluster, noted.notes[nodes[(uintptr_t)node].note].cluster, sizeof note->cluster); /* that stays */
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec made, CUstream stream)
{
    (void)made;
    if (fails(&fail.replay))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    pthread_mutex_lock(&lock);
    noted_as(REPLAYED, stream);
    fake.context = fake_current();
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec made)
{
    (void)made;
    noted.executables--;
    return CUDA_SUCCESS;
}
