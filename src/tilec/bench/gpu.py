"""What the harness asks of a GPU and of the library of arrays on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tilec.bench.description import Input, Output, Tensor
from tilec.bench.rates import Unit

Array = object
Enqueue = Callable[[], object]


class Gpu(Protocol):
    """A GPU with PyTorch (`tilec.bench.torch_gpu`), or what tests have in its place."""

    @property
    def capability(self) -> tuple[int, int]: ...

    @property
    def l2_bytes(self) -> int: ...

    def free_bytes(self) -> int:
        """What can be allocated; what earlier cases left over counts as free."""

    def operations_per_us(self, unit: Unit) -> float:
        """The most that it does in a microsecond; 0 where this is not known."""

    def environment(self) -> dict[str, object]:
        """The card, its driver and clocks, and the versions of what rivals come from."""

    def filled(self, spec: Input, seed: int) -> Array: ...

    def empty(self, spec: Tensor) -> Array: ...

    def poison(self, array: Array) -> None:
        """Fills an array with NaN, or with what no index is."""

    def wide(self, array: Array) -> Array:
        """Floats in float64; the array itself otherwise."""

    def error(self, found: Array, exact: Array, spec: Output) -> float:
        """The largest difference by the tolerance; infinite where one is NaN and the other not."""

    def magnitude(self, array: Array) -> float:
        """The root of the mean square of the elements that are numbers; 0 if there are none."""

    def copy(self, target: Array, source: Array) -> None: ...

    def compiled(self, function: Callable[..., object]) -> Callable[..., object]:
        """The function, to be compiled for the first arguments that it is called with."""

    def time_us(self, enqueue: Enqueue) -> float:
        """What the GPU takes for what this enqueues, without the latency of launches."""

    def captured(self, enqueue: Enqueue) -> Enqueue:
        """Does once more, each time it is called, all that this enqueues, as one CUDA graph."""

    def synchronise(self) -> None:
        """Waits for all work; raises what went wrong with it."""
