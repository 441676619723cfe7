"""Loops of products by `wgmma` as kernels of their own, all barriers left out, on threads and as
machine code."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from mlir import ir

from tilec.codegen.lower_tiles import SHARED, gpu_module
from tilec.codegen.ptx import lower_to_llvm, ptx_of
from tilec.ir.dialect import context
from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.layout.swizzled import SwizzledTile
from tilec.layout.wgmma import (
    SharedOperand,
    a_register_layout,
    accumulator_layout,
    shared_operand,
    wgmma_for,
)
from tilec.ops.fragments import element_offset, i32, llvm_ptr, pack, unpack, zero
from tilec.ops.lower_wgmma import WgmmaDot, finish, start, wait, words
from tilec.target.resolve import resolve
from tilec.target.toolchain import nvdisasm, ptxas

SLOTS = 2
IN_REGISTERS = {"tf32": "f32", "f8e4m3": "i8", "f8e5m2": "i8", "u8": "i8"}


@dataclass(frozen=True)
class Loop:
    """What the loop adds up. Trip t multiplies the factors of slot t % 2.

    `a_held`: the first factor is in registers, computed before the loop. `waits`: each trip waits
    for its product, and a held factor is computed anew. Otherwise it waits for that of the trip
    before. `adds`: not only the product of the last trip counts. `a_along`, `b_along`: contiguous
    along k.
    """

    element: str = "bf16"
    total: str = "f32"
    rows: int = 64  # of a warpgroup
    columns: int = 128
    depth: int = 64
    warpgroups: int = 1
    a_along: bool = True
    b_along: bool = True
    a_held: bool = False
    waits: bool = False
    adds: bool = True

    @property
    def threads(self) -> int:
        return 128 * self.warpgroups

    @cached_property
    def dot(self) -> WgmmaDot:
        wgmma = wgmma_for(self.element, self.element, self.total)
        assert wgmma is not None
        rows, size = self.rows * self.warpgroups, wgmma.element_bytes
        sums = accumulator_layout((rows, self.columns), self.warpgroups)
        b = shared(self.columns, self.depth, size, self.b_along)
        if self.a_held:
            a = a_register_layout((rows, self.depth), self.warpgroups, size)
            return WgmmaDot(wgmma, sums, a, b)
        return WgmmaDot(wgmma, sums, shared(rows, self.depth, size, self.a_along), b)

    @property
    def slot_bytes(self) -> int:
        """Of a slot: the second factor, then the first if it is there."""
        a = self.dot.a
        return self.dot.b.tile.bytes + (a.tile.bytes if isinstance(a, SharedOperand) else 0)

    @property
    def instructions(self) -> int:
        """How many one trip has."""
        pieces = -(-self.columns // 256)
        step = {"tf32": 8, "f16": 16, "bf16": 16}.get(self.element, 32)
        return self.rows // 64 * pieces * self.depth // step


def shared(across: int, depth: int, element_bytes: int, along: bool) -> SharedOperand:
    tile = SwizzledTile.of((across, depth) if along else (depth, across), element_bytes)
    assert tile is not None
    operand = shared_operand(tile, 1 if along else 0)
    assert operand is not None
    return operand


# ---- the kernel ----------------------------------------------------------------------------------


@contextmanager
def built(loop: Loop) -> Iterator[tuple[ir.Module, ir.OpView]]:
    """The module and its one function: `(out, image, source, trips)`.

    `image` is what the slots hold, `source` what a held first factor is computed from.
    """
    with kernel(loop.threads, partial(_body, loop)) as made:
        yield made


@contextmanager
def kernel(threads: int, body: Callable[..., None]) -> Iterator[tuple[ir.Module, ir.OpView]]:
    """A kernel of three pointers and a number, with what `body` builds of them."""
    with context(), ir.Location.unknown():
        target = resolve("sm_90a")
        text = f'#nvvm.target<chip = "{target.name}", features = "{target.features}">'
        module, block = gpu_module("kernels", text)
        types = [llvm_ptr(1), llvm_ptr(1), llvm_ptr(1), word()]
        with ir.InsertionPoint(block):
            signature = ir.Type.parse(f"!llvm.func<void ({', '.join(map(str, types))})>")
            function = llvm.func("loop", ir.TypeAttr.get(signature))
        function.attributes["gpu.kernel"] = ir.UnitAttr.get()
        function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
        function.attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([threads])
        entry = function.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * 4)
        with ir.InsertionPoint(entry):
            body(*entry.arguments)
            llvm.return_()
        yield module, function


def _body(loop: Loop, out: ir.Value, image: ir.Value, source: ir.Value, trips: ir.Value) -> None:
    dot, (thread, group, base) = loop.dot, place()
    _fill(loop, base, image, thread)
    total = ir.Type.parse(loop.total)
    sums = pack(words([zero(total)] * dot.sums.registers))
    held = _held(loop, source, thread, i32(0)) if loop.a_held and not loop.waits else None
    carried = scf.ForOp(i32(0), trips, i32(1), [sums, i32(0)])
    with ir.InsertionPoint(carried.body):
        before, slot = carried.inner_iter_args
        b = arith.addi(llvm.ptrtoint(word(), base), arith.muli(slot, i32(loop.slot_bytes)))
        a = arith.addi(b, i32(dot.b.tile.bytes)) if held is None else held
        if loop.a_held and loop.waits:
            a = _held(loop, source, thread, carried.induction_variable)
        after = start(dot, unpack(before) if loop.adds else None, a, b, group)
        if loop.waits:
            after = words(finish(dot.wgmma.total, after))
        else:
            wait(1)
        following = arith.addi(slot, i32(1))
        wraps = arith.cmpi(arith.CmpIPredicate.eq, following, i32(SLOTS))
        scf.yield_([pack(after), arith.select(wraps, i32(0), following)])
    done = finish(dot.wgmma.total, unpack(carried.results[0]))
    put(done, out, thread)


def place() -> tuple[ir.Value, ir.Value, ir.Value]:
    """The thread, the number of its warpgroup, and where shared memory begins."""
    thread = nvvm.read_ptx_sreg_tid_x(word())
    warp = arith.shrui(thread, i32(5))
    kind = ir.Attribute.parse("#nvvm<shfl_kind idx>")
    warp = nvvm.shfl_sync(word(), i32(-1), warp, i32(0), i32(31), kind)
    base = llvm.mlir_addressof(llvm_ptr(3), ir.FlatSymbolRefAttr.get(SHARED))
    return thread, arith.shrui(warp, i32(2)), base


def put(values: Sequence[ir.Value], out: ir.Value, thread: ir.Value) -> None:
    """Write what a thread holds, thread after thread."""
    kind = values[0].type
    mine = element_offset(out, arith.muli(thread, i32(len(values))), kind)
    for i, value in enumerate(values):
        _store(value, element_offset(mine, i32(i), kind))


def _fill(loop: Loop, base: ir.Value, image: ir.Value, thread: ir.Value) -> None:
    """Copy the image of the slots to shared memory."""
    copies = scf.ForOp(i32(0), i32(SLOTS * loop.slot_bytes // 4), i32(loop.threads))
    with ir.InsertionPoint(copies.body):
        number = arith.addi(copies.induction_variable, thread)
        value = _load(word(), element_offset(image, number, word()))
        _store(value, element_offset(base, number, word()))
        scf.yield_([])
    nvvm.barrier0()


def _held(loop: Loop, source: ir.Value, thread: ir.Value, trip: ir.Value) -> ir.Value:
    """A fragment of the first factor: one more than what this thread reads of f32 or i32."""
    layout = loop.dot.a
    assert not isinstance(layout, SharedOperand)
    element = ir.Type.parse(IN_REGISTERS.get(loop.element, loop.element))
    is_bits = isinstance(element, ir.IntegerType)
    read = word() if is_bits else ir.F32Type.get()
    number = arith.addi(arith.muli(trip, i32(loop.threads)), thread)
    mine = element_offset(source, arith.muli(number, i32(layout.registers)), read)
    found = []
    for i in range(layout.registers):
        value = _load(read, element_offset(mine, i32(i), read))
        if is_bits:
            found.append(arith.trunci(element, arith.addi(value, i32(1))))
        else:
            value = arith.addf(value, arith.constant(read, 1.0))
            found.append(value if element == read else arith.truncf(element, value))
    return pack(found)


def word() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _load(kind: ir.Type, pointer: ir.Value) -> ir.Value:
    return llvm.load(kind, pointer, alignment=4)


def _store(value: ir.Value, pointer: ir.Value) -> None:
    llvm.store(value, pointer, alignment=2 if isinstance(value.type, ir.F16Type) else 4)


# ---- machine code --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    log: str  # of ptxas
    trip: Sequence[str]  # the instructions of one trip, without operands and predicates


def machine_code(module: ir.Module) -> Made:
    """Assemble a module for sm_90a whose kernel has one loop with products."""
    lower_to_llvm(module)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "loop.ptx").write_text(ptx_of(module))
        command = [ptxas(), "-v", "-arch=sm_90a", "-o", "loop.cubin", "loop.ptx"]
        assembled = _run(command, folder)
        listing = _run([nvdisasm(), "-c", "loop.cubin"], folder)
    return Made(assembled.stderr, _trip(listing.stdout.splitlines()))


def _run(command: Sequence[object], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, check=True
    )


def _trip(lines: Sequence[str]) -> list[str]:
    """What stands between a label and the last jump back to it, where that has products."""
    labels = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\.L_x_\d+):", line))}
    jumps = ((i, re.search(r"BRA\b.*\((\.L_x_\d+)\)", line)) for i, line in enumerate(lines))
    spans = [(labels[m[1]], i) for i, m in jumps if m and labels[m[1]] < i]
    loops = [_names(lines[first:last]) for first, last in spans]
    [trip] = [names for names in loops if any("GMMA" in name for name in names)]
    return trip


def _names(lines: Sequence[str]) -> list[str]:
    found = (re.search(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", x) for x in lines)
    return [match[1] for match in found if match]
