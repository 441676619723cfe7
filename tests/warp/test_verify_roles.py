"""Each rule of the verifier of roles, in IR by hand: what is right beside what is not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from mlir import ir

from tilec.ir.dialect import context
from tilec.ir.walk import operations
from tilec.warp.flow import follow
from tilec.warp.verify import problems_of

TILE = "memref<64x64xbf16, 3>"
TENSOR = "tensor<64x64xf32>"
VIEW = 'memref<?x?xbf16, strided<[?, 1]>, {own = "shared"}>'


@dataclass(frozen=True)
class Case:
    """Both roles in the short form that `written` knows; what is said of it, if anything is."""

    loader: str
    math: str
    says: str | None = None
    depth: int = 4
    is_persistent: bool = False
    teams: int = 1


def written(short: str) -> str:
    """Operations in full. `%ring` and `%other` are channels; all else is as MLIR has it.

    s = acquire ring | fill ring s 0 | publish ring s | s = get ring | t = tile ring s 0
    release ring s | n = dot t u sums | drain 1 | n = wait sums | n = wait sums 1 | s = no_slot
    m = mine | r = await | pass r | skip ring
    """
    return "\n".join(_in_full(line.strip()) for line in short.splitlines())


def _in_full(line: str) -> str:
    made, _, call = line.rpartition(" = ")
    name, *given = call.split() or [""]
    result = f"%{made} = " if made else ""
    values = ", ".join(f"%{value}" for value in given)
    match name:
        case "acquire" | "get":
            return f'{result}"warp.{name}"({values}) : (!warp.ring) -> !warp.place'
        case "no_slot":
            return f'{result}"warp.no_slot"() : () -> !warp.place'
        case "publish" | "release":
            return f'"warp.{name}"({values}) : (!warp.ring, !warp.place) -> ()'
        case "fill":
            ring, slot, tile = given
            kinds = f"(!warp.ring, !warp.place, {VIEW}, index, index) -> ()"
            return (
                f'"warp.fill"(%{ring}, %{slot}, %view, %c0, %c0)'
                f' {{tile = {tile} : i64, unit = "tile"}} : {kinds}'
            )
        case "tile":
            ring, slot, tile = given
            return (
                f'{result}"warp.tile"(%{ring}, %{slot}) {{tile = {tile} : i64}}'
                f" : (!warp.ring, !warp.place) -> {TILE}"
            )
        case "dot":
            names = '["bf16", "bf16", "f32"]'
            return (
                f'{result}"warp.dot"({values}) {{a_k = 1 : i64, b_k = 0 : i64, elements = {names}}}'
                f" : ({TILE}, {TILE}, {TENSOR}) -> {TENSOR}"
            )
        case "program":
            return f'"warp.program"({values}) : (index) -> ()'
        case "id":
            return f'{result}"tile.program_id"() {{axis = 0 : i64}} : () -> index'
        case "drain":
            return f'"warp.drain"() {{pending = {given[0]} : i64}} : () -> ()'
        case "mine":
            return f'{result}"warp.mine"() : () -> i1'
        case "await":
            return f'{result}"warp.await_turn"() : () -> !warp.turn'
        case "pass":
            kinds = ", ".join(["!warp.turn", *["index"] * (len(given) - 1)])
            return f'"warp.pass_turn"({values}) : ({kinds}) -> ()'
        case "skip":
            return f'"warp.skip"({values}) : (!warp.ring) -> ()'
        case "wait":
            sums, pending = given if len(given) > 1 else (given[0], 0)
            return (
                f'{result}"warp.wait"(%{sums}) {{pending = {pending} : i64}}'
                f" : ({TENSOR}) -> {TENSOR}"
            )
        case _:
            return line


def said(case: Case) -> list[str]:
    """What the verifier finds, without places."""
    with context():
        module = ir.Module.parse(module_of(case))
        assert module.operation.verify()
        return [problem.what for problem in problems_of(module.body.operations[0])]


def module_of(case: Case) -> str:
    channels = "\n".join(
        f'%{name} = "warp.channel"() {{depth = {case.depth} : i64, params = ["a", "b"],'
        f" tiles = [{TILE}, {TILE}]}} : () -> !warp.ring"
        for name in ("ring", "other")
    )
    given = ["warp.persistent"] if case.is_persistent else []
    given += [f"warp.teams = {case.teams} : i64"] if case.teams > 1 else []
    attributes = f"attributes {{{', '.join(given)}}}" if given else ""
    return f"""
    func.func @f(%view: {VIEW}, %n: index, %m: index, %is: i1) {attributes} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zeros = arith.constant dense<0.0> : {TENSOR}
      %elsewhere = "tile.program_id"() {{axis = 0 : i64}} : () -> index
      {channels}
      "warp.roles"() ({{
        {written(case.loader)}
        gpu.yield
      }}, {{
        {written(case.math)}
        gpu.yield
      }}) {{loader_registers = 0 : i64, math_registers = 0 : i64, math_warps = 4 : i64}} : () -> ()
      return
    }}"""


# ---- what the cases are made of ------------------------------------------------------------------

PUT = """
    p = acquire ring
    fill ring p 0
    fill ring p 1
    publish ring p
