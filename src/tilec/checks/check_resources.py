"""E0702 for what no block of threads can hold: too many threads, a tile, what a loop carries; and
for parameters that a kernel cannot be passed.

Algorithm: what a kernel is passed (pointers, strides, scalars, extents) is refused at the kernel if
it takes more bytes than the target has for parameters. Tensor maps come beside that only as far as
there is room (`tilec.schedule.map_room`).

For the threads that `#[hint(warps = …)]` asks for, else for the blocks that there are:
1. More threads than a block can have are refused at the hint.
2. A tile is spread over all threads of a block; each holds its share in 32-bit registers. A tile
   whose share in the largest block is more than a thread can have is refused where it is made from
   what is none.
3. What a loop carries is in registers all at once while it runs, and so is what other loops left
   or carry around it for later. If that is all that a thread can have, whatever the block, it is
   refused at the operation that makes the largest of the tiles that the loop carries: the loop
   needs a register of its own.

Sound as a refusal: shared memory holds less than the registers do, and what is carried cannot be
made again. All else may be: a tile that is used once may pass through a few registers at a time,
and one that is loaded may be loaded again. What does not fit then spills, and the manifest says how
much. Layouts decide what has to go through shared memory: `tilec.driver` asks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from mlir import ir

from tilec.checks.held_across import held_across
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.dialect import declarations
from tilec.ir.places import span_of
from tilec.ir.types import is_tile
from tilec.ir.walk import functions, operations
from tilec.ops.parameter_space import parameter_bytes
from tilec.ops.registry import rules
from tilec.source import SourceFile, Span
from tilec.target.description import Target

PASS = "tile-verify-resources"
INLINED = False

_REGISTER_BITS = 32
_IS_KERNEL = "tile.parameters"
_HELP = "work on smaller tiles, in a loop or with a larger grid"

SpanOf = Callable[[ir.Location], Span]


def check_resources(
    module: ir.Module, sources: Mapping[str, SourceFile], target: Target
) -> Iterator[Diagnostic]:
    """One finding for each place in the source, function by function in program order."""

    def place(location: ir.Location) -> Span:
        span = span_of(location, dict(sources))
        assert span is not None, "every operation has its place in the source"
        return span

    seen: set[Span] = set()
    for function in functions(module):
        for finding in _check_function(function, place, target):
            if finding.span not in seen:
                seen.add(finding.span)
                yield finding


def is_within_shared_memory(module: ir.Module, target: Target) -> bool:
    """Whether a block's shared memory holds each tile, and all that one operation combines.

    A change of layout takes as much as the tile, a reduction no more than its operands.
    """
    for function in functions(module):
        for op in operations(function):
            largest = max((_bytes(v) for v in (*op.operands, *op.results) if is_tile(v)), default=0)
            together = rules()[op.operation.name].shared_at_once(op)
            needed = sum(_bytes(v) for v in together if is_tile(v))
            if max(largest, needed) > target.smem_per_block_bytes:
                return False
    return True


def _bytes(tile: ir.Value) -> int:
    return int(prod(tile.type.shape)) * _bits(tile.type.element_type) // 8


def _check_function(function: ir.OpView, place: SpanOf, target: Target) -> Iterator[Diagnostic]:
    notes = _notes(function)
    warps = _hinted_warps(function)
    most = target.threads_per_block
    passed = parameter_bytes(function) if _IS_KERNEL in function.attributes else 0
    if passed > target.parameter_bytes:
        yield _too_many_parameters(passed, place(function.location), notes, target)
    if warps is not None and warps * target.threads_per_warp > most:
        yield _too_many_threads(warps, _place_of_hint(function, place), notes, target)
        return
    blocks = _blocks(warps, target)
    beyond: set[ir.Value] = set()
    for op in operations(function):
        needed = max((_registers(v.type, blocks[-1]) for v in op.results), default=0)
        if needed > target.registers_per_thread:
            if not _is_for_one_of(beyond, op):
                yield _too_big(place(op.location), needed, blocks[-1], notes, target)
            beyond.update(op.results)
        elif rules()[op.operation.name].loop:
            yield from _check_loop(function, op, place, blocks, notes, target)


# ---- threads -------------------------------------------------------------------------------------


def _hinted_warps(function: ir.OpView) -> int | None:
    """The hint `warps`, if this is a kernel that has it; a helper may serve any."""
    if "tile.hints" not in function.attributes:
        return None
    hints = ir.DictAttr(function.attributes["tile.hints"])
    return int(ir.IntegerAttr(hints["warps"]).value) if "warps" in hints else None


def _blocks(warps: int | None, target: Target) -> list[int]:
    """The numbers of threads that the block may have, in ascending order."""
    most = target.threads_per_block // target.threads_per_warp
    counts = [1 << bit for bit in range(most.bit_length())]
    if warps is not None:
        counts = [max(count for count in counts if count <= warps)]
    return [count * target.threads_per_warp for count in counts]


def _place_of_hint(function: ir.OpView, place: SpanOf) -> Span:
    whole = place(function.location)
    start, end = ir.DictAttr(function.attributes["tile.hint_places"])["warps"]
    return Span(whole.file, ir.IntegerAttr(start).value, ir.IntegerAttr(end).value)


# ---- registers -----------------------------------------------------------------------------------


def _is_for_one_of(values: set[ir.Value], op: ir.OpView) -> bool:
    """Whether an operation works on one of these, or makes the 1 of `t + 1` for it."""
    if any(map(is_tile, op.operands)):
        return not values.isdisjoint(op.operands)
    declared = declarations().get(op.operation.name)
    if declared is not None and declared.reads:
        return False
    users = (use.owner for result in op.results for use in result.uses)
    return any(not values.isdisjoint(user.operands) for user in users)


def _registers(kind: ir.Type, threads: int) -> int:
    """The registers that each thread of a block needs for a tile; 0 for what is none."""
    if not isinstance(kind, ir.RankedTensorType):
        return 0
    elements = ceil(int(prod(kind.shape)) / threads)
    return ceil(elements * _bits(kind.element_type) / _REGISTER_BITS)


def _bits(element: ir.Type) -> int:
    return 64 if isinstance(element, ir.IndexType) else max(8, int(element.width))


def _registers_of_thread(threads: int, target: Target) -> int:
    """What each thread of a block can have: all of them share the registers of one processor."""
    return min(target.registers_per_thread, target.registers_per_sm // threads)


# ---- loops ---------------------------------------------------------------------------------------


def _check_loop(
    function: ir.OpView,
    loop: ir.OpView,
    place: SpanOf,
    blocks: Sequence[int],
    notes: tuple[str, ...],
    target: Target,
) -> Iterator[Diagnostic]:
    carried = _carried(loop)
    if not carried:
        return
    held = [one.kind for one in carried] + [v.type for v in held_across(function, loop)]
    needs = [(sum(_registers(kind, t) for kind in held), t) for t in blocks]
    if any(needed < _registers_of_thread(threads, target) for needed, threads in needs):
        return
    needed, threads = needs[-1]
    largest = max(carried, key=lambda one: _registers(one.kind, threads))
    around = len(held) - len(carried)
    others = f" and {_tiles(around)} around it" if around else ""
    what = f"the loop carries {_tiles(len(carried))}{others}"
    yield Diagnostic(
        "E0702",
        f"what a loop carries needs {needed} registers per thread in a block of {threads}, "
        f"which has {_registers_of_thread(threads, target)} for each, the loop's own among them",
        (Label(place(largest.made.location), what),),
        notes=notes,
        help=_HELP,
    )


def _tiles(count: int) -> str:
    return "1 tile" if count == 1 else f"{count} tiles"


@dataclass(frozen=True)
class _Carried:
    """One tile that a loop carries, and the operation that makes it anew."""

    kind: ir.Type
    made: ir.OpView


def _carried(loop: ir.OpView) -> list[_Carried]:
    """The tiles that one pass of a loop hands to the next."""
    found: list[_Carried] = []
    for group in rules()[loop.operation.name].carried(loop):
        # Of a `while`, what the condition sees; what it hands on is the same, or made from it.
        if not is_tile(group.values[0]) or not any(user == loop for user, _ in group.operands):
            continue
        [(user, number)] = [x for x in group.operands if x[0] != loop]
        maker = user.operands[number].owner
        found.append(
            _Carried(group.values[0].type, loop if isinstance(maker, ir.Block) else maker.opview)
        )
    return found


# ---- findings ------------------------------------------------------------------------------------


def _notes(function: ir.OpView) -> tuple[str, ...]:
    """Which instance it is, of a kernel that may have several."""
    attributes = function.attributes
    if "tile.generics" not in attributes or not len(ir.ArrayAttr(attributes["tile.generics"])):
        return ()
    return (f"in the instance `{ir.StringAttr(attributes['sym_name']).value}`",)


def _too_many_parameters(
    passed: int, place: Span, notes: tuple[str, ...], target: Target
) -> Diagnostic:
    return Diagnostic(
        "E0702",
        f"the parameters of this kernel take {passed} bytes, "
        f"{target.name} has {target.parameter_bytes} for them",
        (Label(place),),
        notes=(*notes, "a tensor takes 8 bytes for each axis, a `Dim` 8, a scalar its size"),
        help="pass several tensors as one with another axis, or split the kernel",
    )


def _too_many_threads(
    warps: int, place: Span, notes: tuple[str, ...], target: Target
) -> Diagnostic:
    most = target.threads_per_block // target.threads_per_warp
    return Diagnostic(
        "E0702",
        f"{warps} warps are {warps * target.threads_per_warp} threads, "
        f"a block has {target.threads_per_block} at most",
        (Label(place),),
        notes=notes,
        help=f"ask for {most} warps or fewer",
    )


def _too_big(
    place: Span, needed: int, threads: int, notes: tuple[str, ...], target: Target
) -> Diagnostic:
    return Diagnostic(
        "E0702",
        f"this tile needs {needed} registers per thread in a block of {threads}, "
        f"a thread has {target.registers_per_thread}",
        (Label(place),),
        notes=notes,
        help=_HELP,
    )
