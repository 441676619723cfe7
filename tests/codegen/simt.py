"""What `lower_tiles` makes, executed with NumPy: all threads of a block in lock-step.

A value is an array with one row a thread: (threads,) for scalars and pointers, (threads, n) for
vectors. Arithmetic has the meaning that the CPU execution gives it, so what is tried here is what a
thread adds to that: coordinates, addresses, masks, shuffles, shared memory, barriers and control
flow. Divisions that LLVM does not define, barriers and shuffles that not all threads meet, and
loops whose bounds differ between threads are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import simt_async
import simt_matrix
import simt_staged
from mlir import ir
from mlir.dialects import llvm
from simt_cluster import Cluster
from simt_copies import MappedTensor
from simt_memory import LANES, SHARED_BASE, Clock, Memory, Segment, SimtError
from simt_strands import LATE, Timing

from tilec.codegen.start_early import SIGNAL, WAIT
from tilec.ops.formats import dtype_of, saturated_f8
from tilec.ops.global_memory import KEEP_TOGETHER
from tilec.ops.registry import rules

# Between the times of blocks that run together: more than any has.
_TIMES_APART = 1 << 32

Array = Any  # rows of numbers; a tuple of them for a struct


@dataclass(frozen=True)
class Launch:
    """One block of a launch: `block` is blockIdx, `grid` is gridDim."""

    threads: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    smem_bytes: int
    steps: int = 10**9  # operations, after which it is given up
    tensor_maps: Mapping[int, MappedTensor] = field(default_factory=dict)  # by what is passed
    timing: Timing = LATE
    starts_early: bool = False  # while a grid before runs, which threads wait for


class GivenUp(Exception):  # noqa: N818  (no fault of the program)
    """The block took more operations than it was given; what it did until then was right."""


class Trapped(Exception):  # noqa: N818  (what the program asked for)
    """An assertion of the code does not hold in some thread: the message, and where it stands."""

    def __init__(self, message: str, line: int, function: str, thread: int) -> None:
        super().__init__(f"{message} ({function}, line {line}, thread {thread})")
        self.message, self.line, self.function, self.thread = message, line, function, thread


@dataclass(frozen=True)
class _Step:
    """One operation; values are numbered."""

    op: ir.OpView
    execute: Callable[[_Block, ir.OpView, list[Array], Array], list[Array]] | None  # None: the last
    operands: tuple[int, ...]
    results: tuple[int, ...]


class Code:
    """A function, each of its blocks read once."""

    def __init__(self, function: ir.OpView) -> None:
        [self.body] = function.regions[0].blocks
        self._numbers: dict[ir.Value, int] = {}
        self._blocks: dict[ir.Block, list[_Step]] = {}

    def number(self, value: ir.Value) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def steps(self, block: ir.Block) -> list[_Step]:
        if block not in self._blocks:
            self._blocks[block] = [self._step(op) for op in block.operations]
        return self._blocks[block]

    def _step(self, op: ir.OpView) -> _Step:
        name = op.operation.name
        known = None if name in _LAST else simt_async.rule_of(op) or _RULES.get(name)
        if known is None and name in _PREPARED:
            known = _PREPARED[name](op)
        execute = None if name in _LAST else known or _meaning_of(op)
        return _Step(
            op, execute, tuple(map(self.number, op.operands)), tuple(map(self.number, op.results))
        )


def run_block(code: Code, arguments: Sequence[Any], launch: Launch, memory: Memory) -> int:
    """Execute the block; gives the steps that are left.

    Arguments are numbers; pointers are addresses in `memory`.
    """
    machine = _machine(launch, memory, None)
    memory.clock.block += 1
    memory.clock.program += 1
    memory.clock.acquired = False
    block = _Block(code, launch, memory, machine, np.arange(launch.threads))
    _run_to_end(block, arguments)
    return block.steps


def run_cluster(
    code: Code, arguments: Sequence[Any], launches: Sequence[Launch], memory: Memory
) -> int:
    """As `run_block`, of the blocks of a cluster; the last one's steps."""
    cluster = Cluster(launches[0].timing)
    blocks = []
    for launch in launches:
        # Each has a time of its own, far from that of others.
        own = Memory()
        own.add(*memory.segments)
        memory.clock.block += _TIMES_APART
        memory.clock.program += 1
        own.clock = Clock(block=memory.clock.block, program=memory.clock.program)
        machine = _machine(launch, own, cluster)
        blocks.append(_Block(code, launch, own, machine, np.arange(launch.threads)))
    memory.clock.block += _TIMES_APART

    def body_of(block: _Block) -> Callable[[], None]:
        def body() -> None:
            with code.body.owner.operation.context:
                _run_to_end(block, arguments)
            cluster.leave(block.machine)

        return body

    cluster.strands.run([(f"block {rank}", body_of(one)) for rank, one in enumerate(blocks)])
    cluster.expect_nobody_late()
    return blocks[-1].steps


