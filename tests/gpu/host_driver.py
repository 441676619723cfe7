"""A driver without a GPU: memory of the host, and kernels by the CPU execution of their source.

`TILEC_DRY_RUN=1 make test-gpu` runs the GPU tests with it, which tries the tests themselves: where
the compiler is, and as slowly as the CPU execution is.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path

import numpy as np

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.embed import extract
from tilec.artifact.manifest import from_json
from tilec.runtime.elements import numpy_dtype

ROOT = Path(__file__).parents[2]
DRY_RUN = bool(os.environ.get("TILEC_DRY_RUN"))
_ALIGNMENT = 256


def install():
    """Makes this the driver of `tilec.runtime`."""
    import tilec.runtime
    import tilec.runtime.driver  # loaded now, since loading it later would undo the next line

    tilec.runtime.driver = HostDriver(ROOT)


class _Memory:
    def __init__(self, size):
        self._bytes = np.zeros(size + _ALIGNMENT, np.uint8)
        self.handle = -(-self._bytes.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self.size = size


class _Done:
    is_done = True

    def sync(self):
        pass


class _Graph:
    def __init__(self, driver, code, nodes):
        self._driver, self._code, self._nodes = driver, code, nodes

    def launch(self, stream):
        for node in self._nodes:
            self._driver.prepared(self._code, node.entry, node.cells)(stream)

    def update(self, nodes):
        self._nodes = nodes
        return True


class HostDriver:
    """What `tilec.runtime.cuda_driver.Driver` asks for."""

    def __init__(self, root):
        self._root = root
        self._open = ExitStack()
        self._path = self._program = None
        self._memory = {}

    def device_of(self, stream):
        return 0

    def current_device(self):
        return 0

    def capability(self, device):
        return 9, 0

    def device_count(self):
        return 1

    def sm_count(self, device):
        return 1

    def card(self, device):
        return "NumPy"

    def allocated(self, size_bytes, device):
        if size_bytes > 1 << 30:
            raise MemoryError("a dry run keeps to small memory")
        return _Memory(size_bytes)

    def copy_to_device(self, address, host, device):
        ctypes.memmove(address, host.ctypes.data, host.nbytes)

    def copy_to_host(self, host, address, device):
        ctypes.memmove(host.ctypes.data, address, host.nbytes)

    def stream_of(self, given):
        return given

    def loaded(self, cubin, target, name):
        source = from_json(extract(cubin)).source.file
        # Programs that are written when the tests are packed lie beside their cubins.
        sources = "kernels", "tests/programs", "tests/gpu", "tests/pipelines/programs"
        folders = [self._root / folder for folder in sources]
        places = [folder / source for folder in (*folders, Path(name).parent)]
        return next(path for path in places if path.exists())

    def prepared(self, code, entry, cells, early=False):
        return lambda stream: self._opened(code).run(entry.kernel.symbol, _arguments(entry, cells))

    @contextmanager
    def side_streams(self, count, entry, beside):
        yield [beside] * count

    def made_event(self, device):
        return _Done()

    def record(self, event, stream):
        pass

    def wait_for(self, event, stream):
        pass

    def stream_memory(self, size_bytes, entry, stream):
        memory = self.allocated(size_bytes, 0)
        self._memory[memory.handle] = memory
        return memory.handle

    def free_stream_memory(self, address, entry, stream):
        del self._memory[address]

    def built_graph(self, code, entry, nodes):
        return _Graph(self, code, nodes)

    def finish(self, entry, stream):
        pass

    def recorded(self, entry, stream):
        return _Done()

    def tail(self, stream, device):
        return self.recorded(None, stream)

    def order(self, event, stream, device):
        return True

    def is_captured(self, stream):
        return False

    def waits_for_legacy(self, stream):
        return True

    def is_over(self, event):
        return True

    def _opened(self, path):
        """The program of a file; the last one is kept."""
        from tests.on_cpu import compiled

        if path != self._path:
            self.close()
            self._program = self._open.enter_context(compiled(path))
            self._path = path
        return self._program

    def close(self):
        self._path = None
        self._open.close()


def _arguments(entry, cells):
    """The arguments in cells as arrays in the memory that they point to."""
    plain = [slot for slot in entry.variant.slots if slot.kind != "tensor_map"]
    given = zip(plain, cells, strict=True)
    slots = [(slot, _number(slot, cell)) for slot, cell in given]
    dims = {slot.name: value for slot, value in slots if slot.kind == "extent"}
    found = {}
    for parameter in entry.kernel.parameters:
        values = [value for slot, value in slots if slot.name == parameter.name]
        if not parameter.is_tensor:
            found[parameter.name] = _scalar(parameter.element, values[0])
            continue
        shape = tuple(dims.get(extent, extent) for extent in parameter.extents)
        found[parameter.name] = _array(
            parameter.element, values[0], shape, (*values[1:], 1)[: len(shape)]
        )
    return found


def _scalar(element, value):
    from tests.gpu.element_bits import from_bits

    return from_bits(np.array([value]), element)[0] if element == "bf16" else value


def _number(slot, cell):
    """What a cell holds: a number of the slot's width, in bf16 its bits."""
    if slot.kind != "scalar":
        return cell
    size = ELEMENT_BYTES[slot.element]
    dtype = np.dtype(np.uint16 if slot.element == "bf16" else numpy_dtype(slot.element))
    return np.frombuffer(cell.to_bytes(8, "little"), np.uint8)[:size].view(dtype)[0]


def _array(element, address, shape, strides):
    from tilec.interpret.contract import DTYPES

    dtype = np.dtype(DTYPES[element])
    if not prod(shape):
        return np.zeros(shape, dtype)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = (ctypes.c_uint8 * (span * ELEMENT_BYTES[element])).from_address(address)
    # NumPy finds no name for a type of 8-bit floats: the bits take the strides.
    flat = np.frombuffer(memory, np.uint8).view(f"u{dtype.itemsize}")
    bits = np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])
    return bits.view(dtype)
