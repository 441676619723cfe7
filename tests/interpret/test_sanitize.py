"""The dynamic checker: what it finds in launches that are wrong, and that it finds nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from executed import check
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.frontend.emit import emit
from tilec.interpret.launch import choose, launch
from tilec.interpret.report import diagnostics_of
from tilec.interpret.sanitize import Sanitizer, Touch
from tilec.ir.dialect import context


def sanitized(body: str, grid: str = "N", **given: Any) -> tuple[list[str], dict[str, Touch]]:
    """The findings as `CODE message`, and what each access touched, by its source text."""
    text = f"""
#[kernel(grid = [{grid}])]
pub fn k<N: Dim>(z: &mut Tensor<i32, N>, y: &mut Tensor<i32, N>, x: &Tensor<i32, N>) {{
    let [p, q, _] = program_id();
    unsafe {{
        {body}
    }}
}}
"""
    return _sanitized(text, **given)


def _sanitized(text: str, **given: Any) -> tuple[list[str], dict[str, Touch]]:
    (program, instances), found = check(text)
    assert not found, found
    with context():
        module = emit(instances, program.sources)
        chosen = choose(module, "k", given)
        shapes = {name: array.shape for name, array in chosen.tensors.items()}
        observer = Sanitizer(shapes, chosen.unset)
        launch(chosen, observer)
        diagnostics = list(diagnostics_of(observer.findings(), program.sources, chosen.sizes))
        touched = {_text_of(text, op.location): touch for op, touch in observer.seen.items()}
    return [f"{d.code} {d.message}" for d in diagnostics], touched


def _text_of(text: str, location: Any) -> str:
    line = text.splitlines()[location.start_line - 1]
    return line[location.start_col - 1 : location.end_col - 1]


def ints(length: int) -> np.ndarray:
    return np.zeros(length, np.int32)


def full(length: int) -> dict[str, np.ndarray]:
    return {name: ints(length) for name in "xyz"}


def races(body: str, length: int = 4, grid: str = "N") -> list[str]:
    return sanitized(body, grid, **full(length))[0]


def test_programs_that_keep_to_their_own_do_not_race() -> None:
    assert races("z.store_at::<1>([p], z.load_at::<1>([p]) + x.load_at::<1>([p + 1]));") == []


def test_one_program_may_write_and_read_an_element_many_times() -> None:
    body = "for i in 0..3 { z.store_at::<1>([p], z.load_at::<1>([p])); } z.store_at::<1>([p], 1);"
    assert races(body) == []


def test_two_programs_that_write_an_element_race() -> None:
    assert races("z.store_at::<2>([p], 1);") == ["E0501 programs (0) and (1) both write `z[1]`"]


def test_two_stores_of_different_programs_race() -> None:
    assert races("z.store_at::<1>([p], 1); z.store_at::<1>([3 - p], 1);") == [
        "E0501 programs (0) and (3) both write `z[0]`"
    ]


def test_a_read_of_what_another_program_writes_races() -> None:
    assert races("z.store_at::<1>([p], z.load_at::<1>([p + 1]));") == [
        "E0502 program (0) reads `z[1]`, which program (1) writes"
    ]


def test_a_race_of_the_last_of_many_programs_is_seen() -> None:
    body = "y.store_at::<1>([p], z.load_at::<1>([2])); if p == N - 1 { z.store_at::<1>([2], 1); }"
    assert races(body, length=50) == ["E0502 program (0) reads `z[2]`, which program (49) writes"]


def test_reads_do_not_race() -> None:
    assert races("y.store_at::<1>([p], z.load_at::<1>([0]));") == []


def test_elements_outside_do_not_race() -> None:
    assert races("z.store_at::<1>([N + p / 2], z.load_at::<1>([-1]));") == []


def test_programs_are_told_apart_by_every_axis_of_the_grid() -> None:
    assert races("z.store_at::<1>([p], 1);", grid="N, 2") == [
        "E0501 programs (0, 0) and (0, 1) both write `z[0]`"
    ]
    assert races("z.store_at::<1>([p * 2 + q], 1);", grid="2, 2") == []


def test_tensors_are_told_apart() -> None:
    assert races("z.store_at::<1>([p], 1); y.store_at::<1>([3 - p], 1);") == []


def test_parts_race_with_nobody_and_views_count_in_their_tensor() -> None:
    text = """
