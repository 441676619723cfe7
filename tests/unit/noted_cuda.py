"""A CUDA that only keeps track of devices, contexts, launches and tensor maps.

As in cuda.core, a `Device` works in a thread only after `set_current` there, even if another
library made its context current.
"""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

from cuda.bindings import driver as real

from tilec.runtime import clusters, devices, driver, encoding, machine_code, streams

SUCCESS = real.CUresult.CUDA_SUCCESS
NO_CONTEXT = real.CUresult.CUDA_ERROR_INVALID_CONTEXT
CLUSTER = real.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
EARLY = real.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
MULTIPROCESSORS = 132  # of device 0; each further one has two fewer


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
        self.room = 128  # blocks of clusters that run at once
        self._thread = threading.local()
        self._encoding = threading.Lock()
        self._encode = encoding._PROTOTYPE(self._encoded)

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
        return SUCCESS, self.current

    def cuCtxSetCurrent(self, context):  # noqa: N802
        self._thread.context = context
        return [SUCCESS]

    def cuCtxGetDevice(self):  # noqa: N802
        if not self.current:
            return NO_CONTEXT, None
        return SUCCESS, self.device

    def cuStreamGetDevice(self, stream):  # noqa: N802
        return SUCCESS, int(stream) // 1000

    def cuGetErrorString(self, status):  # noqa: N802
        return SUCCESS, b"bad"

    def cuLaunchKernel(self, function, *geometry_and_stream):  # noqa: N802
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
                "stream": int(config.hStream),
            }
        )
        self.parameters.append(parameters)
        return [SUCCESS]

    def cuOccupancyMaxActiveClusters(self, function, config):  # noqa: N802
        if not self.current:
            return NO_CONTEXT, 0
        [attribute] = config.attrs
        return SUCCESS, self.room // attribute.value.clusterDim.x

    def cuGetProcAddress(self, symbol, version, flags):  # noqa: N802
        assert symbol == b"cuTensorMapEncodeTiled" and version == 12000
        return SUCCESS, ctypes.cast(self._encode, ctypes.c_void_p).value, 0

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


def installed(monkeypatch, count):
    """The CUDA of a test, with so many devices; forgets what the runtime knows of another one."""
    cuda = Bindings(count)
    for module in (clusters, devices, driver, encoding, machine_code, streams):
        monkeypatch.setattr(module, "bindings", cuda)
    device = _device_class(cuda)
    for module in (devices, driver, machine_code):
        monkeypatch.setattr(module, "Device", device)
    monkeypatch.setattr(machine_code, "_launch_kernel", cuda.cuLaunchKernel)
    monkeypatch.setattr(clusters, "_launch_extended", cuda.cuLaunchKernelEx)
    monkeypatch.setattr(clusters, "_clusters_at_once", cuda.cuOccupancyMaxActiveClusters)
    monkeypatch.setattr(driver, "LEGACY_DEFAULT_STREAM", SimpleNamespace(sync=lambda: None))
    kernel = SimpleNamespace(handle=5)
    monkeypatch.setattr(machine_code.Code, "kernel", lambda self, variant, device: kernel)
    forget()
    return cuda


def forget():
    for known in (
        devices.require_device,
        devices.device_count,
        devices._sm_count,
        encoding._encode_tiled,
    ):
        known.cache_clear()


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

    return Device
