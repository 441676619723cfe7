"""What a pipeline does wrong between launches: what has no value, and what has no order.

Beside the sanitizer of each launch, it follows every byte of the workspace and every tensor that a
caller left open.

Algorithm: each byte knows the tensor that last wrote it, or nobody. A read is right if all bytes of
the element are the tensor's own; where a temporary comes into use, its bytes are poisoned and
nobody's, so that what lay there before is gone for whoever would still need it. For order, every
operation of every launch keeps which elements it touched; two launches that touch one byte, one of
them writing, must be ordered by a path of `after`. That is decided by the plan and not by the
order of this run: it is found in each run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from mlir import ir

from tilec.artifact.pipelines import comes_after
from tilec.interpret.memory import Array, Observer
from tilec.interpret.pipeline import POISON, Launch, Ready
from tilec.interpret.sanitize import Finding, Sanitizer

_NOBODY = -1


@dataclass(frozen=True)
class NoValue:
    """A launch reads an element of a tensor that no launch of this run wrote before.

    `taken_by` is the temporary that has come to lie at its place since.
    """

    launch: int
    tensor: str
    element: tuple[int, ...]
    program: tuple[int, ...]
    op: ir.OpView
    taken_by: str | None


@dataclass(frozen=True)
class NoOrder:
    """Two launches may run side by side, and touch one place, which at least one of them writes.

    Guarantees: `launches`, `ops` and `tensors` go together; where one reads, it is the second
    """

    is_read: bool
    launches: tuple[int, int]
    ops: tuple[ir.OpView, ir.OpView]
    tensors: tuple[str, str]
    element: tuple[int, ...]  # of the first tensor


@dataclass(frozen=True)
class InLaunch:
    """What the sanitizer found in one launch."""

    launch: int
    found: Finding


PipelineFinding = NoValue | NoOrder | InLaunch


@dataclass(frozen=True)
class _Region:
    """Where a tensor lies: a parameter in memory of its own, a temporary in the workspace.

    Units:    bytes; `start` counts from the start of `block`
    """

    block: str
    start: int
    shape: tuple[int, ...]
    itemsize: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.itemsize

    def index(self, number: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(number, self.shape))


@dataclass
class _Touched:
    """The elements of a tensor that one operation of one launch touched."""

    launch: int
    tensor: str
    op: ir.OpView
    written: bool
    elements: Array  # of truth values, one for each element in row-major order


# The block that holds all temporaries; no tensor has this name.
_WORKSPACE = ""


@dataclass
class Watch:
    """Follows one run of a pipeline."""

    ready: Ready
    _regions: dict[str, _Region] = field(default_factory=dict)
    _owners: dict[str, Array] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _begun: list[str] = field(default_factory=list)
    _touched: dict[tuple[int, str, ir.OpView, bool], _Touched] = field(default_factory=dict)
    _open: dict[tuple[int, str, ir.OpView], NoValue] = field(default_factory=dict)
    _sanitizers: list[tuple[int, Sanitizer]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ready = self.ready
        tensors = {**ready.tensors, **ready.temporaries}
        self._numbers = {name: number for number, name in enumerate(tensors)}
        self._owners[_WORKSPACE] = np.full(ready.workspace.bytes, _NOBODY, np.int32)
        for name, array in tensors.items():
            start = ready.workspace.offsets.get(name)
            block = name if start is None else _WORKSPACE
            region = _Region(block, start or 0, array.shape, array.itemsize)
            self._regions[name] = region
            if start is None:
                owner = _NOBODY if name in ready.unset else self._numbers[name]
                self._owners[block] = np.full(region.size, owner, np.int32)

    def of_launch(self, launch: Launch) -> Observer:
        """The observer of a launch, which is about to run."""
        arrays = {k: v for k, v in launch.arguments.items() if isinstance(v, np.ndarray)}
        sanitizer = Sanitizer({name: array.shape for name, array in arrays.items()})
        self._sanitizers.append((launch.number, sanitizer))
        for argument in launch.told.arguments:
            if argument.tensor is not None and argument.tensor in self.ready.temporaries:
                self._begin(argument.tensor)
        return _Both(self, launch, sanitizer)

    def findings(self) -> Iterator[PipelineFinding]:
        """What was found: of each launch, then between launches."""
        for number, sanitizer in sorted(self._sanitizers, key=lambda pair: pair[0]):
            yield from (InLaunch(number, found) for found in sanitizer.findings())
        yield from self._open.values()
        yield from self._without_order()

    def touched(
        self,
        launch: Launch,
        op: ir.OpView,
        tensor: str,
        elements: Array,
        program: tuple[int, ...],
        *,
        written: bool,
        read: bool,
    ) -> None:
        """An access to elements of a tensor of the pipeline, by their numbers."""
        if not elements.size:
            return
        if read:
            self._check_values(launch, op, tensor, elements, program)
        if written:
            self._bytes(tensor)[elements] = self._numbers[tensor]
        key = launch.number, tensor, op, written
        if key not in self._touched:
            nothing = np.zeros(len(self._bytes(tensor)), np.bool_)
            self._touched[key] = _Touched(launch.number, tensor, op, written, nothing)
        self._touched[key].elements[elements] = True

    def _begin(self, tensor: str) -> None:
        """Where a temporary comes into use, its memory has no value."""
        if tensor in self._begun:
            return
        self._begun.append(tensor)
        region = self._regions[tensor]
        self.ready.memory[region.start : region.start + region.size] = POISON
        self._bytes(tensor)[:] = _NOBODY

    def _bytes(self, tensor: str) -> Array:
        """Who wrote each byte. Shapes: one row for each element."""
        region = self._regions[tensor]
        block = self._owners[region.block][region.start : region.start + region.size]
        return block.reshape(-1, region.itemsize)

    def _check_values(
        self,
        launch: Launch,
        op: ir.OpView,
        tensor: str,
        elements: Array,
        program: tuple[int, ...],
    ) -> None:
        owners = self._bytes(tensor)[elements]
        without = elements[(owners != self._numbers[tensor]).any(axis=1)]
        key = launch.number, tensor, op
        if without.size and key not in self._open:
            element = self._regions[tensor].index(int(without[0]))
            taken_by = self._taken_by(tensor)
            self._open[key] = NoValue(launch.number, tensor, element, program, op, taken_by)

    def _taken_by(self, tensor: str) -> str | None:
        """The temporary of the same slot that came into use last, if that is another one."""
        slots = {t.name: t.slot for t in self.ready.pipeline.temporaries}
        if tensor not in slots:
            return None
        last = [name for name in self._begun if slots[name] == slots[tensor]][-1]
        return last if last != tensor else None

    def _without_order(self) -> Iterator[NoOrder]:
        before = comes_after(self.ready.pipeline.launches)
        by_block: dict[str, list[_Touched]] = {}
        for one in sorted(self._touched.values(), key=lambda t: t.launch):
            by_block.setdefault(self._regions[one.tensor].block, []).append(one)
        for touches in by_block.values():
            for first, second in combinations(touches, 2):
                ordered = first.launch == second.launch or first.launch in before[second.launch]
                if not ordered and (first.written or second.written):
                    pair = (first, second) if first.written else (second, first)
                    yield from self._meeting(*pair)

    def _meeting(self, writer: _Touched, other: _Touched) -> Iterator[NoOrder]:
        """The first byte that both touched."""
        one, two = self._regions[writer.tensor], self._regions[other.tensor]
        start = max(one.start, two.start)
        end = min(one.start + one.size, two.start + two.size)
        if start >= end:
            return
        by_writer = writer.elements.repeat(one.itemsize)[start - one.start : end - one.start]
        by_other = other.elements.repeat(two.itemsize)[start - two.start : end - two.start]
        both = by_writer & by_other
        if both.any():
            number = (start - one.start + int(both.argmax())) // one.itemsize
            yield NoOrder(
                is_read=not other.written,
                launches=(writer.launch, other.launch),
                ops=(writer.op, other.op),
                tensors=(writer.tensor, other.tensor),
                element=one.index(number),
            )


class _Both:
    """Tells the sanitizer of a launch in the kernel's words, and the watch in the pipeline's."""

    def __init__(self, watch: Watch, launch: Launch, sanitizer: Sanitizer) -> None:
        self._watch, self._launch, self._sanitizer = watch, launch, sanitizer
        self._program: tuple[int, ...] = ()
        self._names: dict[str, str] = {}
        self._elements: dict[str, Array] = {}
        for argument in launch.told.arguments:
            if argument.tensor is None:
                continue
            self._names[argument.parameter] = argument.tensor
            if argument.axes:
                shape = watch._regions[argument.tensor].shape
                numbers = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
                self._elements[argument.parameter] = numbers.transpose(argument.axes).ravel()

    def starts(self, program: tuple[int, ...]) -> None:
        self._program = program
        self._sanitizer.starts(program)

    def touched(
        self,
        op: ir.OpView,
        tensor: str,
        elements: Array,
        *,
        written: bool,
        outside: int,
        atomic: bool = False,
    ) -> None:
        self._sanitizer.touched(
            op, tensor, elements, written=written, outside=outside, atomic=atomic
        )
        if tensor in self._elements:
            elements = self._elements[tensor][elements]
        # An atomic update reads what it changes.
        read = atomic or not written
        self._watch.touched(
            self._launch, op, self._names[tensor], elements, self._program,
            written=written, read=read,
        )  # fmt: skip