def _machine(launch: Launch, memory: Memory, cluster: Cluster | None) -> simt_async.Machine:
    shared = Segment(
        "shared memory",
        SHARED_BASE,
        np.zeros(launch.smem_bytes, np.uint8),
        is_read_only=False,
        is_written=False,
    )
    machine = simt_async.Machine(
        launch.threads, memory, shared, launch.tensor_maps, launch.timing, cluster
    )
    shared.start = machine.base
    return machine


def _run_to_end(block: _Block, arguments: Sequence[Any]) -> None:
    code, machine, threads = block.code, block.machine, block.launch.threads
    kinds = [_dtype(argument.type) for argument in code.body.arguments]
    numbers = [np.asarray(v).astype(kind) for v, kind in zip(arguments, kinds, strict=True)]
    block.bind(code.body, [np.full(threads, number) for number in numbers])
    block.memory.add(machine.shared)
    if block.launch.starts_early:
        block.memory.start_early(threads)
    machine.strand = machine.strands.current.number
    try:
        with np.errstate(all="ignore"):
            block.run(code.body, np.ones(threads, bool))
        block.products.expect_over()
        block.copies.expect_over()
        machine.expect_over()
        block.memory.expect_all_waited()
    finally:
        block.memory.remove(machine.shared)


class _Block:
    """Threads of a block that run in lock-step: all, or those of a role."""

    def __init__(
        self,
        code: Code,
        launch: Launch,
        memory: Memory,
        machine: simt_async.Machine,
        threads: Array,
    ) -> None:
        self.code = code
        self.launch = launch
        self.memory = memory
        self.machine = machine
        self.threads = threads
        self.values: dict[int, Array] = {}
        self.variables: dict[int, Array] = {}
        self.products = simt_async.Products()
        self.copies = simt_staged.Copies()
        self.steps = launch.steps

    def part(self, rows: Array) -> _Block:
        """Some of the threads, with what they know."""
        found = _Block(self.code, self.launch, self.memory, self.machine, self.threads[rows])
        found.values = {number: _rows(value, rows) for number, value in self.values.items()}
        found.variables = {name: value[rows] for name, value in self.variables.items()}
        found.steps = self.steps
        return found

    def run(self, block: ir.Block, active: Array) -> list[Array]:
        """Execute a block for the active threads; gives what its terminator hands over."""
        steps = self.code.steps(block)
        self.steps -= len(steps)
        if self.steps < 0:
            raise GivenUp
        for step in steps:
            operands = [self.values[number] for number in step.operands]
            if step.execute is None:
                return operands
            results = step.execute(self, step.op, operands, active)
            self.values.update(zip(step.results, results, strict=True))
        raise AssertionError("a block has a terminator")

    def bind(self, block: ir.Block, arguments: Sequence[Array]) -> None:
        """Give a block its arguments."""
        self.values.update(zip(map(self.code.number, block.arguments), arguments, strict=True))

    def uniform(self, value: Array, active: Array, what: str) -> Any:
        """The number that all active threads have."""
        numbers = np.unique(value[active])
        if len(numbers) != 1:
            raise SimtError(f"{what} differs between threads")
        return numbers[0]

    def warps_here(self, active: Array, what: str) -> None:
        """Of each warp all threads take part, or none."""
        by_warp = active.reshape(-1, LANES)
        if (by_warp.any(axis=1) != by_warp.all(axis=1)).any():
            raise SimtError(f"not all lanes meet {what}")

    def all_here(self, active: Array, what: str) -> None:
        if not active.all():
            raise SimtError(f"not all threads meet {what}")


