"""What launches show of a kernel, and each way in which the proofs may be denied by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager

import pytest

from tests.proofs.adversary import Launch, Refusal, Verdict, Witness, disagreements, observe
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.ir.dialect import context
from tilec.source import SourceFile

# Program p writes 2p and 2p + 1, if these are even: elements 0, 1 of every two programs.
OWNED = """#[kernel(grid = [N.div_ceil(2)])]
pub fn k<N: Dim>(z: &mut Tensor<i32, N>, x: &Tensor<i32, N>, s: i32) {
    let [p, _, _] = program_id();
    z.store::<2>([p], x.load_at::<2>([2 * p + N]));
}
"""
# ... and one element more: that of the next program.
SMEARED = OWNED.replace("z.store::<2>([p]", "z.store_at::<4>([2 * p]").replace(
    "x.load_at::<2>([2 * p + N])", "x.load_at::<4>([0])"
)


@contextmanager
def module(text: str):
    program, found = load_program(SourceFile("case.tile", text), parse)
    instances, more = check_program(program)
    assert not found and not more
    with context():
        yield emit(instances, program.sources)


def said(
    text: str,
    verdicts: Mapping[tuple[int, int], Verdict] | None = None,
    refusals: Sequence[Refusal] = (),
) -> list[str]:
    with module(text) as emitted:
        return disagreements(emitted, verdicts or {}, refusals)


def witness(n: int, one: int, other: int, element: int) -> Witness:
    return Witness(Launch({"N": n}, {"s": 0}), ((one,), (other,)), "z", (element,))


def test_launches_show_races_and_what_accesses_touch() -> None:
    with module(SMEARED) as emitted:
        seen = observe(emitted)
    [race] = seen.races
    assert (race.code, race.tensor, race.places) == ("E0501", "z", ((4, 5), (4, 5)))
    assert race.programs == ((0,), (1,)) and race.element == (2,)
    # The first of the launches 0, 1, 2, … that has two programs.
    assert race.launch.dims == {"N": 3}
    assert set(seen.accesses) == {(4, 5), (4, 30)}
    assert seen.accesses[4, 5].inside and seen.accesses[4, 5].outside
    with module(OWNED) as emitted:
        seen = observe(emitted)
    assert seen.races == ()
    assert not seen.accesses[4, 23].inside and seen.accesses[4, 23].outside


def test_preconditions_choose_the_launches() -> None:
    text = OWNED.replace("{\n", "{\n    requires!(N % 2 == 0 && s > 2);\n", 1)
    with module(text) as emitted:
        seen = observe(emitted)
    assert 0 < seen.launches <= 10
    # No part of a tile is outside then.
    assert seen.accesses[5, 5].inside and not seen.accesses[5, 5].outside


def test_right_verdicts_are_not_denied() -> None:
    assert said(OWNED, {(4, 5): Verdict.IN_KERNEL, (4, 23): Verdict.NEVER_INSIDE}) == []
    refusal = Refusal("E0501", 4, witness(4, 0, 1, 2))
    assert said(SMEARED, {}, [refusal]) == []
    assert said(SMEARED, {}, [Refusal("E0501", 4)]) == []
    assert said(OWNED, {}, [Refusal("E0601", 4)]) == []


def test_a_race_without_an_error_is_a_disagreement() -> None:
    [text] = said(SMEARED)
    assert text.startswith("a race was not found: E0501: (0,) at (4, 5) and (1,) at (4, 5) meet")
    [text] = said(SMEARED, {}, [Refusal("E0601", 4)])[:1]
    assert text.startswith("a race was not found")


def test_an_access_outside_is_not_proved_inside() -> None:
    assert said(OWNED, {(4, 5): Verdict.PROVED}) == [
        "proved inside, at 4:5, but outside at N = 1, s = 1"
    ]


def test_an_access_that_was_inside_is_not_never_inside() -> None:
    assert said(OWNED, {(4, 5): Verdict.NEVER_INSIDE}) == [
        "never inside, at 4:5, but inside at N = 1, s = 1"
    ]
    inside = OWNED.replace("2 * p + N", "2 * p")
    assert said(inside, {}, [Refusal("E0601", 4)]) == [
        "E0601 in line 4, but inside at N = 1, s = 1"
    ]


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (witness(3, 0, 1, 2), True),
        (witness(9, 3, 2, 7), True),
        (witness(3, 0, 1, 1), False),  # only program 0 is there
        (witness(2, 0, 1, 2), False),  # there is one program
        (witness(3, 0, 1, 3), False),  # there is no such element
        (witness(9, 2, 2, 4), False),  # one program is no two
    ],
)
def test_a_witness_is_a_race_of_the_launch_that_it_names(found: Witness, holds: bool) -> None:
    assert (said(SMEARED, {}, [Refusal("E0501", 4, found)]) == []) == holds


def test_a_witness_breaks_no_precondition() -> None:
    text = SMEARED.replace("{\n", "{\n    requires!(N % 2 == 0);\n", 1)
    assert said(text, {}, [Refusal("E0501", 5, witness(4, 0, 1, 2))]) == []
    assert said(text, {}, [Refusal("E0501", 5, witness(3, 0, 1, 2))]) != []


def test_a_read_is_no_write() -> None:
    text = OWNED.replace("x.load_at::<2>([2 * p + N])", "z.load_at::<2>([2 * p + 1])")
    assert said(text, {}, [Refusal("E0502", 4, witness(4, 0, 1, 2))]) == []
    assert said(text, {}, [Refusal("E0501", 4, witness(4, 0, 1, 2))]) != []
    assert said(text, {}, [Refusal("E0502", 4, witness(4, 0, 1, 1))]) != []


def test_a_launch_without_end_is_cut_short() -> None:
    text = OWNED.replace("z.store", "for i in 0..1000000000 { z.store").replace(");\n}", "); }\n}")
    with module(text) as emitted:
        seen = observe(emitted, [Launch({"N": 2}, {"s": 0})])
    assert seen.launches == 1
    assert any(access.inside for access in seen.accesses.values())
