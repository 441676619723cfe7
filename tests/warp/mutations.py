"""One operation of the `warp` dialect is taken out, doubled, or moved: is that seen?

Whether it is wrong, execution says, in enough numbers of turns (`roles_machine`). The verifier,
which executes nothing, must say the same.
"""

from __future__ import annotations

from mlir import ir
from roles_machine import WrongError, execute

from tilec.ir.dialects import arith
from tilec.ir.walk import operations
from tilec.ops.build import integer
from tilec.warp.verify import problems_of

MUTATED = (
    "warp.acquire", "warp.fill", "warp.publish", "warp.get", "warp.release", "warp.drain",
    "warp.wait", "warp.mine", "warp.skip", "warp.await_turn", "warp.pass_turn", "warp.read",
    "warp.write", "warp.show", "warp.join_warps",
)  # fmt: skip  # fmt: skip
CHANGES = ("delete", "duplicate", "later", "earlier", "drain more", "drain less")

# None, one, two turns; more than there are slots; the same for the second loop, or the outer one.
EXTENTS = ((0, 0), (64, 1), (64, 2), (128, 3), (128, 130), (640, 2))
TURNS = tuple({"K": extent, "L": other} for extent, other in EXTENTS)

# What changes nothing that matters, with what an operation is moved past.
HARMLESS = {
    # What is read twice is the same, and so is what is read a little later or earlier.
    ("duplicate", "warp.read", ""),
    ("earlier", "warp.read", "warp.release"),
    ("later", "warp.release", "warp.read"),
    # A slot may be held a little longer, and a drain wait where nothing new has begun.
    ("earlier", "warp.drain", "warp.tile"),
    ("later", "warp.release", "warp.dot"),
    ("later", "warp.release", "arith.addf"),
    # What a factor is computed of is in registers of its own.
    ("later", "warp.drain", "warp.read"),
    ("later", "warp.drain", "tensor.extract_slice"),
    ("later", "warp.release", "tensor.extract_slice"),
    ("earlier", "warp.read", "warp.drain"),
    ("later", "warp.read", "warp.tile"),
    # It waits once more, or for products that need not be done.
    ("duplicate", "warp.drain", ""),
    ("drain less", "warp.drain", ""),
    ("drain less", "warp.wait", ""),
    # Sums of the earlier one of two products, which are waited for one after the other.
    ("drain more", "warp.wait", ""),
    # The tiles of a slot come in any order, and those of two channels independently.
    ("later", "warp.fill", "warp.fill"),
    ("earlier", "warp.fill", "warp.fill"),
    ("later", "warp.fill", "warp.acquire"),
    ("earlier", "warp.acquire", "warp.fill"),
    ("later", "warp.publish", "warp.fill"),
    ("earlier", "warp.fill", "warp.publish"),
    # Slots of two channels: the order in which they are taken, which counts, stays as it is.
    ("earlier", "warp.get", "warp.tile"),
    ("later", "warp.release", "warp.release"),
    ("earlier", "warp.release", "warp.release"),
    # The first of two waits has waited for all products.
    ("later", "warp.wait", "warp.wait"),
    ("earlier", "warp.wait", "warp.wait"),
    ("later", "warp.wait", "warp.release"),
    ("later", "warp.release", "warp.wait"),
    ("later", "warp.pass_turn", "warp.release"),
    ("earlier", "warp.release", "warp.pass_turn"),
    ("earlier", "warp.release", "warp.wait"),
    # What only computes has nothing to do with it.
    ("later", "warp.fill", "tile.part_id"),
    ("earlier", "warp.acquire", "tile.part_id"),
    ("later", "warp.release", "arith.maxnumf"),
    ("later", "warp.release", "arith.truncf"),
    ("later", "warp.publish", "tile.part_id"),
    ("earlier", "warp.await_turn", "arith.cmpi"),
    ("earlier", "warp.await_turn", "warp.no_slot"),
    ("earlier", "warp.await_turn", "tile.part"),
    ("earlier", "warp.skip", "tile.part"),
    # Programs are counted, whatever their numbers.
    ("earlier", "warp.mine", "warp.program"),
    # The turn is over when the last slot was got.
    ("earlier", "warp.pass_turn", "warp.release"),
    ("earlier", "warp.pass_turn", "warp.dot"),
    ("later", "warp.pass_turn", "arith.truncf"),
    ("later", "warp.pass_turn", "warp.drain"),
    ("earlier", "warp.drain", "warp.pass_turn"),
    ("later", "warp.dot", "warp.pass_turn"),
    ("later", "warp.release", "warp.pass_turn"),
    # Blocks and teams are asked for in any order.
    ("earlier", "warp.mine", "warp.is_program"),
    # To show, or to meet, once more or elsewhere: nothing is written, read or over in between.
    # (Which are needed, `test_mutated_staged` says.)
    ("delete", "warp.drain", ""),
    ("delete", "warp.join_warps", ""),
    ("drain more", "warp.drain", ""),
    ("duplicate", "warp.join_warps", ""),
    ("duplicate", "warp.show", ""),
    ("duplicate", "warp.write", ""),
    ("earlier", "warp.drain", "arith.maxnumf"),
    ("earlier", "warp.drain", "warp.show"),
    ("earlier", "warp.join_warps", "arith.maxnumf"),
    ("earlier", "warp.join_warps", "warp.drain"),
    ("earlier", "warp.join_warps", "warp.release"),
    ("earlier", "warp.read", "warp.drain"),
    ("earlier", "warp.release", "warp.drain"),
    ("earlier", "warp.write", "warp.join_warps"),
    ("later", "warp.drain", "warp.join_warps"),
    ("later", "warp.drain", "warp.read"),
    ("later", "warp.drain", "warp.release"),
    ("later", "warp.drain", "warp.tile"),
    ("later", "warp.join_warps", "arith.cmpi"),
    ("later", "warp.join_warps", "warp.write"),
    ("later", "warp.read", "warp.tile"),
    ("later", "warp.release", "warp.join_warps"),
    ("later", "warp.release", "warp.tile"),
    ("later", "warp.show", "warp.drain"),
    ("later", "warp.show", "warp.tile"),
    # A team counts the slots of each channel.
    ("later", "warp.skip", "warp.skip"),
    ("earlier", "warp.skip", "warp.skip"),
}
# What is refused, though nothing goes wrong: nobody counts the slots of a whole program.
CAUTIOUS = {
    # On a way that no run here takes.
    ("delete", "warp.release", ""),
    ("duplicate", "warp.release", ""),
    # The program has as many slots as make the phase the right one.
    ("delete", "warp.await_turn", ""),
    ("later", "warp.skip", "scf.for"),
}


