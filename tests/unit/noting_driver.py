"""A driver that only notes what it was asked, and modules that run on it."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace

from manifest_samples import manifest
from test_embed import cubin

import tilec.runtime as rt
from tilec.artifact.embed import embed
from tilec.artifact.manifest import to_json
from tilec.runtime import native
from tilec.runtime.array import Array
from tilec.runtime.module import Module

WORKSPACE = 2**44


_PLACE, _WORD = ctypes.c_void_p, ctypes.c_uint
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, _PLACE, *[_WORD] * 7, ctypes.c_uint64, _PLACE, _PLACE
)  # cuLaunchKernel
_LEGACY_STREAM = 1
_FAILED = 719  # CUDA_ERROR_LAUNCH_FAILED


def started_by_c(start, cells, refused=None):
    """A function of the C path, whose driver calls `start`: None or 0 is success. What that raises
    comes out of the function, as what the driver refuses does."""
    raised = []

    def launch(function, x, y, z, threads, y_threads, z_threads, shared_bytes, stream, *_):
        try:
            return start(0 if stream == _LEGACY_STREAM else stream) or 0
        except BaseException as error:
            raised.append(error)
            return _FAILED

    def refused_or_raised(status, stream):
        if raised:
            raise raised.pop()
        refused(status, stream)

    function = _LAUNCH(launch)
    return native.built().Start(
        launch=ctypes.cast(function, _PLACE).value, function=0, grid=(1, 1, 1), threads=1,
        shared_bytes=0, parameters=0, cells=cells.buffer_info()[0], config=0, maps=(), device=-1,
        device_of_stream=0, current_device=0, renew=None, refused=refused_or_raised, elsewhere=None,
        held=(function, cells),
    )  # fmt: skip


class Event:
    def __init__(self, failure=None):
        self.failure = failure
        self.is_done = False

    def sync(self):
        if self.failure:
            raise self.failure
        self.is_done = True


class NotedGraph:
    """A graph; `nodes` are variants, cells, predecessors and whether they start early."""

    def __init__(self, log, nodes):
        self.log = log
        self.nodes = noted(nodes)
        self.refuses = False
        log.append(("built", len(nodes)))

    def launch(self, stream):
        self.log.append(("replayed", self.nodes, stream))

    def update(self, nodes):
        if self.refuses:
            raise rt.LaunchError("no")
        nodes = noted(nodes)
        if [n[2:] for n in nodes] != [n[2:] for n in self.nodes]:
            return False
        self.nodes = nodes
        return True


def noted(nodes):
    return [(n.entry.variant.symbol, list(n.cells), n.after, n.early) for n in nodes]


class NotingDriver:
    """Takes `Array`s for tensors; keeps what happened, what cells held, and the events it gave."""

    def __init__(self, failure=None):
        self.log = []
        self.cells = []
        self.events = []
        self.failure = failure
        self.captures = False
        self.lent = []
        self.made = 0
        self.memory = 0

    def stream_of(self, given):
        return given if isinstance(given, int) else given.address

    def array_of(self, name, given, stream):
        given = getattr(given, "exported", given)
        if not isinstance(given, Array):
            raise rt.ContractError(f"`{name}`: expected a tensor, got {type(given).__name__}")
        self.log.append(("imported", name, stream))
        return given

    def device_count(self):
        return 2

    def sm_count(self, device):
        self.log.append(("multiprocessors", device))
        return 132

    def card(self, device):
        self.log.append(("card", device))
        return "A Card"

    def loaded(self, cubin, target, name):
        self.log.append("loaded")
        return "code"

    def prepared(self, code, entry, cells, early=False):
        def start(stream):
            self.cells.append(list(cells))
            on = 0 if stream == _LEGACY_STREAM else stream
            launch = (code, entry.variant.symbol, entry.grid, on)
            self.log.append((*launch, "early") if early else launch)

        return started_by_c(start, cells) if native.built() else start

    @contextmanager
    def side_streams(self, count, entry, beside):
        assert not self.lent, "a thread has the streams alone"
        self.lent = [9000 + n for n in range(count)]
        yield self.lent
        self.lent = []

    def made_event(self, device):
        self.made += 1
        return self.made

    def record(self, event, stream):
        self.log.append(("record", event, stream))

    def wait_for(self, event, stream):
        self.log.append(("wait", event, stream))

    def stream_memory(self, size_bytes, entry, stream):
        self.log.append(("allocated", size_bytes, stream))
        return WORKSPACE

    def free_stream_memory(self, address, entry, stream):
        self.log.append(("freed", address, stream))

    def device_of(self, stream):
        return 0

    def current_device(self):
        return 0

    def allocated(self, size_bytes, device):
        self.log.append(("allocated", size_bytes, None))
        self.memory += 2**20
        return SimpleNamespace(handle=WORKSPACE + self.memory, size=size_bytes)

    def built_graph(self, code, entry, nodes):
        return NotedGraph(self.log, nodes)

    def finish(self, entry, stream):
        self.log.append(("finished", stream))

    def finish_device(self, entry):
        self.log.append(("device finished", entry.device))

    def recorded(self, entry, stream):
        if self.captures:
            return None
        self.events.append(Event(self.failure))
        return self.events[-1]

    def is_over(self, event):
        return event.is_done

    def tail(self, stream, device):
        return None if self.captures else Event()

    def order(self, event, stream, device):
        self.log.append(("ordered", self.events.index(event), stream))
        return not self.captures

    def is_captured(self, stream):
        return self.captures

    def waits_for_legacy(self, stream):
        return False


def module(driver, *kernels):
    return module_of(driver, manifest(*kernels))


def module_of(driver, manifest):
    joined = embed(cubin(), to_json(manifest).encode())
    return Module(joined, "add.cubin", lambda: driver)


def arrays(n=1000):
    return [Array(2**40 + i * 2**20, "f32", (n,), (1,), 0) for i in range(3)]
