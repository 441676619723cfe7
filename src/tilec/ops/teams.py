"""Teams: math warps that do programs by turns, each team all of one.

All teams run the same code, and go through all programs of the block. Slots of channels are got in
the order of programs: a team *skips* those of a program that another one does. It may only wait for
slots of its own once those before have come, for a barrier in memory tells no more than the parity
of its phase: of a slot that was filled for an earlier program, the phase before the last one would
be taken for the one that is waited for. So the turn to get slots goes round in a circle. It also
keeps the products of one program from being held up by those of the next one.

    team 0: get 0 1 2 | pass turn | end of program 0, skip 3 4 5 | await turn, get 6 7 8 | ...
    team 1: skip 0 1 2 | await turn, get 3 4 5 | pass turn | end of program 1, skip 6 7 8 | ...

Source:   PTX ISA, "mbarrier"; the ordered barriers of CUTLASS's ping-pong kernels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm
from tilec.ops.channel import BARRIER_BYTES, Channel, advanced, arrive, speaks, until_over
from tilec.ops.fragments import i32, llvm_ptr
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import OpRules


@dataclass(frozen=True)
class Turns:
    """Whose turn it is; every thread keeps count for its team.

    Units:    `barriers` is an address in shared memory (i32), where each team has a barrier; `team`
              (i32) is the number of this thread's. Variables are pointers to an i32 each: `ahead`
              counts the programs until the next one that is the team's, `parity` is that of the
              phase that it waits for
    """

    count: int
    team: ir.Value
    barriers: ir.Value
    ahead: ir.Value
    parity: ir.Value


def make_turns(count: int, lowering: Lowering) -> ir.Value:
    """The barriers of so many teams, made where the block begins."""
    assert lowering.start is not None, "a kernel with teams has roles"
    with lowering.start.places:
        barriers = lowering.ring(count * BARRIER_BYTES, BARRIER_BYTES, throughout=True)
    with lowering.start.making:
        for number in range(count):
            nvvm.mbarrier_init(_barrier(barriers, i32(number)), i32(1))
    return barriers


def begin_turns(count: int, barriers: ir.Value, lowering: Lowering) -> Turns:
    """Where only threads of teams come, which are numbered as warpgroups are."""
    turns = Turns(count, lowering.warpgroup(), barriers, lowering.variable(), lowering.variable())
    llvm.store(turns.team, turns.ahead)
    # The first team need not wait, as if the phase before had ended.
    is_first = arith.cmpi(arith.CmpIPredicate.eq, turns.team, i32(0))
    llvm.store(arith.extui(_word(), is_first), turns.parity)
    return turns


class _Mine(OpRules):
    name = "warp.mine"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        turns = _turns(lowering)
        ahead = llvm.load(_word(), turns.ahead)
        is_mine = arith.cmpi(arith.CmpIPredicate.eq, ahead, i32(0))
        less = arith.subi(ahead, i32(1))
        llvm.store(arith.select(is_mine, i32(turns.count - 1), less), turns.ahead)
        return [is_mine]


class _AwaitTurn(OpRules):
    name = "warp.await_turn"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        turns = _turns(lowering)
        parity = llvm.load(_word(), turns.parity)
        until_over(_barrier(turns.barriers, turns.team), parity)
        llvm.store(arith.xori(parity, i32(1)), turns.parity)
        return [i32(0)]  # nothing is to be known of it


class _PassTurn(OpRules):
    name = "warp.pass_turn"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        turns = _turns(lowering)
        now = speaks(lowering)
        if len(operands) > 1:
            number, end, step = operands[1:]
            following = arith.addi(number, step)
            is_last = arith.cmpi(arith.CmpIPredicate.sge, following, end)
            now = arith.andi(now, is_last)
        after = arith.addi(turns.team, i32(1))
        is_last = arith.cmpi(arith.CmpIPredicate.eq, after, i32(turns.count))
        other = arith.select(is_last, i32(0), after)
        arrive(_barrier(turns.barriers, other), now)
        return []


class _Skip(OpRules):
    name = "warp.skip"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [channel] = operands
        assert isinstance(channel, Channel)
        advanced(channel.reading, channel.depth)
        return []


def _turns(lowering: Lowering) -> Turns:
    assert lowering.turns is not None, "the kernel has several teams"
    return lowering.turns


def _barrier(barriers: ir.Value, number: ir.Value) -> ir.Value:
    place = arith.addi(barriers, arith.muli(number, i32(BARRIER_BYTES)))
    return llvm.inttoptr(llvm_ptr(3), place)


def _word() -> ir.Type:
    return ir.IntegerType.get_signless(32)


RULES: tuple[OpRules, ...] = (_Mine(), _AwaitTurn(), _PassTurn(), _Skip())
