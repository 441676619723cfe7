"""A CUDA that only keeps track of devices, contexts, launches and tensor maps.

As in cuda.core, a `Device` works in a thread only after `set_current` there, even if another
library made its context current.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import defaultdict, deque
from types import SimpleNamespace

from cuda.bindings import driver as real

from tilec.runtime import (
    clusters,
    devices,
    driver,
    encoding,
    events,
    graph_nodes,
    machine_code,
    starting,
    stream_memory,
    streams,
)

SUCCESS = real.CUresult.CUDA_SUCCESS
NO_CONTEXT = real.CUresult.CUDA_ERROR_INVALID_CONTEXT
NOT_INITIALIZED = real.CUresult.CUDA_ERROR_NOT_INITIALIZED
CLUSTER = real.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
EARLY = real.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
MULTIPROCESSORS = 132  # of device 0; each further one has two fewer
_WORD, _PLACE = ctypes.c_uint, ctypes.c_void_p
# The functions that the C path calls, as it calls them.
_PROTOTYPES = {
    "cuLaunchKernel": [_PLACE, *[_WORD] * 7, _PLACE, _PLACE, _PLACE],
    "cuLaunchKernelEx": [_PLACE] * 4,
    "cuStreamGetDevice": [_PLACE, ctypes.POINTER(ctypes.c_int)],
    "cuCtxGetDevice": [ctypes.POINTER(ctypes.c_int)],
}


_ATTRIBUTE_BYTES = 72


class _Config(ctypes.Structure):
    """CUlaunchConfig, of cuda.h."""

    _fields_ = [
        *((f"{what}Dim{axis}", _WORD) for what in ("grid", "block") for axis in "XYZ"),
        ("sharedMemBytes", _WORD),
        ("hStream", _PLACE),
        ("attributes", _PLACE),
        ("numAttrs", _WORD),
    ]


class Bindings:
    """Contexts are numbers, 0 none: that of device d is d + 1, and d + 101 is another one there.

    `maps` are the arguments of each encoding, and the map itself begins with its number there, from
    1. `refusal` is what encodings answer; `launched_extended` are those of launches
    with attributes.
    """

    def __init__(self, count):
        self.count = count
        self.launched = []
        self.parameters = []
        self.launched_extended = []
        self.maps = []
        self.encoded_on = []
        self.asked = []
        self.refusal = 0
        self.streams = []  # what streams were given but launches
        self.captured = set()
        self.graphs = []
        self.made = 0  # streams and events
        self.fails = False
        self.process = os.getpid()  # in those that are forked from it nothing works
        self.set_left = 0  # updates of nodes until one fails
        self.room = 128  # blocks of clusters that run at once
        self._thread = threading.local()
        self._encoding = threading.Lock()
        self._functions = {"cuTensorMapEncodeTiled": encoding._PROTOTYPE(self._encoded)}
        for name, arguments in _PROTOTYPES.items():
            function = getattr(self, f"_{name}")
            self._functions[name] = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(function)

    @property
    def current(self):
        return getattr(self._thread, "context", 0)

    @property
    def device(self):
        return self.current % 100 - 1

    def __getattr__(self, name):  # names of types and constants
        return getattr(real, name)

    def cuInit(self, flags):  # noqa: N802
        return [SUCCESS]

    def cuDeviceGetCount(self):  # noqa: N802
        return SUCCESS, self.count

    def cuDeviceGetAttribute(self, attribute, device):  # noqa: N802
        self.asked.append((attribute, int(device)))
        return SUCCESS, MULTIPROCESSORS - 2 * int(device)

    def cuCtxGetCurrent(self):  # noqa: N802
        if os.getpid() != self.process:
            return NOT_INITIALIZED, None
        return SUCCESS, self.current

    def cuCtxSetCurrent(self, context):  # noqa: N802
        self._thread.context = context
        return [SUCCESS]

    def cuCtxGetDevice(self):  # noqa: N802
        if not self.current:
            return NO_CONTEXT, None
        return SUCCESS, self.device

    def cuStreamGetFlags(self, stream):  # noqa: N802
        return SUCCESS, 1  # no stream waits for the default stream

    def cuStreamGetDevice(self, stream):  # noqa: N802
        return SUCCESS, int(stream) // 1000

    def cuGetErrorString(self, status):  # noqa: N802
        return SUCCESS, b"bad"

    def cuLaunchKernel(self, function, *geometry_and_stream):  # noqa: N802
        if os.getpid() != self.process:
            return [NOT_INITIALIZED]
        stream = int(geometry_and_stream[7])
        if stream <= 2 and not self.current:
            return [NO_CONTEXT]
        self.launched.append((stream, self.device if stream <= 2 else stream // 1000))
        self.parameters.append(geometry_and_stream[8])
        return [SUCCESS]

    def cuLaunchKernelEx(self, config, function, parameters, extra):  # noqa: N802
        if not self.current:
            return [NO_CONTEXT]
        attributes = {attribute.id: attribute.value for attribute in config.attrs}
        assert len(attributes) == config.numAttrs
        early = attributes.pop(EARLY, None)
        if early is not None:
            assert early.programmaticStreamSerializationAllowed == 1
        cluster = attributes.pop(CLUSTER).clusterDim if attributes else None
        assert not attributes
        self.launched_extended.append(
            {
                "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
                "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
                "smem": config.sharedMemBytes,
                "cluster": None if cluster is None else (cluster.x, cluster.y, cluster.z),
                "early": early is not None,
                "stream": int(config.hStream or 0),
            }
        )
        self.parameters.append(parameters)
        return [SUCCESS]

    def cuMemAllocAsync(self, size_bytes, stream):  # noqa: N802
        if self.fails:
            return real.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        if int(stream) <= 2 and not self.current:
            return NO_CONTEXT, None
        self.streams.append(("alloc", size_bytes, int(stream), self.device))
        return SUCCESS, real.CUdeviceptr(2**41)

    def cuMemFreeAsync(self, address, stream):  # noqa: N802
        self.streams.append(("free", address, int(stream), self.device))
        return [SUCCESS]

    def cuEventCreate(self, flags):  # noqa: N802
        assert self.current, "events are made in the current context"
        self.made += 1
        return SUCCESS, self.made

    def cuEventRecord(self, event, stream):  # noqa: N802
        self.streams.append(("record", event, int(stream), self.device))
        return [SUCCESS]

    def cuStreamWaitEvent(self, stream, event, flags):  # noqa: N802
        self.streams.append(("wait", event, int(stream), self.device))
        return [SUCCESS]

    def cuEventQuery(self, event):  # noqa: N802
        return [SUCCESS]

    def cuEventSynchronize(self, event):  # noqa: N802
        return [SUCCESS]

    def cuCtxSynchronize(self):  # noqa: N802
        self.streams.append(("finished", self.device))
        return [SUCCESS]

    def cuStreamIsCapturing(self, stream):  # noqa: N802
        status = real.CUstreamCaptureStatus
        is_active = int(stream) in self.captured
        return SUCCESS, (
            status.CU_STREAM_CAPTURE_STATUS_ACTIVE
            if is_active
            else status.CU_STREAM_CAPTURE_STATUS_NONE
        )

    def cuThreadExchangeStreamCaptureMode(self, mode):  # noqa: N802
        return SUCCESS, mode

    def cuGraphCreate(self, flags):  # noqa: N802
        self.graphs.append({"nodes": [], "edges": [], "programmatic": []})
        return SUCCESS, len(self.graphs) - 1

    def cuGraphAddKernelNode(self, graph, before, count, parameters):  # noqa: N802
        assert len(before) == count and self.current, "nodes take the current context"
        nodes, edges = self.graphs[graph]["nodes"], self.graphs[graph]["edges"]
        edges += [(one[1], len(nodes)) for one in before]
        nodes.append(_noted(parameters))
        return SUCCESS, (graph, len(nodes) - 1)

    def cuGraphKernelNodeSetAttribute(self, node, attribute, value):  # noqa: N802
        assert attribute == CLUSTER
        assert isinstance(value, real.CUkernelNodeAttrValue), "CUDA's bindings take no other class"
        cluster = value.clusterDim
        self.graphs[node[0]]["nodes"][node[1]]["cluster"] = cluster.x, cluster.y, cluster.z
        return [SUCCESS]

    def cuGraphAddDependencies(self, graph, before, after, data, count):  # noqa: N802
        assert len(before) == len(after) == len(data) == count
        for one, other, edge in zip(before, after, data, strict=True):
            kinds = real.CUgraphDependencyType
            assert edge.type == kinds.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.value
            assert (edge.from_port, edge.to_port) == (1, 0)
            self.graphs[graph]["programmatic"].append((one[1], other[1]))
        return [SUCCESS]

    def cuGraphInstantiate(self, graph, flags):  # noqa: N802
        return SUCCESS, graph

    def cuGraphExecKernelNodeSetParams(self, graph, node, parameters):  # noqa: N802
        self.set_left -= 1
        if self.set_left == 0:
            return [real.CUresult.CUDA_ERROR_INVALID_VALUE]
        known = self.graphs[graph]["nodes"][node[1]]
        known.update(_noted(parameters, known["cells"]))
        return [SUCCESS]

    def cuGraphLaunch(self, graph, stream):  # noqa: N802
        if int(stream) <= 2 and not self.current:
            return [NO_CONTEXT]
        self.streams.append(("graph", graph, int(stream), self.device))
        return [SUCCESS]

    def cuGraphDestroy(self, graph):  # noqa: N802
        self.streams.append(("destroyed", graph))

    def cuGraphExecDestroy(self, graph):  # noqa: N802
        self.streams.append(("exec destroyed", graph))

    def cuOccupancyMaxActiveClusters(self, function, config):  # noqa: N802
        if not self.current:
            return NO_CONTEXT, 0
        [attribute] = config.attrs
        return SUCCESS, self.room // attribute.value.clusterDim.x

    def cuGetProcAddress(self, symbol, version, flags):  # noqa: N802
        function = self._functions[symbol.decode()]
        return SUCCESS, ctypes.cast(function, ctypes.c_void_p).value, 0

    def _cuLaunchKernel(self, *arguments):  # noqa: N802
        return int(self.cuLaunchKernel(*arguments)[0])

    def _cuLaunchKernelEx(self, config, *arguments):  # noqa: N802
        told = _Config.from_address(config)
        told.attrs = [
            real.CUlaunchAttribute(_ptr=told.attributes + _ATTRIBUTE_BYTES * number)
            for number in range(told.numAttrs)
        ]
        return int(self.cuLaunchKernelEx(told, *arguments)[0])

    def _cuStreamGetDevice(self, stream, device):  # noqa: N802
        device[0] = self.cuStreamGetDevice(stream)[1]
        return 0

    def _cuCtxGetDevice(self, device):  # noqa: N802
        status, found = self.cuCtxGetDevice()
        device[0] = -1 if found is None else found
        return int(status)

    def _encoded(self, *arguments):
        with self._encoding:
            return self._note_map(*arguments)

    def _note_map(self, place, data_type, rank, address, *arguments):
        extents, strides, box, steps, *modes = arguments
        assert place % 64 == 0, "a tensor map is aligned to 64 bytes"
        self.encoded_on.append(self.device)
        self.maps.append(
            {
                "data_type": data_type,
                "rank": rank,
                "address": address,
                "extents": extents[:rank],
                "strides": strides[: rank - 1],
                "box": box[:rank],
                "steps": steps[:rank],
                "modes": modes,  # interleave, swizzle, promotion, fill
            }
        )
        ctypes.memset(place, 0, 128)
        ctypes.memmove(place, len(self.maps).to_bytes(8, "little"), 8)
        return self.refusal


def _noted(parameters, cells=range(5)):
    """What a node of a kernel with so many cells is told."""
    places = (ctypes.c_uint64 * len(cells)).from_address(int(parameters.kernelParams))
    return {
        "kernel": int(parameters.kern),
        "grid": (parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ),
        "block": (parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ),
        "smem": parameters.sharedMemBytes,
        "cells": [ctypes.c_uint64.from_address(place).value for place in places],
    }


def installed(monkeypatch, count):
    """The CUDA of a test, with so many devices; forgets what the runtime knows of another one."""
    cuda = Bindings(count)
    for module in (
        clusters, devices, driver, encoding, events, graph_nodes, machine_code, starting,
        stream_memory, streams,
    ):  # fmt: skip
        monkeypatch.setattr(module, "bindings", cuda)
    device = _device_class(cuda)
    for module in (devices, driver, machine_code, starting, stream_memory):
        monkeypatch.setattr(module, "Device", device)
    monkeypatch.setattr(starting, "_launch_kernel", lambda *told: cuda.cuLaunchKernel(*told))
    monkeypatch.setattr(clusters, "_launch_extended", cuda.cuLaunchKernelEx)
    monkeypatch.setattr(clusters, "_clusters_at_once", cuda.cuOccupancyMaxActiveClusters)
    monkeypatch.setattr(stream_memory, "_FREE", defaultdict(deque))
    monkeypatch.setattr(stream_memory, "_CAPTURED", defaultdict(deque))
    monkeypatch.setattr(driver, "LEGACY_DEFAULT_STREAM", SimpleNamespace(sync=lambda: None))
    kernel = SimpleNamespace(handle=5)
    monkeypatch.setattr(machine_code.Code, "kernel", lambda self, variant, device: kernel)
    forget()
    return cuda


def forget():
    for known in (
        devices.require_device,
        devices.address_of,
        devices.device_count,
        devices._sm_count,
        encoding._encode_tiled,
        stream_memory._keep_freed_memory,
    ):
        known.cache_clear()
    devices._PRIMARY.clear()
    events._FREE.clear()


def _device_class(cuda):
    ready = threading.local()

    class Device:
        def __init__(self, index):
            self.index = index

        def set_current(self):
            vars(ready).setdefault("devices", set()).add(self.index)
            cuda.cuCtxSetCurrent(self.index + 1)

        def allocate(self, size_bytes, stream):
            if self.index not in vars(ready).get("devices", ()):
                raise RuntimeError(f"Device {self.index} is not yet initialized")
            assert cuda.device == self.index
            return SimpleNamespace(handle=2**40, size=size_bytes, device=self.index)

        def create_stream(self):
            assert cuda.device == self.index
            cuda.made += 1
            return SimpleNamespace(handle=1000 * self.index + 500 + cuda.made)

        @property
        def memory_resource(self):
            cuda.asked.append(("pool", self.index))

    return Device