def expect_right(function: ir.OpView) -> None:
    """What is made is right."""
    for turns in TURNS:
        execute(function, turns)
    assert [str(problem) for problem in problems_of(function)] == []


def expect_wrong_mutants_found(function: ir.OpView) -> None:
    """What is wrong is found, and nothing else."""
    tried = 0
    for number, op in enumerate(operations(function)):
        if op.operation.name not in MUTATED:
            continue
        for change in CHANGES:
            mutant = function.operation.clone().opview
            told = _change(list(operations(mutant))[number], change)
            if told is not None and _is_ir(mutant):
                tried += 1
                _compare(mutant, (change, op.operation.name, told))
            mutant.operation.erase()
    assert tried > 10


def _compare(mutant: ir.OpView, told: tuple[str, str, str]) -> None:
    found = [str(problem) for problem in problems_of(mutant)]
    wrong = _what_goes_wrong(mutant)
    if wrong is None and found and told in CAUTIOUS:
        return
    assert bool(found) == (wrong is not None), (told, wrong, found)
    if wrong is None:
        assert told in HARMLESS, told


def _what_goes_wrong(function: ir.OpView) -> str | None:
    for turns in TURNS:
        try:
            execute(function, turns)
        except WrongError as error:
            return str(error)
    return None


def _is_ir(function: ir.OpView) -> bool:
    """Whether all is still made before it is used."""
    try:
        return bool(function.operation.verify())
    except ir.MLIRError:
        return False


def _change(op: ir.OpView, change: str) -> str | None:
    """Change one operation; the name of what it is moved past, None where that cannot be."""
    own, block = op.operation, list(op.operation.block.operations)
    at = block.index(op)
    with op.location:
        match change:
            # What is read or written is used: there is no kernel without.
            case "delete" if own.name not in ("warp.read", "warp.write"):
                _delete(op)
            case "duplicate":
                own.clone(ip=ir.InsertionPoint.after(own))
            case "later" if at + 2 < len(block):
                own.move_after(block[at + 1].operation)
                return str(block[at + 1].operation.name)
            case "earlier" if at > 0:
                own.move_before(block[at - 1].operation)
                return str(block[at - 1].operation.name)
            case "drain more" | "drain less" if own.name in ("warp.drain", "warp.wait"):
                more = 1 if change == "drain more" else -1
                pending = ir.IntegerAttr(op.attributes["pending"]).value
                op.attributes["pending"] = integer(pending + more)
            case _:
                return None
    return ""


def _delete(op: ir.OpView) -> None:
    """What used it uses what there is instead."""
    own = op.operation
    match own.name:
        case "warp.wait":
            op.results[0].replace_all_uses_with(op.operands[0])
        case "warp.acquire" | "warp.get":
            kinds, place = [op.results[0].type], ir.InsertionPoint(own)
            nothing = ir.Operation.create("warp.no_slot", results=kinds, ip=place)
            op.results[0].replace_all_uses_with(nothing.results[0])
        case "warp.await_turn":
            for use in list(op.results[0].uses):
                use.owner.operation.erase()
        case "warp.mine":
            truth = ir.IntegerAttr.get(op.results[0].type, 1)
            always = arith.ConstantOp(op.results[0].type, truth, ip=ir.InsertionPoint(own))
            op.results[0].replace_all_uses_with(always.result)
    own.erase()
