"""Operation by operation: what proofs take for possible contains what the execution gives.

A kernel of one operation on its arguments is executed abstractly, and on numbers. That the
arguments are these numbers and the result is that one must be possible; and where nothing opaque
took part, no other result must be.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from mlir import ir

from tilec.integers.formula import FORMULAS, Formula, equal, negated
from tilec.integers.number import Number, always, compared
from tilec.integers.solver import can_hold
from tilec.ir.dialect import context
from tilec.ops.formats import dtype_of
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules
from tilec.proofs.arithmetic import interval_of
from tilec.proofs.reasoning import Reasoning

BINARY = (
    "addi", "subi", "muli", "divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui",
    "ceildivui", "minsi", "maxsi", "minui", "maxui", "andi", "ori", "xori", "shli", "shrsi",
    "shrui",
)  # fmt: skip
CONVERSIONS = ("extsi", "extui", "trunci", "index_cast", "index_castui")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
TYPES = ("index", "i64", "i32", "i16", "i8")
DIVIDING = ("divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui")


def numbers(kind: str, rng: random.Random) -> list[int]:
    """The edges of a type, some numbers near 0, some anywhere."""
    low, high = interval_of(ir.Type.parse(kind)) or (0, 1)
    edges = [low, low + 1, -1, 0, 1, 2, high - 1, high]
    return [*edges, rng.randint(-9, 9), rng.randint(low, high)]


def slot(number: int, kind: str) -> str:
    """An argument of any value of its type; a `usize` that a launch passes is not negative."""
    if kind == "index":
        return f'{{tile.slot = {{kind = "stride", name = "a{number}"}}}}'
    element = {"i1": "bool"}.get(kind, kind)
    return f'{{tile.slot = {{kind = "scalar", name = "a{number}", element = "{element}"}}}}'


class Asked:
    """One operation on arguments, and a constant among its operands if it says so."""

    def __init__(self, body: str, *kinds: str) -> None:
        arguments = ", ".join(f"%a{i}: {kind} {slot(i, kind)}" for i, kind in enumerate(kinds))
        text = f"func.func @k({arguments}) attributes {{tile.kernel}} {{ {body} return }}"
        self.module = ir.Module.parse(text)
        [function] = self.module.body.operations
        [block] = function.regions[0].blocks
        self.reasoning = Reasoning.of(function)
        *_, self.op, _ = block.operations
        self.result = self.reasoning.value_of(self.op.results[0])
        self.arguments = [self.reasoning.value_of(argument) for argument in block.arguments]

    def check(self, *values: int) -> None:
        """That the result of the execution is possible; alone, if nothing opaque takes part."""
        given = [_is(a, value) for a, value in zip(self.arguments, values, strict=True)]
        found = self._executed(values)
        right = _is(self.result, found)
        context = self.reasoning.knowledge.context
        assert can_hold(context([*given, right], (), wide=True)), f"{self.op}: {values}: {found}"
        others = context([*given, negated(right)], (), wide=True)
        if not any(u.opaque for f in others for u in f.unknowns):
            assert not can_hold(others), f"{self.op}: {values} give {found} only"

    def _executed(self, values: tuple[int, ...]) -> int:
        given = iter(values)
        operands = []
        for operand in self.op.operands:
            constant = _constant(operand)
            value = next(given) if constant is None else constant
            operands.append(np.asarray(value).astype(dtype_of(operand.type)))
        with np.errstate(all="ignore"):  # as the execution has it
            [found] = rules()[self.op.operation.name].interpret(self.op, operands, None)
        return int(found)


def _constant(value: ir.Value) -> int | None:
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    return int(value.owner.attributes["value"].value)


def _is(value: object, wanted: int) -> Formula:
    if isinstance(value, FORMULAS):
        return value if wanted else negated(value)
    assert isinstance(value, Number)
    return compared(equal, value, always(wanted))


@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name: str) -> None:
    rng = random.Random(name)
    with context():
        for kind in TYPES:
            asked = Asked(f"%r = arith.{name} %a0, %a1 : {kind}", kind, kind)
            for a, b in rng.sample(list(product(numbers(kind, rng), repeat=2)), 12):
                if _is_defined(name, kind, a, b):
                    asked.check(a, b)


@pytest.mark.parametrize("name", BINARY)
def test_one_argument_and_a_constant(name: str) -> None:
    rng = random.Random(name)
    with context():
        for kind, constant in product(TYPES, (1, 2, 3, 7, 8, -1, -3)):
            body = f"%c = arith.constant {constant} : {kind} %r = arith.{name} %a0, %c : {kind}"
            asked = Asked(body, kind)
            for a in rng.sample(numbers(kind, rng), 5):
                if _is_defined(name, kind, a, constant):
                    asked.check(a)


def _is_defined(name: str, kind: str, a: int, b: int) -> bool:
    """Whether the emitter lets these operands come together."""
    if name in DIVIDING:
        low, _ = interval_of(ir.Type.parse(kind)) or (0, 0)
        return b != 0 and not (b == -1 and a == low)
    width = 64 if kind == "index" else int(kind[1:])
    return not name.startswith("sh") or 0 <= b < width


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons(predicate: str) -> None:
    rng = random.Random(predicate)
    with context():
        for kind in TYPES:
            asked = Asked(f"%r = arith.cmpi {predicate}, %a0, %a1 : {kind}", kind, kind)
            for pair in rng.sample(list(product(numbers(kind, rng), repeat=2)), 12):
                asked.check(*pair)


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name: str) -> None:
    rng = random.Random(name)
    with context():
        for source, target in _conversions(name):
            asked = Asked(f"%r = arith.{name} %a0 : {source} to {target}", source)
            for value in (0, 1) if source == "i1" else numbers(source, rng):
                asked.check(value)


def _conversions(name: str) -> Iterator[tuple[str, str]]:
    integers = ("i1", "i8", "i16", "i32", "i64")
    if name.startswith("index"):
        yield from product(integers[1:], ("index",))
        yield from product(("index",), integers[1:])
        return
    for narrow, wide in product(integers, repeat=2):
        if int(narrow[1:]) < int(wide[1:]):
            yield (wide, narrow) if name == "trunci" else (narrow, wide)


@pytest.mark.parametrize("name", ["andi", "ori", "xori"])
def test_truth_values(name: str) -> None:
    with context():
        asked = Asked(f"%r = arith.{name} %a0, %a1 : i1", "i1", "i1")
        for pair in product((0, 1), repeat=2):
            asked.check(*pair)


def test_choices() -> None:
    rng = random.Random(0)
    with context():
        for kind in TYPES:
            asked = Asked(f"%r = arith.select %a0, %a1, %a2 : {kind}", "i1", kind, kind)
            pairs = rng.sample(list(product(numbers(kind, rng), repeat=2)), 6)
            for chosen, (a, b) in product((0, 1), pairs):
                asked.check(chosen, a, b)


def test_magnitudes() -> None:
    with context():
        for kind in TYPES:
            asked = Asked(f"%r = math.absi %a0 : {kind}", kind)
            for value in numbers(kind, random.Random(kind)):
                asked.check(value)


def test_every_operation_on_numbers_that_is_followed_is_asked() -> None:
    asked = {f"arith.{n}" for n in (*BINARY, *CONVERSIONS, "cmpi", "select", "constant")}
    followed = {
        name
        for name, rule in rules().items()
        if name.startswith(("arith.", "math."))
        and type(rule).abstract is not OpRules.abstract
        and (getattr(rule, "numbers", None) or "numbers" not in vars(rule))
    }
    assert followed <= {*asked, "math.absi"}