"""
PUT_OTHER = re.sub(r"\bp\b", "q", PUT.replace("ring", "other"))
TAKE = """
    s = get ring
    t = tile ring s 0
    u = tile ring s 1
"""
TAKE_OTHER = """
    o = get other
    v = tile other o 0
    w = tile other o 1
"""
USE = f"""
    {TAKE}
    d = dot t u zeros
    e = wait d
    release ring s
"""
USE_OTHER = """
    o = get other
    v = tile other o 0
    w = tile other o 1
    x = dot v w zeros
    y = wait x
    release other o
"""


def again(short: str) -> str:
    """The same with values of other names, which are single letters."""
    return re.sub(r"\b([a-z])\b", r"\g<1>2", short)


def loop(body: str, upper: str = "n", carried: str = "", made: str = "") -> str:
    """A loop to `%n`; `carried` are its variables as MLIR has them."""
    start = f"{made}scf.for %k = %c0 to %{upper} step %c1 {carried}"
    return f"{start} {{\n{body}\n}}"


def each(body: str) -> str:
    """A loop over programs, `%p`."""
    return loop(body).replace("scf.for %k", "scf.for %p", 1)


def branch(body: str, otherwise: str = "", condition: str = "is") -> str:
    rest = f"else {{\n{otherwise}\n}}" if otherwise else ""
    return f"scf.if %{condition} {{\n{body}\n}} {rest}"


PIPELINED = f"""
    {TAKE}
    next = dot t u sums
    drain 1
    release ring last
    scf.yield %next, %s : {TENSOR}, !warp.place
"""
CARRIED = "iter_args(%sums = %zeros, %last = %nothing) -> (tensor<64x64xf32>, !warp.place)"
AFTER = """
    done = wait all#0
    release ring all#1
