"""A loop of products by `wgmma` as a kernel of its own, its barriers left out, to machine code."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir import ir

from tilec.codegen.cubin import Cubin, assemble
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
from tilec.target.toolchain import nvdisasm, ptxas

SLOTS = 2
_REGISTERS = {"tf32": "f32", "f8e4m3": "i8", "f8e5m2": "i8", "u8": "i8"}


@dataclass(frozen=True)
class Loop:
    """What the loop multiplies; `a_held`: the first factor is in registers, `fresh`: made anew in
    each trip, which then waits for its product. `b_along` and `a_along`: contiguous along k."""

    element: str = "bf16"
    total: str = "f32"
    rows: int = 64  # of a warpgroup
    columns: int = 128
    depth: int = 64
    warpgroups: int = 1
    a_along: bool = True
    b_along: bool = True
    a_held: bool = False
    fresh: bool = False

    @property
    def dot(self) -> WgmmaDot:
        wgmma = wgmma_for(self.element, self.element, self.total)
        assert wgmma is not None
        rows = self.rows * self.warpgroups
        sums = accumulator_layout((rows, self.columns), self.warpgroups)
        b = _shared(self.columns, self.depth, wgmma.element_bytes, self.b_along)
        if self.a_held:
            shape = (rows, self.depth)
            a = a_register_layout(shape, self.warpgroups, wgmma.element_bytes)
            return WgmmaDot(wgmma, sums, a, b)
        return WgmmaDot(
            wgmma, sums, _shared(rows, self.depth, wgmma.element_bytes, self.a_along), b
        )

    @property
    def instructions(self) -> int:
        """How many one trip has."""
        pieces = -(-self.columns // 256)
        step = {"tf32": 8, "f16": 16, "bf16": 16}.get(self.element, 32)
        return self.rows // 64 * pieces * self.depth // step


def _shared(across: int, depth: int, element_bytes: int, along: bool) -> SharedOperand:
    tile = SwizzledTile.of((across, depth) if along else (depth, across), element_bytes)
    assert tile is not None
    operand = shared_operand(tile, 1 if along else 0)
    assert operand is not None
    return operand


def ptx(loop: Loop) -> str:
    with context(), ir.Location.unknown():
        module, body = gpu_module("kernels", '#nvvm.target<chip = "sm_90a", features = "+ptx83">')
        with ir.InsertionPoint(body):
            _function(loop)
        lower_to_llvm(module)
        return ptx_of(module)


def _function(loop: Loop) -> None:
    types = [llvm_ptr(1), llvm_ptr(1), ir.IntegerType.get_signless(32)]
    signature = ir.Type.parse(f"!llvm.func<void ({', '.join(map(str, types))})>")
    function = llvm.func("loop", ir.TypeAttr.get(signature))
    function.attributes["gpu.kernel"] = ir.UnitAttr.get()
    function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
    threads = ir.DenseI32ArrayAttr.get([128 * loop.warpgroups])
    function.attributes["nvvm.maxntid"] = threads
    entry = function.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * 3)
    with ir.InsertionPoint(entry):
        _body(loop, *entry.arguments)
        llvm.return_()


def _body(loop: Loop, out: ir.Value, source: ir.Value, trips: ir.Value) -> None:
    dot, word = loop.dot, ir.IntegerType.get_signless(32)
    thread = nvvm.read_ptx_sreg_tid_x(word)
    warp = arith.shrui(thread, i32(5))
    warp = nvvm.shfl_sync(word, i32(-1), warp, i32(0), i32(31), nvvm.ShflKind.idx)
    group = arith.shrui(warp, i32(2))
    shared = llvm.mlir_addressof(llvm_ptr(3), ir.FlatSymbolRefAttr.get(SHARED))
    base = llvm.ptrtoint(word, shared)
    b_bytes = dot.b.tile.bytes
    slot_bytes = b_bytes + (dot.a.tile.bytes if isinstance(dot.a, SharedOperand) else 0)
    total = ir.Type.parse(loop.total)
    sums = pack(words([zero(total)] * dot.sums.registers))
    held = _held(loop, source, thread, i32(0)) if loop.a_held and not loop.fresh else None
    carried = scf.ForOp(i32(0), trips, i32(1), [sums, i32(0)])
    with ir.InsertionPoint(carried.body):
        before, slot = carried.inner_iter_args
        place = arith.addi(base, arith.muli(slot, i32(slot_bytes)))
        if loop.fresh:
            a = _held(loop, source, thread, carried.induction_variable)
        else:
            a = arith.addi(place, i32(b_bytes)) if held is None else held
        after = start(dot, unpack(before), a, place, group)
        if loop.fresh:
            after = words(finish(dot, after))
        else:
            wait(1)
        following = arith.addi(slot, i32(1))
        wraps = arith.cmpi(arith.CmpIPredicate.eq, following, i32(SLOTS))
        scf.yield_([pack(after), arith.select(wraps, i32(0), following)])
    done = finish(dot, unpack(carried.results[0]))
    mine = element_offset(out, arith.muli(thread, i32(len(done))), total)
    for i, value in enumerate(done):
        llvm.store(value, element_offset(mine, i32(i), total))


def _held(loop: Loop, source: ir.Value, thread: ir.Value, trip: ir.Value) -> ir.Value:
    """A fragment of the first factor, computed from what this thread reads."""
    layout = loop.dot.a
    assert not isinstance(layout, SharedOperand)
    element = ir.Type.parse(_REGISTERS.get(loop.element, loop.element))
    computed = ir.IntegerType.get_signless(32) if str(element) == "i8" else ir.F32Type.get()
    number = arith.addi(arith.muli(trip, i32(4096)), thread)
    mine = element_offset(source, arith.muli(number, i32(layout.registers)), computed)
    found = []
    for i in range(layout.registers):
        value = llvm.load(computed, element_offset(mine, i32(i), computed))
        if str(element) == "i8":
            found.append(arith.trunci(element, arith.addi(value, i32(1))))
        else:
            value = arith.addf(value, arith.constant(computed, 1.0))
            found.append(value if element == computed else arith.truncf(element, value))
    return pack(found)


@dataclass(frozen=True)
class Made:
    cubin: Cubin
    trip: Sequence[str]  # the instructions of one trip, without operands and predicates
    names: Sequence[str]  # of the whole kernel


def machine_code(loop: Loop) -> Made:
    cubin = assemble(ptx(loop), "sm_90a", ptxas())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "loop.cubin")
        file.write_bytes(cubin.image)
        done = subprocess.run([nvdisasm(), "-c", file], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    labels = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\.L_x_\d+):", line))}
    spans = [
        (labels[m[1]], i)
        for i, line in enumerate(lines)
        if (m := re.search(r"BRA\b.*\((\.L_x_\d+)\)", line)) and labels[m[1]] < i
    ]
    loops = [_names(lines[first:last]) for first, last in spans]
    [trip] = [names for names in loops if any("GMMA" in name for name in names)]
    return Made(cubin, trip, _names(lines))


def _names(lines: Sequence[str]) -> list[str]:
    found = (re.search(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", x) for x in lines)
    return [match[1] for match in found if match]