#[kernel]
pub fn k<N: Dim, M: Dim>(z: Part<&mut Tensor<i32, N, M>, 2, 2>, y: &mut Tensor<i32, M, N>) {
    z.store(z.load());
    z.sub::<1, 2>([1, 0]).store(2);
    unsafe { y.t().store::<2, 2>([z.id(0), z.id(1)], 1); }
}
"""
    for shape in ((3, 5), (4, 4), (1, 0)):
        arrays = {"z": np.zeros(shape, np.int32), "y": np.zeros(shape[::-1], np.int32)}
        assert _sanitized(text, **arrays)[0] == []
    turned = text.replace("z.id(0), z.id(1)", "z.id(1), z.id(0)")
    arrays = {"z": np.zeros((2, 6), np.int32), "y": np.zeros((6, 2), np.int32)}
    assert _sanitized(turned, **arrays)[0] == []
    lost = text.replace("[z.id(0), z.id(1)]", "[z.id(0), 0]")
    assert _sanitized(lost, **arrays)[0] == [
        "E0501 programs (0, 0) and (0, 1) both write `y[0, 0]`"
    ]


class Op:
    """Stands for an operation: sanitizing asks for attributes and a place only."""

    class location:  # noqa: N801
        is_a_file = staticmethod(lambda: False)

    attributes: tuple[str, ...] = ()


READ: Any = Op()
WRITE: Any = Op()
ELEMENTS = st.lists(st.integers(0, 3), min_size=1, max_size=3)
PROGRAMS = st.lists(st.lists(st.tuples(st.booleans(), ELEMENTS), max_size=3), max_size=4)


@settings(max_examples=100, deadline=None)
@given(PROGRAMS)
def test_races_are_those_of_the_definition(programs: list[list[tuple[bool, list[int]]]]) -> None:
    observer = Sanitizer({"z": (4,)})
    for number, done in enumerate(programs):
        observer.starts((number,))
        for written, elements in done:
            op = WRITE if written else READ
            observer.touched(op, "z", np.array(elements), written=written, outside=0)
    accesses = [(p, w, es) for p, done in enumerate(programs) for w, es in done]
    meetings = {
        (other, element)
        for p, written, elements in accesses
        for q, other, others in accesses
        for element in set(elements) & set(others)
        if p != q and written
    }
    expected = {
        (not other, min(e for o, e in meetings if o is other)) for other in {o for o, _ in meetings}
    }
    found = list(observer.races())
    assert {(race.is_read, race.element[0]) for race in found} == expected
    for race in found:
        for (program,), op in zip(race.programs, race.ops, strict=True):
            written = op is WRITE
            assert any(
                (p, w) == (program, written) and race.element[0] in es for p, w, es in accesses
            )
        assert race.programs[0] != race.programs[1]


def test_an_unchecked_access_outside_is_found_and_a_checked_one_is_not() -> None:
    text = "z.store_unchecked::<2>([p], x.load_unchecked::<2>([p])); y.store::<2>([p], 1);"
    assert sanitized(text, "N / 2", **full(4))[0] == []
    assert sanitized(text, "N.div_ceil(2)", **full(3))[0] == [
        "E0602 program (1) accesses what is outside of `x`, unchecked",
        "E0602 program (1) accesses what is outside of `z`, unchecked",
    ]


def test_a_read_of_an_output_that_nobody_set_is_found() -> None:
    given = {"x": ints(3), "y": ints(3)}
    body = "y.store_at::<1>([p], z.load_at::<1>([p]));"
    assert sanitized(body, **given)[0] == ["W0801 program (0) reads `z[0]`, which has no value yet"]
    assert sanitized(body, z=ints(3), **given)[0] == []
    assert sanitized("z.store_at::<1>([p], 1);" + body, **given)[0] == []
    assert sanitized("y.store_at::<1>([p], 1);", **given)[0] == []


def test_what_is_read_only_may_be_left_open() -> None:
    assert sanitized("z.store_at::<1>([p], x.load_at::<1>([p]));", z=ints(3), y=ints(3))[0] == []


def test_each_access_says_how_much_of_it_was_inside_and_outside() -> None:
    body = "let t = x.load_at::<4>([p - 1]);\nif p > 9 { z.store_at::<1>([p], 1); }"
    _, touched = sanitized(body, **full(3))
    # Programs 0, 1, 2 load elements p - 1 to p + 2 of three.
    assert touched == {"x.load_at::<4>([p - 1])": Touch(inside=3 + 3 + 2, outside=1 + 1 + 2)}


def test_a_million_elements_are_quick_and_right() -> None:
    body = "z.store::<4096>([p], x.load::<4096>([p]));"
    n = 1_000_000
    assert sanitized(body, "N.div_ceil(4096)", **full(n))[0] == []
    late = body.replace("z.store::<4096>([p]", "z.store_at::<4096>([p * 4096 + p / 244]")
    assert sanitized(late, "N.div_ceil(4096)", **full(n))[0] == []
    overlap = body.replace("z.store::<4096>([p]", "z.store_at::<4096>([p * 4096 - p / 244]")
    assert sanitized(overlap, "N.div_ceil(4096)", **full(n))[0] == [
        "E0501 programs (243) and (244) both write `z[999423]`"
    ]


ATOMIC = """
#[kernel(grid = [N])]
pub fn k<N: Dim>(a: &Atomic<Tensor<i32, N>>, y: &mut Tensor<i32, N>, x: &Tensor<i32, N>) {
    let [p, _, _] = program_id();
    let i = x.load_at::<4>([0]);
    a.fetch_add([i], 1);
    let n = a.load([0]);
    unsafe { y.scatter([i + (p as i32)], i); }
}
"""


def test_atomic_accesses_do_not_race_with_each_other() -> None:
    text = ATOMIC.replace("(p as i32)", "(p as i32) * 4")
    assert _sanitized(text, x=np.arange(8, dtype=np.int32), a=ints(8), y=ints(8))[0] == []


def test_scattered_elements_race_where_they_meet() -> None:
    x = np.array([0, 7, 7, 3, 0], np.int32)
    # Programs 0 to 4 write p, p + 3 and p + 7, of which 5 elements are inside.
    assert _sanitized(ATOMIC, x=x, a=ints(5), y=ints(5))[0] == [
        "E0501 programs (0) and (3) both write `y[3]`"
    ]


def test_an_atomic_access_races_with_a_plain_write_only() -> None:
    observer = Sanitizer({"z": (4,)})
    ops = [Op() for _ in range(3)]
    for program, (op, written, atomic) in enumerate(
        zip(ops, (True, True, False), (True, False, False), strict=True)
    ):
        observer.starts((program,))
        element = np.array([1])
        observer.touched(op, "z", element, written=written, outside=0, atomic=atomic)
    found = {(race.programs, race.is_read) for race in observer.races()}
    assert found == {(((0,), (1,)), False), (((1,), (2,)), True)}