"""


def pipelined(body: str = PIPELINED, after: str = AFTER, asked: str = "slt, %c0, %n") -> str:
    """A loop that hands its slot on to the next turn, in a branch that asks whether it turns."""
    inside = f"{loop(body, carried=CARRIED, made='%all:2 = ')}\n{after}"
    start = f"nothing = no_slot\n%turns = arith.cmpi {asked} : index\n"
    return f"{start}{branch(inside, condition='turns')}"


CASES = {
    # ---- slots are linear
    "one slot": Case(PUT, USE),
    "a slot that is not released": Case(
        PUT, USE.replace("release ring s", ""), "what is held is not given up on a way to here"
    ),
    "a slot that is released twice": Case(
        PUT, f"{USE}\nrelease ring s", "the slot was given up on a way to here"
    ),
    "a slot that is released on one way": Case(
        PUT,
        USE.replace("release ring s", branch("release ring s")),
        "what is held is given up on one way only",
    ),
    "a slot that is released on both ways": Case(
        PUT, USE.replace("release ring s", branch("release ring s", "release ring s"))
    ),
    "a slot that is released to another channel": Case(
        PUT, USE.replace("release ring s", "release other s"), "the slot is of another channel"
    ),
    "a slot from before a loop that is released in it": Case(
        PUT,
        USE.replace("release ring s", loop("release ring s")),
        "what is held is given up on one way only",
    ),
    "a slot that is handed on": Case(loop(PUT), pipelined()),
    "a slot that is handed on, and released as well": Case(
        loop(PUT),
        pipelined(PIPELINED.replace("release ring last", "release ring last\nrelease ring s")),
        "what is used was given up on a way to here",
    ),
    "a slot that is handed on, and then not released": Case(
        loop(PUT),
        pipelined(after="done = wait all#0"),
        "what is held is not given up on a way to here",
    ),
    "a slot that each turn hands on and none releases": Case(
        loop(PUT),
        pipelined(PIPELINED.replace("release ring last", "")),
        "what is held is not given up on a way to here",
    ),
    "nothing in the place of a slot": Case("", "s = no_slot\nrelease ring s\nrelease ring s"),
    "nothing in the place of a slot, never released": Case("", "s = no_slot"),
    # ---- what is in a slot
    "a tile that is not filled": Case(
        PUT.replace("fill ring p 1", ""), USE, "not every tile of the slot is filled"
    ),
    "a tile that is filled twice": Case(
        PUT.replace("fill ring p 1", "fill ring p 1\nfill ring p 1"),
        USE,
        "the tile is filled already",
    ),
    "a tile that is filled on one way": Case(
        PUT.replace("fill ring p 1", branch("fill ring p 1")),
        USE,
        "slots meet of which other tiles are filled",
    ),
    "a tile that is filled on both ways": Case(
        PUT.replace("fill ring p 1", branch("fill ring p 1", "fill ring p 1")), USE
    ),
    "a tile that is filled after the slot is published": Case(
        PUT.replace("fill ring p 1", "") + "fill ring p 1",
        USE,
        "the slot was given up on a way to here",
    ),
    "a tile that there is not": Case(PUT.replace("p 1", "p 2"), USE, "the slot has no such tile"),
    "a slot that is not published": Case(
        PUT.replace("publish ring p", ""), USE, "what is held is not given up on a way to here"
    ),
    "a tile of a slot that was released": Case(
        PUT,
        """
        s = get ring
        release ring s
        t = tile ring s 0
        """,
        "the slot was given up on a way to here",
    ),
    "a tile that is read after the slot was released": Case(
        PUT,
        f"{TAKE}\nrelease ring s\nd = dot t u zeros\ne = wait d",
        "the slot of a factor was given up on a way to here",
    ),
    "a tile of what may be no slot": Case(
        loop(PUT),
        pipelined(PIPELINED.replace("u = tile ring s 1", "u = tile ring last 1")),
        "there may be no slot",
    ),
    "a tile that something else reads": Case(
        PUT,
        USE.replace("release", f'"memref.dim"(%t, %c0) : ({TILE}, index) -> index\nrelease'),
        "only a product may read a tile",
    ),
    # ---- products
    "a slot that is released before the wait": Case(
        PUT,
        f"{TAKE}\nd = dot t u zeros\nrelease ring s\ne = wait d",
        "a product may still read the slot",
    ),
    "a slot that is released after a drain of all": Case(
        PUT, f"{TAKE}\nd = dot t u zeros\ndrain 0\nrelease ring s\ne = wait d"
    ),
    "a drain that leaves the product": Case(
        PUT,
        f"{TAKE}\nd = dot t u zeros\ndrain 1\nrelease ring s\ne = wait d",
        "a product may still read the slot",
    ),
    "a drain that leaves a later product only": Case(
        f"{PUT}{PUT_OTHER}",
        f"""{TAKE}{TAKE_OTHER}
        d = dot t u zeros
        x = dot v w d
        drain 1
        release ring s
        y = wait x
        release other o
        """,
    ),
    "a drain between which and the product there may be no other": Case(
        f"{PUT}{PUT_OTHER}",
        f"""{TAKE}{TAKE_OTHER}
        d = dot t u zeros
        %z = scf.if %is -> ({TENSOR}) {{
          x = dot v w zeros
          scf.yield %x : {TENSOR}
        }} else {{
          scf.yield %zeros : {TENSOR}
        }}
        drain 1
        release ring s
        e = wait d
        release other o
        """,
        "a product may still read the slot",
    ),
    "a loop that drains too little": Case(
        loop(PUT),
        pipelined(PIPELINED.replace("drain 1", "drain 2")),
        "a product may still read the slot",
    ),
    "a loop that does not drain": Case(
        loop(PUT),
        pipelined(PIPELINED.replace("drain 1", "")),
        "a product may still read the slot",
    ),
    "a loop that drains too early": Case(
        loop(PUT),
        pipelined(PIPELINED.replace("drain 1", "").replace("next =", "drain 1\nnext =")),
        "a product may still read the slot",
    ),
    "sums that are used under way": Case(
        PUT,
        USE.replace("e = wait d", f"%e = arith.addf %d, %d : {TENSOR}\ndrain 0"),
        "the sums that are used may be under way",
    ),
    "an accumulator that is waited for with a later product in flight": Case(
        f"{PUT}{PUT_OTHER}",
        f"""{TAKE}{TAKE_OTHER}
        d = dot t u zeros
        x = dot v w zeros
        e = wait d 1
        %twice = arith.addf %e, %e : {TENSOR}
        release ring s
        y = wait x
        release other o
        """,
    ),
    "an accumulator whose own product is left in flight": Case(
        PUT,
        USE.replace("e = wait d", "e = wait d 1\ndrain 0"),
        "the product of this accumulator may still be in flight",
    ),
    "the accumulator of the later of two products, left in flight": Case(
        f"{PUT}{PUT_OTHER}",
        f"""{TAKE}{TAKE_OTHER}
        d = dot t u zeros
        x = dot v w zeros
        y = wait x 1
        e = wait d
        release ring s
        release other o
        """,
        "the product of this accumulator may still be in flight",
    ),
    "an accumulator to which one more product adds before the wait": Case(
        PUT,
        USE.replace("e = wait d", "e = dot t u d\nf = wait e 1\ndrain 0"),
        "the product of this accumulator may still be in flight",
    ),
    "an accumulator that is waited for after a product on one path only": Case(
        f"{PUT}{PUT_OTHER}",
        f"""{TAKE}{TAKE_OTHER}
        d = dot t u zeros
        scf.if %is {{
          x = dot v w zeros
          y = wait x
        }}
        e = wait d 1
        drain 0
        release ring s
        release other o
        """,
        "the product of this accumulator may still be in flight",
    ),
    "a slot that is released while a later product reads it": Case(
        PUT,
        f"""{TAKE}
        d = dot t u zeros
        x = dot t u zeros
        e = wait d 1
        release ring s
        y = wait x
        """,
        "a product may still read the slot",
    ),
    "sums that nobody waits for": Case(
        PUT, USE.replace("e = wait d", "drain 0"), "what is held is not given up on a way to here"
    ),
    "sums that two products add to": Case(
        PUT,
        USE.replace("e = wait d", "e = dot t u d\nf = dot t u d\ng = wait e\nh = wait f"),
        "what is used was given up on a way to here",
    ),
    "a chain of products": Case(PUT, USE.replace("e = wait d", "e = dot t u d\nf = wait e")),
    "a wait for sums that no product adds to": Case(
        PUT, f"{USE}\nf = wait e", "the sums are not under way"
    ),
    "a loop that may not turn, and whose sums are waited for": Case(
        loop(PUT),
        pipelined(asked="slt, %c0, %m"),
        "sums under way meet sums that are not",
    ),
    "a loop that asks in the other order whether it turns": Case(
        loop(PUT), pipelined(asked="sgt, %n, %c0")
    ),
    "sums under way from one branch": Case(
        PUT,
        f"""{TAKE}
        %z = scf.if %is -> ({TENSOR}) {{
          d = dot t u zeros
          scf.yield %d : {TENSOR}
        }} else {{
          scf.yield %zeros : {TENSOR}
        }}
        e = wait z
        release ring s
        """,
        "sums under way meet sums that are not",
    ),
    # ---- both roles take the same slots
    "a role that takes fewer": Case(
        f"{PUT}{again(PUT)}",
        USE,
        "the roles do not take the same slots",
    ),
    "a role that takes none": Case(PUT, "", "the roles do not take the same slots"),
    "a loop on one side": Case(loop(PUT), USE, "the roles do not take the same slots"),
    "other bounds": Case(loop(PUT), loop(USE, upper="m"), "the bounds of the roles differ"),
    "bounds that each role computes": Case(
        f"%x = arith.addi %n, %m : index\n{loop(PUT, upper='x')}",
        f"%x = arith.addi %n, %m : index\n{loop(USE, upper='x')}",
    ),
    "bounds that each role computes otherwise": Case(
        f"%x = arith.addi %n, %m : index\n{loop(PUT, upper='x')}",
        f"%x = arith.subi %n, %m : index\n{loop(USE, upper='x')}",
        "the bounds of the roles differ",
    ),
    "bounds by the turn of a loop around": Case(
        loop(loop(PUT, upper="k").replace("for %k", "for %j")),
        loop(loop(USE, upper="k").replace("for %k", "for %j")),
    ),
    "other conditions": Case(
        branch(PUT),
        f"%not = arith.cmpi slt, %n, %m : index\n{branch(USE, condition='not')}",
        "the conditions of the roles differ",
    ),
    "other ways of a branch": Case(
        branch(PUT),
        branch("%x = arith.addi %n, %m : index", USE),
        "the roles do not take the same slots",
    ),
    "a branch with nothing on the other way": Case(
        branch(PUT), branch(USE, "%x = arith.addi %n, %m : index")
    ),
    "two channels, in loops the other way round": Case(
        f"{loop(PUT)}\n{loop(PUT_OTHER)}",
        f"{loop(USE_OTHER)}\n{loop(USE)}",
        "the roles do not take the same slots",
    ),
    # ---- nobody waits for ever
    "as many slots as there are": Case(
        f"{PUT}{again(PUT)}",
        f"{TAKE}\nf = get ring\nd = dot t u zeros\ne = wait d\nrelease ring s\nrelease ring f",
        depth=2,
    ),
    "more slots than there are": Case(
        f"{PUT}{again(PUT)}",
        f"{TAKE}\nf = get ring\nd = dot t u zeros\ne = wait d\nrelease ring s\nrelease ring f",
        "the slot never comes: the loader waits for one that is held here",
        depth=1,
    ),
    "a loop with a slot too many": Case(
        loop(PUT),
        pipelined(),
        "the slot never comes: the loader waits for one that is held here",
        depth=1,
    ),
    "a slot that is held while others go round": Case(
        f"{PUT}\n{loop(again(PUT))}",
        f"first = get ring\n{loop(USE)}\nrelease ring first",
        "the slot never comes: the loader waits for one that is held here",
    ),
    "two channels in the other order": Case(
        loop(f"{PUT}{PUT_OTHER}"), loop(f"{USE_OTHER}{USE}"), depth=1
    ),
    "two channels, one of which is taken twice first": Case(
        loop(f"{PUT}{again(PUT)}{PUT_OTHER}"),
        loop(f"{USE_OTHER}{USE}{again(USE)}"),
        "the slot never comes: the loader waits for one that is held here",
        depth=1,
    ),
    "slots that are published the other way round": Case(
        loop(
            """
            p = acquire ring
            q = acquire other
            fill other q 0
            fill other q 1
            publish other q
            fill ring p 0
            fill ring p 1
            publish ring p
            """
        ),
        loop(f"{USE}{USE_OTHER}"),
        depth=1,
    ),
    "a slot that is published after one that has to be released first": Case(
        """
        p = acquire ring
        q = acquire ring
        fill ring q 0
        fill ring q 1
        publish ring q
        fill ring p 0
        fill ring p 1
        publish ring p
        """,
        f"{USE}{again(USE)}",
        "the slot never comes: the loader waits for one that is held here",
        depth=1,
    ),
    # ---- which program is done
    "several programs": Case(
        each(f"program p\n{PUT_OTHER}"), each(f"program p\n{USE_OTHER}"), is_persistent=True
    ),
    "a loop by the program": Case(
        each(f"program p\nz = id\n{loop(PUT_OTHER, upper='z')}"),
        each(f"program p\nz = id\n{loop(USE_OTHER, upper='z')}"),
        is_persistent=True,
    ),
    "a program that one role does not say": Case(
        each(PUT_OTHER),
        each(f"program p\n{USE_OTHER}"),
        "expected one `warp.program` in each role, got 0",
        is_persistent=True,
    ),
    "another program in each role": Case(
        each(f"program p\n{PUT_OTHER}"),
        each(f"%z = arith.addi %p, %c1 : index\nprogram z\n{USE_OTHER}"),
        "the roles do different programs",
        is_persistent=True,
    ),
    "a program that is asked for before it is said": Case(
        each(f"z = id\nprogram p\n{PUT_OTHER}"),
        each(f"program p\n{USE_OTHER}"),
        "it is not known here which program is done",
        is_persistent=True,
    ),
    "a program from outside": Case(
        each(f"program p\n{loop(PUT_OTHER, upper='elsewhere')}"),
        each(f"program p\n{loop(USE_OTHER, upper='elsewhere')}"),
        "what is used is of another program",
        is_persistent=True,
    ),
    "a program that is said where blocks do one": Case(
        each(f"program p\n{PUT_OTHER}"),
        each(f"program p\n{USE_OTHER}"),
        "a block does one program only",
    ),
    # ---- who may do what
    "a loader that computes": Case(
        f"{PUT}%x = arith.addf %zeros, %zeros : {TENSOR}", USE, "the loader has a tile"
    ),
    "a loader that waits for the others": Case(
        f'{PUT}"tile.barrier"() : () -> ()', USE, "the loader does more than to load"
    ),
    "a loader that gets": Case(f"{PUT}s = get ring", USE, "the loader may not do this"),
    "math warps that fill": Case(PUT, f"{USE}{PUT}", "the math warps may not do this"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_right_or_named(name: str) -> None:
    case = CASES[name]
    found = said(case)
    if case.says is None:
        assert found == []
    else:
        assert case.says in found


def test_channels_are_for_roles() -> None:
    channel = f'{{depth = 2 : i64, params = ["a"], tiles = [{TILE}]}} : () -> !warp.ring'
    with context():
        module = ir.Module.parse(f'func.func @f() {{ "warp.channel"() {channel} return }}')
        [problem] = problems_of(module.body.operations[0])
        assert problem.what == "there are no roles for it"


def test_a_problem_says_where_and_why() -> None:
    with context():
        module = ir.Module.parse(module_of(CASES["a slot that is released before the wait"]))
        [problem] = problems_of(module.body.operations[0])
        place, cause = str(problem).split(", because of ")
    assert place.startswith("a product may still read the slot: ") and "warp.release" in place
    assert "warp.get" in cause and cause.count("loc(") == 1


def test_loops_around_each_other_are_followed_once_for_what_they_are_come_to_with() -> None:
    """Counted in operations: walked anew for each turn of all loops around, it would be 2^depth."""
    visits = {}
    for depth in (8, 16):
        nested = USE
        for number in range(depth):
            nested = f"scf.for %k{number} = %c0 to %n step %c1 {{\n{nested}\n}}"
        with context():
            module = ir.Module.parse(module_of(Case("", nested)))
            [function] = module.body.operations
            [roles] = [op for op in operations(function) if op.operation.name == "warp.roles"]
            found = follow(roles.regions[1].blocks[0], is_loader=False)
            assert not found.problems
            visits[depth] = found.visits
    assert visits[16] <= 2.3 * visits[8]
