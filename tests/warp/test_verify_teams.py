"""What the verifier says of teams that do programs by turns, in IR by hand."""

from __future__ import annotations

import pytest
from test_verify_roles import PUT_OTHER, TENSOR, USE_OTHER, Case, branch, each, loop, said

LOADER = each(f"program p\n{loop(PUT_OTHER)}")
MINE = f"r = await\n{loop(USE_OTHER)}\npass r"
SKIP = loop("skip other")
EACH = f"{USE_OTHER}\npass r"
EARLY = f"pass r k n c1\n{USE_OTHER}"
LAST = loop(f"{USE_OTHER}\npass r k n c1")


def case(mine: str = MINE, others: str = SKIP, says: str | None = None, more: str = "") -> Case:
    math = each(f"program p\nown = mine\n{branch(mine, others, condition='own')}\n{more}")
    return Case(LOADER, math, says, is_persistent=True, teams=2)


CASES = {
    "teams": case(),
    "a turn that is passed in the last turn of a loop": case(
        branch(f"r = await\n{LAST}", "r = await\npass r", condition="is"),
        says="expected one `warp.await_turn`, got 2",
    ),
    "a turn that is passed in the last turn of a loop, if it turns": case(
        f"r = await\n%turns = arith.cmpi slt, %c0, %n : index\n"
        f"{branch(LAST, 'pass r', condition='turns')}"
    ),
    "a turn that is passed in a loop that may not turn": case(
        f"r = await\n{LAST}", says="what is held is given up on one way only"
    ),
    "a turn that is passed in each turn of a loop": case(
        f"r = await\n{loop(EACH)}",
        says="what is held is given up on one way only",
    ),
    "the last turn of another loop": case(
        f"r = await\n%turns = arith.cmpi slt, %c0, %n : index\n"
        f"{branch(LAST.replace('k n c1', 'k m c1'), 'pass r', condition='turns')}",
        says="expected the number, end and step of the loop around it",
    ),
    "a slot that is got after the turn may be over": case(
        f"r = await\n%turns = arith.cmpi slt, %c0, %n : index\n"
        f"{branch(loop(EARLY), 'pass r', condition='turns')}",
        says="it is not this team's turn to get a slot",
    ),
    "a turn that is not passed": case(
        MINE.replace("pass r", ""), says="what is held is not given up on a way to here"
    ),
    "a turn that is passed twice": case(
        f"{MINE}\npass r", says="what is used was given up on a way to here"
    ),
    "a slot that is got without a turn": case(
        f"{loop(USE_OTHER)}\nr = await\npass r", says="it is not this team's turn to get a slot"
    ),
    "slots that are not skipped": case(
        others="%x = arith.addi %n, %n : index", says="the roles do not take the same slots"
    ),
    "too few slots that are skipped": case(
        others="skip other", says="the roles do not take the same slots"
    ),
    "slots that are skipped of another channel": case(
        others=loop("skip ring"), says="the roles do not take the same slots"
    ),
    "slots that are skipped in a loop of other bounds": case(
        others=loop("skip other", upper="m"), says="the bounds of the roles differ"
    ),
    "slots that are got of another team's program": case(
        others=MINE, says="expected one `warp.await_turn`, got 2"
    ),
    "slots of the own program that are skipped": case(
        f"r = await\npass r\n{SKIP}", says="a slot of the team's own program is skipped"
    ),
    "what both teams compute": case(
        more=f"%x = arith.addf %zeros, %zeros : {TENSOR}", says="all teams would do this"
    ),
    "what a team computes of another one's program": case(
        others=f"{SKIP}\n%x = arith.addf %zeros, %zeros : {TENSOR}",
        says="a team does more than to skip another one's program",
    ),
    "slots that are got after the branch": case(
        more=USE_OTHER, says="the roles do not take the same slots"
    ),
    "two questions whose program it is": case(
        more="z = mine", says="expected one `warp.mine`, got 2"
    ),
    "a question in a loop": Case(
        LOADER,
        each(f"program p\n{loop('own = mine')}\n{branch(MINE, SKIP)}"),
        "expected one `branch for the teams`, got 0",
        is_persistent=True,
        teams=2,
    ),
    "an answer that something else uses": case(
        more="%y = arith.select %own, %n, %c0 : index",
        says="only one branch may differ between teams",
    ),
    "teams where there is one": Case(
        LOADER,
        each(f"program p\nown = mine\n{branch(MINE, SKIP, condition='own')}"),
        "there are no teams",
        is_persistent=True,
    ),
    "no teams where there are several": Case(
        LOADER,
        each(f"program p\n{loop(USE_OTHER)}"),
        "expected one `warp.mine`, got 0",
        is_persistent=True,
        teams=2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_right_or_named(name: str) -> None:
    found = said(CASES[name])
    if CASES[name].says is None:
        assert found == []
    else:
        assert CASES[name].says in found
