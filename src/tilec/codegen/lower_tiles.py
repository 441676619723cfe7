"""Placed tile operations to what one thread does: registers, addresses, masks, shared memory.

Before:   a function without helpers, every tile with a layout
After:    one more `llvm.func` in a `gpu.module`; inside it `arith`, `math`, `scf`, `vector`, `llvm`
          and `nvvm`, and `warp.alloc` for shared memory

Algorithm: walk the kernel in order; each operation's rule emits its results (`OpRules.lower`). The
kernel's own part is the entry: arguments in the order of the manifest's slots, this program's
index in the grid, and a guard for the blocks that a folded grid has too many (docs/abi.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.codegen.start_early import FOLLOWS
from tilec.ir.dialect import declarations
from tilec.ir.dialects import arith, gpu, llvm, nvvm, scf
from tilec.ir.quick_arith import constants_once
from tilec.ir.types import is_tile
from tilec.ir.walk import argument_names, operations
from tilec.layout import LANES
from tilec.ops.fragments import in_memory, index, llvm_ptr
from tilec.ops.lowering import (
    PERSISTENT,
    ROWS_TOGETHER,
    UNIFORM,
    Lowered,
    Lowering,
    TensorMap,
    View,
    cluster_of,
    first_place,
    longest_of,
    split_of,
    teams_of,
)
from tilec.ops.notes import Note, Place
from tilec.ops.order import count_of, delinearised, grouped, longest_first
from tilec.ops.parameter_space import MAP_ALIGNMENT, MAP_BYTES
from tilec.ops.pending import waiting
from tilec.ops.persistent import register, small, wide
from tilec.ops.registry import rules
from tilec.ops.roles import ROLES
from tilec.ops.start import begin

# Where a block's shared memory begins, as bytes that only a launch knows the number of.
SHARED = "shared_memory"
# Units: bytes; what copies by hardware ask of where they go (PTX ISA, "Tensor swizzling modes").
_ALIGNMENT = 1024


@dataclass(frozen=True)
class ThreadCode:
    """A kernel lowered to threads: its function, whose shared memory is not resolved yet.

    Units:    bytes: what was taken of pointers and outer strides of each parameter
    """

    function: ir.OpView
    alignments: dict[str, int]
    notes: tuple[tuple[Place, Note], ...]
    tensor_maps: tuple[TensorMap, ...] = ()


def gpu_module(name: str, target: str) -> tuple[ir.Module, ir.Block]:
    """An empty module for machine code, and the block that kernels go into.

    `target` is the text of an `#nvvm.target` attribute; needs a current location.
    """
    module = ir.Module.create()
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
    with ir.InsertionPoint(module.body):
        inner = gpu.GPUModuleOp(name, targets=ir.ArrayAttr.get([ir.Attribute.parse(target)]))
    region = inner.bodyRegion
    body = region.blocks[0] if len(region.blocks) else region.blocks.append()
    with ir.InsertionPoint(body):
        _shared_global()
    return module, body


def lower_tiles(
    kernel: ir.OpView,
    symbol: str,
    body: ir.Block,
    *,
    warps: int,
    vector_bytes: int,
    loader_warps: int = 0,
) -> ThreadCode:
    """Lower one kernel to threads, as one more function of `body`.

    `loader_warps` are beside the `warps` that have tiles in their registers, of each team.
    """
    with kernel.location, ir.InsertionPoint(body):
        return _emit_function(kernel, symbol, warps, vector_bytes, loader_warps)


def _shared_global() -> None:
    llvm.mlir_global(
        ir.Type.parse("!llvm.array<0 x i8>"),
        SHARED,
        ir.Attribute.parse("#llvm.linkage<external>"),
        addr_space=3,
        alignment=_ALIGNMENT,
    )


def _emit_function(
    kernel: ir.OpView, symbol: str, warps: int, vector_bytes: int, loader_warps: int
) -> ThreadCode:
    [source] = kernel.regions[0].blocks
    maps = _tensor_maps(kernel)
    slots = [_argument_type(argument.type) for argument in source.arguments]
    types = [*slots, *[ir.Type.parse("!llvm.ptr")] * len(maps)]
    signature = ir.Type.parse(f"!llvm.func<void ({', '.join(map(str, types))})>")
    function = llvm.func(symbol, ir.TypeAttr.get(signature))
    function.attributes["gpu.kernel"] = ir.UnitAttr.get()
    function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
    threads = LANES * (warps * teams_of(kernel) + loader_warps)
    function.attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([threads])
    if maps:
        nothing, passed = ir.DictAttr.get({}), ir.DictAttr.get(_passed_by_value())
        given = [*[nothing] * len(slots), *[passed] * len(maps)]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(given)
    if loader_warps:
        # One block has the registers to itself, which roles then share out.
        one = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        function.attributes["nvvm.minctasm"] = one
    cluster, blocks = cluster_of(kernel), split_of(kernel)
    if cluster is not None or blocks > 1:
        along = blocks if cluster is None else cluster.blocks
        shape = ir.DenseI32ArrayAttr.get([along, 1, 1])
        function.attributes["nvvm.cluster_dim"] = shape
    entry = function.regions[0].blocks.append(*types, arg_locs=[kernel.location] * len(types))
    arguments = list(entry.arguments)
    described = dict(zip(maps, arguments[len(slots) :], strict=True))
    with ir.InsertionPoint(entry):
        top = first_place()
        with constants_once(top):
            lowering = _emit_entry(
                kernel, source, arguments[: len(slots)], warps, vector_bytes, top, described
            )
        llvm.return_()
    return ThreadCode(function, lowering.alignments, tuple(lowering.notes), tuple(maps))


def _tensor_maps(kernel: ir.OpView) -> list[TensorMap]:
    """What the channels of a kernel are filled by, each once."""
    asked = (rules()[op.operation.name].tensor_maps(op) for op in operations(kernel))
    return list(dict.fromkeys(one for maps in asked for one in maps))


def _passed_by_value() -> dict[str, ir.Attribute]:
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), MAP_ALIGNMENT)
    return {
        "llvm.byval": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{MAP_BYTES} x i8>")),
        "llvm.align": alignment,
        "nvvm.grid_constant": ir.UnitAttr.get(),
    }


def _argument_type(slot: ir.Type) -> ir.Type:
    if isinstance(slot, ir.MemRefType):
        return llvm_ptr(1)
    return in_memory(slot)


def _emit_entry(
    kernel: ir.OpView,
    source: ir.Block,
    arguments: Sequence[ir.Value],
    warps: int,
    vector_bytes: int,
    top: ir.InsertionPoint,
    tensor_maps: Mapping[TensorMap, ir.Value],
) -> Lowering:
    values: dict[ir.Value, Lowered] = {}
    names = argument_names(kernel)
    for slot, argument in zip(source.arguments, arguments, strict=True):
        values[slot] = _argument(slot, argument, names[slot], is_early=FOLLOWS in kernel.attributes)
    thread = nvvm.read_ptx_sreg_tid_x(ir.IntegerType.get_signless(32))
    walker = TileWalker(values, _waiting(kernel))
    # Everything up to the grid's own definition is scalar arithmetic on the arguments.
    lowering = Lowering(
        warps,
        thread,
        (),
        (),
        vector_bytes,
        top,
        ir.InsertionPoint.current,
        walker.emit_with_arguments,
        tensor_maps=tensor_maps,
        cluster=cluster_of(kernel),
        teams=teams_of(kernel),
        split=split_of(kernel),
    )
    walker.lowering = lowering
    if any(op.operation.name == ROLES for op in source.operations):
        lowering.start = begin(
            lowering, tensor_maps.values(), waits_for_cluster=lowering.cluster is not None
        )
    grid = walker.emit_grid(source)
    lowering.grid = grid
    if ROWS_TOGETHER in kernel.attributes:
        lowering.rows_together = ir.IntegerAttr(kernel.attributes[ROWS_TOGETHER]).value
    lowering.longest = longest_of(kernel)
    if PERSISTENT in kernel.attributes:
        # Each role says which program it does.
        lowering.program = tuple(index(0) for _ in grid)
        lowering.entry = first_place()
        walker.emit_block(source)
        return lowering
    if ROWS_TOGETHER in kernel.attributes:
        ids, is_program = _program_in_groups(lowering)
    else:
        ids, is_program = _program_of_block(grid)
    guard = scf.IfOp(is_program)
    guard.attributes[UNIFORM] = ir.UnitAttr.get()
    with ir.InsertionPoint(guard.then_block):
        lowering.program = ids
        lowering.entry = first_place()
        walker.emit_block(source)
        scf.yield_([])
    return lowering


def _argument(slot: ir.Value, argument: ir.Value, name: str, *, is_early: bool) -> Lowered:
    if isinstance(slot.type, ir.MemRefType):
        memref = ir.MemRefType(slot.type)
        own = ir.StringAttr(ir.DictAttr(memref.memory_space)["own"]).value
        # What an early block reads, the grid before may write while this one runs already: to take
        # it as constant (`ld.global.nc`) would let it be read before the wait.
        read_only = own == "shared" and not is_early
        return View(argument, name, memref.element_type, (), (), (), None, read_only=read_only)
    text = str(slot.type)
    if text == "index":
        return arith.index_cast(slot.type, argument)
    if text == "i1":
        zero = arith.constant(argument.type, 0)
        return arith.cmpi(arith.CmpIPredicate.ne, argument, zero)
    return argument


def _program_of_block(grid: Sequence[ir.Value]) -> tuple[tuple[ir.Value, ...], ir.Value]:
    """The program of this block (an index an axis), and whether it has one: as `launch_grid` says.

    What stands before a program's first load delays all that it does, hence no division where
    blocks are programs, and none where all axes but the first are of extent 1.
    """
    x, z = register(nvvm.read_ptx_sreg_ctaid_x), register(nvvm.read_ptx_sreg_ctaid_z)
    bit, ids = ir.IntegerType.get_signless(1), [ir.IndexType.get()] * len(grid)

    def spread() -> Sequence[ir.Value]:
        y = register(nvvm.read_ptx_sreg_ctaid_y)
        return (*delinearised(z, grid[:-2]), y, x, arith.constant(bit, 1))

    def numbered() -> Sequence[ir.Value]:
        number = arith.addi(x, arith.muli(z, register(nvvm.read_ptx_sreg_nctaid_x)))
        count = count_of(grid)
        is_program = arith.cmpi(arith.CmpIPredicate.slt, number, count)
        if len(grid) < 2:
            return (*(number for _ in grid), is_program)
        is_first = arith.cmpi(arith.CmpIPredicate.eq, count, grid[0])
        first = (number, *(index(0) for _ in grid[1:]))
        found = _either(is_first, lambda: first, lambda: delinearised(number, grid), ids)
        return (*found, is_program)

    if len(grid) < 2:
        *program, is_program = numbered()
        return tuple(program), is_program
    rows = register(nvvm.read_ptx_sreg_nctaid_y)
    is_spread = arith.cmpi(arith.CmpIPredicate.sgt, rows, index(1))
    *program, is_program = _either(is_spread, spread, numbered, [*ids, bit])
    return tuple(program), is_program


def _program_in_groups(lowering: Lowering) -> tuple[tuple[ir.Value, ...], ir.Value]:
    """As `_program_of_block`, in the order of `grouped`: blocks that run together share memory.

    Or in that of `longest_first`, where programs take unequally long.

    The blocks of a split program are those of a cluster, which lie along x: a power of two.
    """
    x, across = register(nvvm.read_ptx_sreg_ctaid_x), register(nvvm.read_ptx_sreg_nctaid_x)
    if lowering.split > 1:
        bits = index(lowering.split.bit_length() - 1)
        x, across = arith.shrui(x, bits), arith.shrui(across, bits)
    y, z = register(nvvm.read_ptx_sreg_ctaid_y), register(nvvm.read_ptx_sreg_ctaid_z)
    down = register(nvvm.read_ptx_sreg_nctaid_y)
    number = arith.addi(x, arith.muli(across, arith.addi(y, arith.muli(down, z))))
    has_roles = lowering.start is not None
    [number, *extents] = small([number, *lowering.grid]) if has_roles else [number, *lowering.grid]
    is_program = arith.cmpi(arith.CmpIPredicate.slt, number, count_of(extents))
    rows, longest = lowering.rows_together, lowering.longest
    if longest is None:
        ids = grouped(number, extents, rows)
    else:
        ids = longest_first(number, extents, rows, longest)
    return wide(ids) if has_roles else ids, is_program


def _either(
    condition: ir.Value,
    one: Callable[[], Sequence[ir.Value]],
    other: Callable[[], Sequence[ir.Value]],
    types: Sequence[ir.Type],
) -> Sequence[ir.Value]:
    """By a condition that is the same for all threads of the block."""
    branch = scf.IfOp(condition, types, has_else=True)
    branch.attributes[UNIFORM] = ir.UnitAttr.get()
    for block, values in ((branch.then_block, one), (branch.else_block, other)):
        with ir.InsertionPoint(block):
            scf.yield_(values())
    return list(branch.results)


def _waiting(kernel: ir.OpView) -> set[ir.Operation]:
    """What is emitted where a tile leaves, box by box."""
    ends = [op for op in operations(kernel) if rules()[op.operation.name].leaves_in_pieces(op)]

    def may_wait(op: ir.OpView) -> bool:
        return rules()[op.operation.name].may_wait(op)

    found = waiting(ends, may_wait, _is_before_loop) if ends else set()
    return found - {op.operation for op in ends}


def _is_before_loop(op: ir.OpView) -> bool:
    """Whether it loads, and a loop comes between it and what follows in its block."""
    if rules()[op.operation.name].access(op) is None:
        return False
    after = False
    for other in op.operation.block.operations:
        if after and any(rules()[one.operation.name].loop for one in (other, *operations(other))):
            return True
        after = after or other == op
    return False


class TileWalker:
    """Emits the operations of a block, keeping what each value of the tile level became."""

    def __init__(self, values: dict[ir.Value, Lowered], waiting: set[ir.Operation]) -> None:
        self.values = values
        self.waiting = waiting
        self.lowering: Lowering

    def emit_grid(self, block: ir.Block) -> tuple[ir.Value, ...]:
        """The extents of the grid (index): of the part of the highest rank, or of the `tile.grid`.

        Emits the scalar arithmetic and views they are made of; all parts have one grid, padded
        with 1 at the end.
        """
        grids: list[tuple[ir.Value, ...]] = []
        for op in block.operations:
            if len(op.regions) or any(v not in self.values for v in op.operands):
                continue
            rule = rules()[op.operation.name]
            extents = rule.grid(op, [self.values[v] for v in op.operands])
            if extents is not None:
                grids.append(tuple(extents))
            elif len(op.results) == 1 and not is_tile(op.results[0]):
                self._emit_scalar(op)
        return max(grids, key=len)

    def _emit_scalar(self, op: ir.OpView) -> None:
        declared = declarations().get(op.operation.name)
        if declared is None or (declared.pure and op.operands):
            self._emit(op)

    def emit_with_arguments(self, block: ir.Block, arguments: Sequence[Lowered]) -> list[Lowered]:
        """`emit_block`, after its arguments are known."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        return self.emit_block(block)

    def emit_block(self, block: ir.Block) -> list[Lowered]:
        """Emit all operations; gives the operands of the terminator, lowered."""
        for op in block.operations:
            if rules()[op.operation.name].terminator:
                return [self.values[v] for v in op.operands]
            self._emit(op)
        raise AssertionError("a block has a terminator")

    def _emit(self, op: ir.OpView) -> None:
        with op.location:
            rule = rules()[op.operation.name]
            operands = [self.values[v] for v in op.operands]
            if rule.control:  # what is left for later is for this block
                self.lowering.do_meanwhile()
            if op.operation in self.waiting:
                results: Sequence[Lowered] = [rule.pending(op, operands, self.lowering)]
            else:
                results = rule.lower(op, operands, self.lowering)
        for result, value in zip(op.results, results, strict=True):
            self.values[result] = value
