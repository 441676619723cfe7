"""What a benchmark is, as data: nothing here needs a GPU, nor a library of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.bench.rates import Unit

if TYPE_CHECKING:
    from tilec.bench.kernels import Kernels

Call = Callable[..., object]
# Gives what launches our kernels on (*outputs, *scratch, *inputs, *scalars).
Ours = Callable[["Kernels"], Call]


@dataclass(frozen=True)
class Tensor:
    """A tensor of a case, contiguous."""

    shape: tuple[int, ...]
    element: str  # as in `.tile` files: "f32", "bf16", …

    def __post_init__(self) -> None:
        if self.element not in ELEMENT_BYTES:
            raise ValueError(f"expected an element type, got {self.element!r}")

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * ELEMENT_BYTES[self.element]


@dataclass(frozen=True)
class Input(Tensor):
    """A tensor that is read: numbers between the two of `span`, the second excluded, all as likely
    as each other; without it, of the standard normal distribution. `values` are its elements
    themselves, where they must be these."""

    span: tuple[float, float] | None = None
    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values is not None and len(self.values) != prod(self.shape):
            raise ValueError(f"expected {prod(self.shape)} values, got {len(self.values)}")


@dataclass(frozen=True)
class Output(Tensor):
    """A tensor that is written. A right element differs from the exact one by at most `absolute` +
    `relative` times its magnitude."""

    absolute: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True)
class Scratch(Tensor):
    """Memory that our launches need between them; it counts as nothing that must be moved."""


@dataclass(frozen=True)
class Operations:
    """How many operations a call must do at least, and which part of the GPU does them."""

    count: int
    unit: Unit = "f32"


@dataclass(frozen=True)
class Case:
    """One workload at one size. Arguments are the outputs, the inputs, the scalars.

    `moved_bytes` is what a call must read and write at least: left out, each input and output once.
    """

    name: str
    outputs: tuple[Output, ...]
    inputs: tuple[Input, ...]
    scalars: tuple[float, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    moved_bytes: int | None = None
    operations: Operations | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.outputs, *self.scratch, *self.inputs)

    @property
    def floor_bytes(self) -> int:
        if self.moved_bytes is not None:
            return self.moved_bytes
        return sum(tensor.size_bytes for tensor in (*self.outputs, *self.inputs))


@dataclass(frozen=True)
class Rival:
    """Another way to compute the same.

    `operation` is `module:function`, imported only when it is to run, from where the description
    is. `style`: a `function` takes (*inputs, *scalars) and returns the outputs; `compiled` is such
    a function, to be compiled by torch.compile; a `kernel` takes (*outputs, *inputs, *scalars) and
    writes the outputs. `needs` are the modules without which it is left out. One that `is_part`
    does a part of the work only, or less exactly: nobody checks it.
    """

    name: str
    operation: str
    style: Literal["function", "compiled", "kernel"]
    needs: tuple[str, ...] = ()
    is_part: bool = False


@dataclass(frozen=True)
class Benchmark:
    """A kernel, the cases that it is measured at, and its rivals.

    `operation` is `module:function` of PyTorch's operations, (*inputs, *scalars) to outputs: on
    inputs in float64 it gives the exact result. `observed`, of the same form, is for outputs that
    may differ and be right: of (*inputs, *outputs) it gives what is compared in their place.
    """

    name: str
    ours: Ours
    operation: str
    cases: tuple[Case, ...]
    rivals: tuple[Rival, ...] = ()
    observed: str | None = None
