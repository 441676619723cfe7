/* Rows of launches, on a stream and as a graph, each with and without early starts: what Python is too slow to time.
 * `early_starts.py` compiles and calls it. */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

typedef struct launch {
    CUfunction function;
    unsigned grid[3], threads, shared_bytes, cluster[3];
    void **slots;
} launch;

static struct {
    CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **);
    CUresult (*wait)(CUstream);
    CUresult (*graph)(CUgraph *, unsigned);
    CUresult (*node)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *);
    CUresult (*edges)(CUgraph, const CUgraphNode *, const CUgraphNode *, const CUgraphEdgeData *, size_t);
    CUresult (*attribute)(CUgraphNode, CUlaunchAttributeID, const CUlaunchAttributeValue *);
    CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
    CUresult (*replay)(CUgraphExec, CUstream);
    CUresult (*event)(CUevent *, unsigned);
    CUresult (*record)(CUevent, CUstream);
    CUresult (*between)(float *, CUevent, CUevent);
} cuda;

static int find(void *library, const char *name, void *place)
{
    void *found = dlsym(library, name);
    memcpy(place, &found, sizeof found);
    return !found;
}

/* 0, or 1 where the driver has not all that is needed. */
int begin(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return !library || find(library, "cuLaunchKernelEx", &cuda.launch) ||
           find(library, "cuStreamSynchronize", &cuda.wait) || find(library, "cuGraphCreate", &cuda.graph) ||
           find(library, "cuGraphAddKernelNode_v2", &cuda.node) ||
           find(library, "cuGraphAddDependencies_v2", &cuda.edges) ||
           find(library, "cuGraphKernelNodeSetAttribute", &cuda.attribute) ||
           find(library, "cuGraphInstantiateWithFlags", &cuda.instantiate) ||
           find(library, "cuGraphLaunch", &cuda.replay) || find(library, "cuEventCreate", &cuda.event) ||
           find(library, "cuEventRecord", &cuda.record) || find(library, "cuEventElapsedTime", &cuda.between);
}

static unsigned cluster_of(const launch *one, CUlaunchAttribute *attribute)
{
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = one->cluster[0];
    attribute->value.clusterDim.y = one->cluster[1];
    attribute->value.clusterDim.z = one->cluster[2];
    return one->cluster[0] * one->cluster[1] * one->cluster[2] > 1;
}

CUresult start_all(const launch *launches, int count, int early, CUstream stream)
{
    CUresult code = CUDA_SUCCESS;
    int i;
    for (i = 0; i < count && !code; i++) {
        const launch *one = &launches[i];
        CUlaunchAttribute attributes[2];
        CUlaunchConfig config;
        memset(attributes, 0, sizeof attributes);
        memset(&config, 0, sizeof config);
        config.gridDimX = one->grid[0], config.gridDimY = one->grid[1], config.gridDimZ = one->grid[2];
        config.blockDimX = one->threads, config.blockDimY = config.blockDimZ = 1;
        config.sharedMemBytes = one->shared_bytes;
        config.hStream = stream;
        config.attrs = attributes;
        config.numAttrs = cluster_of(one, attributes);
        if (early && i) {
            CUlaunchAttribute *attribute = &attributes[config.numAttrs++];
            attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attribute->value.programmaticStreamSerializationAllowed = 1;
        }
        code = cuda.launch(&config, one->function, one->slots, NULL);
    }
    return code;
}

CUresult make_graph(const launch *launches, int count, int early, CUgraphExec *made)
{
    CUgraphNode before = NULL, node;
    CUgraph graph;
    CUresult code = cuda.graph(&graph, 0);
    int i;
    for (i = 0; i < count && !code; i++, before = node) {
        const launch *one = &launches[i];
        CUlaunchAttribute attribute;
        CUDA_KERNEL_NODE_PARAMS told;
        CUgraphEdgeData edge;
        memset(&attribute, 0, sizeof attribute);
        memset(&told, 0, sizeof told);
        memset(&edge, 0, sizeof edge);
        told.func = one->function;
        told.gridDimX = one->grid[0], told.gridDimY = one->grid[1], told.gridDimZ = one->grid[2];
        told.blockDimX = one->threads, told.blockDimY = told.blockDimZ = 1;
        told.sharedMemBytes = one->shared_bytes;
        told.kernelParams = one->slots;
        code = cuda.node(&node, graph, NULL, 0, &told);
        if (!code && cluster_of(one, &attribute))
            code = cuda.attribute(node, attribute.id, &attribute.value);
        if (early) {
            edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
            edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
        if (!code && i)
            code = cuda.edges(graph, &before, &node, &edge, 1);
    }
    return code ? code : cuda.instantiate(made, graph, 0);
}

CUresult replay(CUgraphExec made, CUstream stream) { return cuda.replay(made, stream); }

/* Microseconds of a row: of a graph where there is one, else started on the stream; -1 where something fails. */
double time_of(const launch *launches, int count, int early, CUgraphExec made, int repeats, CUstream stream)
{
    static CUevent first, last;
    CUresult code = CUDA_SUCCESS;
    float milliseconds = 0;
    int i;
    if (!first && (cuda.event(&first, 0) || cuda.event(&last, 0)))
        return -1;
    cuda.wait(stream);
    cuda.record(first, stream);
    for (i = 0; i < repeats && !code; i++)
        code = made ? cuda.replay(made, stream) : start_all(launches, count, early, stream);
    cuda.record(last, stream);
    if (code || cuda.wait(stream) || cuda.between(&milliseconds, first, last))
        return -1;
    return (double)milliseconds * 1e3 / repeats;
}