def _rows(value: Array, rows: Array) -> Array:
    if isinstance(value, tuple):
        return tuple(_rows(member, rows) for member in value)
    return None if value is None else value[rows]


# ---- arithmetic ----------------------------------------------------------------------------------


def _meaning_of(op: ir.OpView) -> Callable[[_Block, ir.OpView, list[Array], Array], list[Array]]:
    """By the meaning of the operation, element by element."""
    name = op.operation.name
    rule: Any = rules()[name]
    plain = SimpleNamespace(
        operation=op.operation,
        operands=list(op.operands),
        results=[SimpleNamespace(type=_element(r.type)) for r in op.results],
        attributes=op.attributes,
    )
    if not len(op.operands):
        [constant] = rule.interpret(plain, [], None)
        return lambda block, _, operands, active: [np.broadcast_to(constant, active.shape)]

    def execute(_: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
        if len({x.ndim for x in operands}) > 1:
            operands = [x if x.ndim == 2 else x[:, None] for x in operands]
        if name in _PARTIAL:
            _PARTIAL[name](name, *operands, active)
        return list(rule.interpret(plain, operands, None))

    return execute


def _check_shift(name: str, value: Array, count: Array, active: Array) -> None:
    bits = value.dtype.itemsize * 8
    if ((count < 0) | (count >= bits))[active].any():
        raise SimtError(f"`{name}` by {bits} bits or more")


def _check_division(name: str, left: Array, right: Array, active: Array) -> None:
    undefined = right == 0
    if name.endswith("si"):
        undefined = undefined | ((right == -1) & (left == np.iinfo(left.dtype).min))
    if undefined[active].any():
        raise SimtError(f"`{name}` that LLVM does not define")


# What LLVM leaves undefined for some operands.
_PARTIAL = {
    **{f"arith.{name}": _check_shift for name in ("shli", "shrui", "shrsi")},
    **{
        f"arith.{name}{sign}i": _check_division
        for name in ("div", "rem", "ceildiv", "floordiv")
        for sign in "su"
    },
}


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _dtype(kind: ir.Type) -> np.dtype[Any]:
    # Types are few, and a type does not outlive its context: they are remembered by their texts.
    text = str(kind)
    if text not in _DTYPES:
        is_pointer = text.startswith("!llvm.ptr")
        _DTYPES[text] = np.dtype(np.int64) if is_pointer else dtype_of(_element(kind))
    return _DTYPES[text]


_DTYPES: dict[str, np.dtype[Any]] = {}


_SATURATING = {
    "llvm.fptosi.sat": 1,
    "llvm.fptoui.sat": 0,
    "llvm.nvvm.f2i.rz": 1,
    "llvm.nvvm.f2ui.rz": 0,
}
_SAME_MEANING = {
    "llvm.sqrt": "math.sqrt",
    "llvm.fma": "math.fma",
    "llvm.nvvm.ex2.approx.ftz": "math.exp2",
}


def _intrinsic(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    name = ir.StringAttr(op.attributes["intrin"]).value
    if name in _SAME_MEANING:
        plain = SimpleNamespace(results=[SimpleNamespace(type=_element(op.results[0].type))])
        rule: Any = rules()[_SAME_MEANING[name]]
        return list(rule.interpret(plain, operands, None))
    if name == "llvm.nvvm.prmt":
        return [_permuted(*operands)]
    signed = _SATURATING[name]
    plain = SimpleNamespace(
        results=[SimpleNamespace(type=_element(op.results[0].type))],
        attributes={"signed": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), signed)},
    )
    cast: Any = rules()["tile.saturating_cast"]
    return list(cast.interpret(plain, operands, None))


