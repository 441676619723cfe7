"""CUDA graphs of a pipeline's launches: one kernel node each, made by hand, nothing captured.

By `cuda.bindings`: cuda.core converts each argument for each node, and the cells are there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from weakref import finalize

from cuda.bindings import driver as bindings

from tilec.artifact.geometry import ALONE
from tilec.runtime.clusters import launched_grid
from tilec.runtime.devices import SUCCESS, context_of, device_count, made_current, text_of
from tilec.runtime.entry import Node, Started
from tilec.runtime.errors import LaunchError, failure
from tilec.runtime.machine_code import Code
from tilec.runtime.starting import passed
from tilec.runtime.streams import QUEUES, check_device, is_captured, queue_of

_CLUSTER = bindings.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_PROGRAMMATIC = bindings.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
_PROGRAMMATIC_PORT = bindings.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC


def built_graph(code: object, entry: Started, nodes: Sequence[Node]) -> GraphExec:
    """A graph of these launches, which holds what their cells hold now.

    Raises:   LaunchError, ArchitectureError, ArtifactError
    """
    assert isinstance(code, Code), "the code is what `loaded` gave"
    return GraphExec(code, entry, nodes)


class GraphExec:
    """An instantiated graph. It holds addresses: whoever launches it keeps the memory.

    CUDA lets one launch of it begin when the one before is done, on whatever streams they are.
    """

    def __init__(self, code: Code, entry: Started, nodes: Sequence[Node]) -> None:
        self._code = code
        self._entry = entry
        self._nodes = tuple(nodes)
        self._handles: list[bindings.CUgraphNode] = []
        with made_current(entry.device) as self._device:
            self._graph = self._checked(bindings.cuGraphCreate(0))
            finalize(self, bindings.cuGraphDestroy, self._graph).atexit = False
            for node in self._nodes:
                self._handles.append(self._added(node))
            self._exec = self._checked(bindings.cuGraphInstantiate(self._graph, 0))
        # One that still runs is destroyed when it is done.
        finalize(self, bindings.cuGraphExecDestroy, self._exec).atexit = False

    def launch(self, stream: int) -> None:
        """Launches all of it on a stream.

        Raises:   LaunchError; ContractError if the stream is another device's
        """
        queue = QUEUES.get(stream) or queue_of(stream)
        if is_captured(stream):  # asking for it would spoil the capture
            raise LaunchError(
                f"the graph of `{self._entry.kernel.symbol}` is not launched on a stream that is "
                "being captured into another graph; `launch` of the pipeline is"
            )
        if device_count() > 1:
            check_device(self._entry, stream)
        with context_of(self._entry.device):
            [status] = bindings.cuGraphLaunch(self._exec, queue)
        if status != SUCCESS:
            raise failure(f"`{self._entry.kernel.symbol}` was not launched", text_of(status))

    def update(self, nodes: Sequence[Node]) -> bool:
        """Has later launches do what other nodes say; false, and nothing is changed, if they differ
        in more than kernels, grids and arguments.

        Raises:   LaunchError if the driver refuses; nothing is changed then either
        """
        if _form(self._nodes) != _form(nodes):
            return False
        with made_current(self._entry.device):
            changed = [number for number, node in enumerate(nodes) if node != self._nodes[number]]
            for number in changed:
                try:
                    self._set(number, nodes[number])
                except LaunchError:
                    with suppress(LaunchError):
                        for earlier in changed[: changed.index(number)]:
                            self._set(earlier, self._nodes[earlier])
                    raise
        self._nodes = tuple(nodes)
        return True

    def _added(self, node: Node) -> bindings.CUgraphNode:
        parameters, _held = self._parameters(node)
        before = [self._handles[earlier] for earlier in node.after]
        plain = [] if node.early else before
        handle = self._checked(
            bindings.cuGraphAddKernelNode(self._graph, plain, len(plain), parameters)
        )
        if node.entry.variant.cluster != ALONE:
            value = bindings.CUkernelNodeAttrValue()  # the same union, in a class of its own
            cluster = value.clusterDim
            cluster.x, cluster.y, cluster.z = node.entry.variant.cluster
            self._checked(bindings.cuGraphKernelNodeSetAttribute(handle, _CLUSTER, value))
        if node.early:
            edge = bindings.CUgraphEdgeData()
            edge.from_port = _PROGRAMMATIC_PORT
            edge.type = _PROGRAMMATIC.value
            self._checked(bindings.cuGraphAddDependencies(self._graph, before, [handle], [edge], 1))
        return handle

    def _set(self, number: int, node: Node) -> None:
        parameters, _held = self._parameters(node)
        self._checked(
            bindings.cuGraphExecKernelNodeSetParams(self._exec, self._handles[number], parameters)
        )

    def _parameters(self, node: Node) -> tuple[bindings.CUDA_KERNEL_NODE_PARAMS, object]:
        """A node as CUDA takes it, and what must live until CUDA has copied it.

        Assumes:  the device is current
        """
        entry = node.entry
        assert entry.grid is not None, "what has no programs is no node"
        kernel = self._code.kernel(entry.variant, self._device)
        pointers, maps = passed(entry, node.cells)
        parameters = bindings.CUDA_KERNEL_NODE_PARAMS()
        parameters.kern = bindings.CUkernel(int(kernel.handle))
        grid = launched_grid(entry.grid, entry.variant, bindings.CUfunction(int(kernel.handle)))
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = grid
        threads = entry.variant.threads
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = threads, 1, 1
        parameters.sharedMemBytes = entry.variant.dynamic_smem_bytes
        parameters.kernelParams = pointers.buffer_info()[0]
        return parameters, (kernel, pointers, maps)

    def _checked(self, answer: tuple[object, ...]) -> object:
        """What CUDA answers.

        Raises:   LaunchError if it refuses
        """
        status, *values = answer
        if status != SUCCESS:
            assert isinstance(status, bindings.CUresult), "an answer begins with its status"
            raise LaunchError(
                f"no graph could be made of `{self._entry.kernel.symbol}`: {text_of(status)}"
            )
        return values[0] if values else None


def _form(nodes: Sequence[Node]) -> list[object]:
    """What an instantiated graph cannot change."""
    return [(node.entry.variant.cluster, node.after, node.early) for node in nodes]
