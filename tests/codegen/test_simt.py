"""`simt` notices what threads may not do."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir
from simt import Code, Launch, run_block
from simt_memory import Memory, Segment, SimtError

from tilec.ir.dialect import context

START = """
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %one = arith.constant 1 : i32
  %next = arith.addi %t, %one : i32
  %few = arith.constant 3 : i32
  %some = arith.cmpi slt, %t, %few : i32
  %s = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %own = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %other = llvm.getelementptr %s[%next] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %g = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %odd = llvm.getelementptr %x[%one] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
"""
WRITE = "llvm.store %t, %own {alignment = 4 : i64} : i32, !llvm.ptr<3>"
READ = "%r = llvm.load %other {alignment = 4 : i64} : !llvm.ptr<3> -> i32"
BARRIER = "nvvm.barrier0"


def run(*body: str, threads: int = 64, elements: int = 64) -> None:
    lines = "\n".join(body)
    text = f"""
    llvm.mlir.global external @shared() {{addr_space = 3 : i32}} : !llvm.array<0 x i8>
    llvm.func @k(%x: !llvm.ptr<1>) {{ {START} {lines} llvm.return }}
    """
    with context():
        module = ir.Module.parse(text)
        memory = Memory()
        content = np.zeros(4 * elements, np.uint8)
        memory.add(Segment("x", 1 << 40, content, is_read_only=False))
        function = list(module.body.operations)[-1]
        # One more element than there are threads, which the last thread's `other` is.
        launch = Launch(threads, (0, 0, 0), (1, 1, 1), 4 * threads + 4)
        run_block(Code(function), [1 << 40], launch, memory)


def test_what_a_barrier_orders() -> None:
    first = "llvm.store %t, %other {alignment = 4 : i64} : i32, !llvm.ptr<3>"
    run(first, BARRIER, READ, BARRIER, WRITE)
    for broken in ((first, WRITE), (first, BARRIER, READ, WRITE), (WRITE, READ)):
        with pytest.raises(SimtError, match=r"without a barrier|nobody wrote"):
            run(*broken)


UPDATE = (
    'llvm.atomicrmw add %x, %one syncscope("device") monotonic {alignment = 4 : i64}'
    " : !llvm.ptr<1>, i32"
)


def test_updates_meet_updates_and_nothing_else_without_a_barrier() -> None:
    read = "%v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> i32"
    run(f"%a = {UPDATE}", f"%b = {UPDATE}", BARRIER, read)
    for broken in ((f"%a = {UPDATE}", read), (read, f"%a = {UPDATE}")):
        with pytest.raises(SimtError, match="without a barrier"):
            run(*broken)


def test_relaxed_stores_may_name_one_element() -> None:
    relaxed = 'llvm.inline_asm has_side_effects "st.relaxed.gpu.global.b32 [$0], $1;", "l,r" %x, %t'
    kind = ": (!llvm.ptr<1>, i32) -> ()"
    run(f"{relaxed} {kind}", f"{relaxed} {kind}")
    with pytest.raises(SimtError, match="together with another thread"):
        run("llvm.store %t, %x {alignment = 4 : i64} : i32, !llvm.ptr<1>")


def test_a_barrier_of_the_warp_orders_the_warp_only() -> None:
    mask = "%all = arith.constant -1 : i32"
    barrier = "nvvm.bar.warp.sync %all : i32"
    first = "llvm.store %t, %other {alignment = 4 : i64} : i32, !llvm.ptr<3>"
    run(mask, first, barrier, WRITE, threads=32)
    with pytest.raises(SimtError, match="without a barrier"):
        run(mask, first, barrier, WRITE)


def test_two_threads_write_one_element() -> None:
    with pytest.raises(SimtError, match="together"):
        run("llvm.store %t, %s {alignment = 4 : i64} : i32, !llvm.ptr<3>")


def test_accesses_outside_and_unaligned() -> None:
    load = "%r = llvm.load %g {alignment = 4 : i64} : !llvm.ptr<1> -> i32"
    run(load)
    with pytest.raises(SimtError, match="an access of 4 bytes at byte 252"):
        run(load, elements=63)
    with pytest.raises(SimtError, match="no multiple of 4"):
        run("%r = llvm.load %odd {alignment = 4 : i64} : !llvm.ptr<1> -> i32")


def test_a_tensor_that_is_written_is_not_constant() -> None:
    with pytest.raises(SimtError, match="constant"):
        run("%r = llvm.load %g invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32")


def test_barriers_and_loops_are_for_all_threads() -> None:
    with pytest.raises(SimtError, match="not all threads"):
        run(f"scf.if %some {{ {BARRIER} }}")
    with pytest.raises(SimtError, match="bound differs"):
        run("scf.for %i = %one to %t step %one : i32 { }")


def test_what_llvm_does_not_define() -> None:
    for line in ("arith.divsi %one, %t", "arith.shli %one, %t"):
        with pytest.raises(SimtError, match=r"define|bits"):
            run(f"%u = {line} : i32")