def _permuted(low: Array, high: Array, selector: Array) -> Array:
    """Four of eight bytes, or their signs (PTX ISA, "prmt")."""
    both = np.stack([low, high], axis=1).astype(np.uint32).view(np.uint8)
    result = np.zeros((len(low), 4), np.uint8)
    for place in range(4):
        chosen = selector >> 4 * place
        byte = np.take_along_axis(both, (chosen & 7)[:, None], axis=1)[:, 0]
        signs = np.where(byte & 0x80, 0xFF, 0).astype(np.uint8)
        result[:, place] = np.where(chosen & 8, signs, byte)
    return result.view(np.int32)[:, 0]


def _f8_of(op: ir.OpView, values: Array) -> Array:
    """As `cvt.rn.satfinite` rounds."""
    kind = ir.TypeAttr(op.attributes["dstTy"]).value
    return saturated_f8(values.astype(np.float64), kind).view(np.int8)


def _f32_to_f8(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    high, low = operands
    return [_f8_of(op, np.stack([low, high], axis=1))]


def _f16_to_f8(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    return [_f8_of(op, operands[0])]


def _f8_to_f16(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    kind = dtype_of(ir.TypeAttr(op.attributes["srcType"]).value)
    return [np.ascontiguousarray(operands[0]).view(kind).astype(np.float16)]


# ---- vectors and structs -------------------------------------------------------------------------


_Rule = Callable[["_Block", ir.OpView, list[Array], Array], list[Array]]


def _extract(op: ir.OpView) -> _Rule:
    [place] = op.attributes["static_position"]
    return lambda block, op, operands, active: [operands[0][:, place]]


def _from_elements(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    return [np.stack(operands, axis=1)]


def _broadcast(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    [count] = op.results[0].type.shape
    return [np.repeat(operands[0][:, None], count, axis=1)]


def _bitcast(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    return [np.ascontiguousarray(operands[0]).view(_dtype(op.results[0].type))]


def _extract_value(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    [place] = op.attributes["position"]
    return [operands[0][place]]


def _insert_value(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    whole, value = operands
    [place] = op.attributes["position"]
    return [(*whole[:place], value, *whole[place + 1 :])]


def _poison(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    """A pattern that shows where something depends on it."""
    kind = op.results[0].type
    if isinstance(kind, llvm.StructType):
        return [(None,) * len(kind.body)]  # of which every member is put in later
    count = tuple(kind.shape) if isinstance(kind, ir.VectorType) else ()
    dtype = _dtype(kind)
    if dtype == np.bool_:
        return [np.ones((len(active), *count), bool)]
    return [np.full((len(active), *count, dtype.itemsize), 0xA5, np.uint8).view(dtype)[..., 0]]


# ---- memory --------------------------------------------------------------------------------------


def _zero(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    return [np.zeros(len(active), _dtype(op.results[0].type))]


def _address_of(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    return [np.full(len(active), self.machine.base)]


def _element_pointer(op: ir.OpView) -> _Rule:
    [constant] = ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])
    size = _dtype(ir.TypeAttr(op.attributes["elem_type"]).value).itemsize

    def moved(_: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
        base, *dynamic = operands
        return [base + (dynamic[0].astype(np.int64) if dynamic else constant) * size]

    return moved


def _load(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    kind = op.results[0].type
    count = kind.shape[0] if isinstance(kind, ir.VectorType) else 1
    dtype = _dtype(kind)
    _check_alignment(operands[0], ir.IntegerAttr(op.attributes["alignment"]).value, active)
    if "syncscope" in op.attributes:
        return _updated(self, op, operands[0], active, None, [])
    if "7" in str(op.operands[0].type):
        loaded = np.full((len(active), count * dtype.itemsize), 0xA5, np.uint8)
        addresses = operands[0][active]
        loaded[active] = self.machine.cluster.read(self.machine, addresses, loaded.shape[1])
        values = loaded.view(dtype)
        return [values if isinstance(kind, ir.VectorType) else values[:, 0]]
    shared = "3" in str(op.operands[0].type)
    read_only = "invariant" in op.attributes
    loaded = _loaded(self, operands[0], active, count * dtype.itemsize, shared, read_only)
    values = loaded.view(dtype)
    return [values if isinstance(kind, ir.VectorType) else values[:, 0]]


def _loaded(
    self: _Block, pointers: Array, active: Array, size: int, shared: bool, read_only: bool
) -> Array:
    _check_space(pointers, active, shared)
    content = np.full((len(active), size), 0xA5, np.uint8)
    threads = self.threads[active]
    if shared:
        self.machine.touch(pointers[active], size, writes=False)
    content[active] = self.memory.load(pointers[active], size, threads, read_only=read_only)
    return content


def _store(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    value, pointers = operands
    _check_alignment(pointers, ir.IntegerAttr(op.attributes["alignment"]).value, active)
    _stored(self, pointers, active, value, shared="3" in str(op.operands[1].type))
    return []


def _stored(self: _Block, pointers: Array, active: Array, value: Array, *, shared: bool) -> None:
    _check_space(pointers, active, shared)
    rows = np.ascontiguousarray(value).reshape(len(active), -1).view(np.uint8)
    if shared:
        self.machine.touch(pointers[active], rows.shape[1], writes=True)
    self.memory.store(pointers[active], rows[active], self.threads[active])


def _check_alignment(pointers: Array, alignment: int, active: Array) -> None:
    if (pointers % alignment)[active].any():
        raise SimtError(f"an address is no multiple of {alignment}")


def _check_space(pointers: Array, active: Array, shared: bool) -> None:
    if ((pointers < 1 << 32) != shared)[active].any():
        raise SimtError("an address of the other memory")


_ACCESS = re.compile(
    r"(?:@\$(\d+) )?(ld|st)(\.relaxed\.gpu)?\.global(?:\.cs)?(\.nc)?(?:\.v(\d))?\.b(\d+) "
    r"(?:\{.*\}, )?(?:\$\d+, )?"
    r"\[\$(\d+)\](?:, .*)?;"
)


@lru_cache(maxsize=256)
def _form_of(text: str) -> tuple[str | None, ...]:
    matched = _ACCESS.fullmatch(text)
    assert matched, text
    return matched.groups()


def _assembly(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    """A load or store of `ops/global_memory.py`: predicated, relaxed, or for the last time.

    Or what `ops/lower_wgmma.py` has no operation for.
    """
    text = ir.StringAttr(op.attributes["asm_string"]).value
    if "wgmma" in text or not text:
        return simt_async.wgmma_text(self, text, operands, active)
    if text in (KEEP_TOGETHER, SIGNAL):
        return []
    if text == WAIT:
        if self.memory.waited is not None:
            self.memory.waited[self.threads[active]] = True
        return []
    form = _form_of(text)
    predicate, kind, relaxed, read_only, words, bits, _ = form
    pointers, *values = operands
    mask = values.pop(0) if predicate else active
    here = active & mask
    count, size = int(words or 1), int(bits) // 8
    _check_alignment(pointers, count * size, here)
    if kind == "st":
        narrow = [np.ascontiguousarray(v)[:, None].view(np.uint8)[:, :size] for v in values]
        _check_space(pointers, here, False)
        rows = np.concatenate(narrow, axis=1)
        self.memory.store(pointers[here], rows[here], self.threads[here], relaxed=bool(relaxed))
        return []
    loaded = _loaded(self, pointers, here, count * size, False, bool(read_only))
    if not predicate:
        # Nothing keeps what it was before; a byte lies in a register of 16 bits.
        register = np.dtype(f"i{max(size, 2)}")
        values = [np.zeros(len(active), register)] * count
    found = []
    for place, old in enumerate(values):
        word = np.zeros((len(active), old.dtype.itemsize), np.uint8)
        word[:, :size] = loaded[:, place * size : (place + 1) * size]
        found.append(np.where(here, word.view(old.dtype)[:, 0], old))
    return [tuple(found)] if count > 1 else found


# ---- atomic updates ------------------------------------------------------------------------------


def _updated(
    self: _Block,
    op: ir.OpView,
    pointers: Array,
    active: Array,
    change: Callable[..., Array] | None,
    values: list[Array],
) -> list[Array]:
    """One thread after the other: `change` of what is there and of the values; gives the former."""
    dtype = _dtype(op.results[0].type) if not values else values[0].dtype
    _check_alignment(pointers, dtype.itemsize, active)
    _check_space(pointers, active, False)
    found = np.full((len(active), dtype.itemsize), 0xA5, np.uint8)
    for row in np.flatnonzero(active):
        own = [value[row : row + 1] for value in values]

        def changed(old: Array, own: list[Array] = own) -> Array:
            assert change is not None
            new = np.asarray(change(old.view(dtype), *own)).astype(dtype)
            return np.ascontiguousarray(new).view(np.uint8)

        done = None if change is None else changed
        address, thread = int(pointers[row]), int(self.threads[row])
        found[row] = self.memory.update(address, dtype.itemsize, thread, done)
    return [found.view(dtype)[:, 0]]


# The numbers of `llvm.atomicrmw`'s kinds (LLVMOps' AtomicBinOp), and the operation that each means.
_UPDATES = {
    1: "arith.addi", 3: "arith.andi", 5: "arith.ori", 6: "arith.xori", 7: "arith.maxsi",
    8: "arith.minsi", 9: "arith.maxui", 10: "arith.minui", 11: "arith.addf", 13: "arith.maxnumf",
    14: "arith.minnumf",
}  # fmt: skip


def _atomic_update(
    self: _Block, op: ir.OpView, operands: list[Array], active: Array
) -> list[Array]:
    pointers, value = operands
    kind = ir.IntegerAttr(op.attributes["bin_op"]).value
    if kind == 0:
        return _updated(self, op, pointers, active, lambda _, new: new, [value])
    rule: Any = rules()[_UPDATES[kind]]
    plain = SimpleNamespace(results=[SimpleNamespace(type=op.results[0].type)])

    def change(old: Array, given: Array) -> Array:
        return rule.interpret(plain, [old, given], None)[0]

    return _updated(self, op, pointers, active, change, [value])


def _compare_exchange(
    self: _Block, op: ir.OpView, operands: list[Array], active: Array
) -> list[Array]:
    pointers, expected, new = operands
    [old] = _updated(
        self, op, pointers, active, lambda old, e, n: np.where(old == e, n, old), [expected, new]
    )
    return [(old, old == expected)]


def _fence(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.memory.clock.acquired = True
    return []


# ---- threads -------------------------------------------------------------------------------------


def _register(number: Callable[[_Block], Any]) -> Any:
    def read(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
        return [np.broadcast_to(np.asarray(number(self), np.int32), active.shape)]

    return read


def _blocks(block: _Block) -> int:
    return len(block.machine.cluster.machines)


def _assert(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    [condition] = operands
    failing = self.threads[active & ~condition]
    if len(failing):
        message = ir.StringAttr(op.attributes["msg"]).value
        name = op.location
        raise Trapped(message, name.child_loc.start_line, name.name_str, int(failing[0]))
    return []


def _warp_barrier(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "a barrier of the warp")
    self.memory.clock.warp += 1
    return []


def _shuffle(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "a shuffle")
    _, value, number, clamp = operands
    assert (clamp == LANES - 1).all()
    lane = self.threads % LANES
    source = lane ^ number if "bfly" in str(op.attributes["kind"]) else number
    if ((source < 0) | (source >= LANES)).any():
        raise SimtError("a shuffle from a lane that there is not")
    return [value[np.arange(len(active)) - lane + source]]


# ---- matrices ------------------------------------------------------------------------------------

_FACTORS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8, "u8": np.uint8,
    "tf32": np.float32, "f64": np.float64,
}  # fmt: skip


def _mma(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "an mma")
    shape = tuple(int(n) for n in re.findall(r"= (\d+)", str(op.attributes["shape"])))
    segments = list(op.attributes["operandSegmentSizes"])
    kinds = [str(op.attributes[f"multiplicand{x}PtxType"]) for x in "AB"]
    factors, start = [], 0
    for count, kind in zip(segments[:2], kinds, strict=True):
        words = np.stack(operands[start : start + count], axis=1).reshape(len(active), -1)
        [name] = re.findall(r"<(\w+)>", kind)
        factors.append(np.ascontiguousarray(words).view(_FACTORS[name]))
        start += count
    sums = np.stack(operands[start:], axis=1)
    flat = sums.reshape(len(active), -1)
    warps = [
        simt_matrix.mma(
            factors[0].dtype.itemsize * 8, shape, *(x[w : w + LANES] for x in (*factors, flat))
        )
        for w in range(0, len(active), LANES)
    ]
    found = np.concatenate(warps).astype(sums.dtype).reshape(sums.shape)
    return [tuple(found[:, i] for i in range(found.shape[1]))]


def _ldmatrix(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "an ldmatrix")
    count = ir.IntegerAttr(op.attributes["num"]).value
    naming = (self.threads % LANES) // 8 < count
    _check_alignment(operands[0], 16, naming)
    loaded = _loaded(self, operands[0], naming, 16, shared=True, read_only=False)
    rows = loaded.view(np.uint16).reshape(-1, 4, 8, 8)[:, :count]
    transposed = "col" in str(op.attributes["layout"])
    held = [simt_matrix.load_matrices(one, transposed=transposed) for one in rows]
    words = np.ascontiguousarray(np.concatenate(held)).view(np.int32)[..., 0]
    found = [words[:, i] for i in range(count)]
    return [tuple(found)] if count > 1 else found


def _stmatrix(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.warps_here(active, "an stmatrix")
    pointers, *words = operands
    naming = active & ((self.threads % LANES) // 8 < len(words))
    _check_alignment(pointers, 16, naming)
    held = np.stack(words, axis=1).view(np.uint16).reshape(-1, LANES, len(words), 2)
    transposed = "col" in str(op.attributes["layout"])
    rows = [simt_matrix.store_matrices(one, transposed=transposed) for one in held]
    content = np.zeros((len(held), 4, 8, 8), np.uint16)
    content[:, : len(words)] = rows
    _stored(self, pointers, naming, content.reshape(len(active), 8), shared=True)
    return []


def _address_number(self: _Block, op: ir.OpView, operands: list[Array], _: Array) -> list[Array]:
    return [operands[0].astype(_dtype(op.results[0].type))]


def _same_bits(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    [value] = operands
    kind = op.results[0].type
    viewed = np.ascontiguousarray(value.reshape(len(active), -1)).view(_dtype(kind))
    return [viewed if isinstance(kind, ir.VectorType) else viewed[:, 0]]


# ---- control flow --------------------------------------------------------------------------------


def _if(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    [condition] = operands
    found: list[Array] | None = None
    for region, takes in zip(op.regions, (active & condition, active & ~condition), strict=True):
        if not takes.any() or not len(region.blocks):
            continue
        results = self.run(region.blocks[0], takes)
        if found is None:
            found = results
        else:
            found = [_where(takes, new, old) for new, old in zip(results, found, strict=True)]
    return found or []


def _where(takes: Array, new: Array, old: Array) -> Array:
    return np.where(takes if new.ndim == 1 else takes[:, None], new, old)


def _for(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    lower, upper, step, *carried = operands
    bounds = [int(self.uniform(v, active, "a loop's bound")) for v in (lower, upper, step)]
    [body] = op.regions[0].blocks
    for number in range(*bounds):
        counter = np.full(len(active), number, lower.dtype)
        self.bind(body, [counter, *carried])
        carried = self.run(body, active)
    return carried


def _while(self: _Block, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    before, after = (region.blocks[0] for region in op.regions)
    carried = operands
    while True:
        self.bind(before, carried)
        condition, *carried = self.run(before, active)
        if not self.uniform(condition, active, "a loop's condition"):
            return carried
        self.bind(after, carried)
        carried = self.run(after, active)


# What reads its attributes once, and is run often.
_PREPARED: dict[str, Callable[[ir.OpView], _Rule]] = {
    "vector.extract": _extract,
    "llvm.getelementptr": _element_pointer,
}
_LAST = frozenset({"scf.yield", "scf.condition", "llvm.return"})
_RULES: dict[str, Callable[[_Block, ir.OpView, list[Array], Array], list[Array]]] = {
    "vector.from_elements": _from_elements,
    "vector.broadcast": _broadcast,
    "vector.bitcast": _bitcast,
    "llvm.extractvalue": _extract_value,
    "llvm.insertvalue": _insert_value,
    "llvm.mlir.poison": _poison,
    "llvm.mlir.undef": _poison,
    "llvm.ptrtoint": _address_number,
    "llvm.mlir.zero": _zero,
    "llvm.bitcast": _same_bits,
    "llvm.call_intrinsic": _intrinsic,
    "llvm.mlir.addressof": _address_of,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.inline_asm": _assembly,
    "llvm.atomicrmw": _atomic_update,
    "llvm.cmpxchg": _compare_exchange,
    "llvm.fence": _fence,
    "nvvm.read.ptx.sreg.tid.x": _register(lambda b: b.threads),
    "nvvm.read.ptx.sreg.ctaid.x": _register(lambda b: b.launch.block[0]),
    "nvvm.read.ptx.sreg.ctaid.y": _register(lambda b: b.launch.block[1]),
    "nvvm.read.ptx.sreg.ctaid.z": _register(lambda b: b.launch.block[2]),
    "nvvm.read.ptx.sreg.cluster.ctarank": _register(lambda b: b.machine.rank),
    "nvvm.read.ptx.sreg.clusterid.x": _register(lambda b: b.launch.block[0] // _blocks(b)),
    "nvvm.read.ptx.sreg.nclusterid.x": _register(lambda b: b.launch.grid[0] // _blocks(b)),
    "nvvm.read.ptx.sreg.nctaid.x": _register(lambda b: b.launch.grid[0]),
    "nvvm.read.ptx.sreg.nctaid.y": _register(lambda b: b.launch.grid[1]),
    "nvvm.read.ptx.sreg.nctaid.z": _register(lambda b: b.launch.grid[2]),
    "cf.assert": _assert,
    "nvvm.convert.f32x2.to.f8x2": _f32_to_f8,
    "nvvm.convert.f16x2.to.f8x2": _f16_to_f8,
    "nvvm.convert.f8x2.to.f16x2": _f8_to_f16,
    "nvvm.bar.warp.sync": _warp_barrier,
    "nvvm.shfl.sync": _shuffle,
    "nvvm.mma.sync": _mma,
    "nvvm.ldmatrix": _ldmatrix,
    "nvvm.stmatrix": _stmatrix,
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    **simt_staged.RULES,
}
