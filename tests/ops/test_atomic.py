"""Atomic updates on the CPU, against one update after another as they are defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.interpret.executed import check, launch
from tilec.frontend.emit import emit
from tilec.interpret.run import run_kernel
from tilec.ir.dialect import context

Array = Any
NUMPY: dict[str, Any] = {
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "usize": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
FLOATS = ("f16", "bf16", "f32", "f64")
EDGES = {
    "i32": [0, 1, -1, 2**31 - 1, -(2**31), 7],
    "u32": [0, 1, 2**32 - 1, 2**31 - 1, 2**31, 7],
    "i64": [0, 1, -1, 2**63 - 1, -(2**63), 7],
    "u64": [0, 1, 2**64 - 1, 2**63 - 1, 2**63, 7],
    "usize": [0, 1, -1, 2**63 - 1, -(2**63), 7],
    **{name: [0.0, -0.0, 1.5, -2.25, np.inf, np.nan, 0.001, 1000.0] for name in FLOATS},
}


def _number_or(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The number where one side is NaN; -0.0 is below 0.0."""

    def of(a: Any, b: Any) -> Any:
        if a != a or b != b:
            return b if a != a else a
        return pick(a, b) if a != b else pick((a, b), key=lambda x: not np.signbit(x))

    return of


MEANINGS: dict[str, Callable[[Any, Any], Any]] = {
    "fetch_add": lambda old, value: old + value,
    "fetch_min": _number_or(min),
    "fetch_max": _number_or(max),
    "fetch_and": lambda old, value: old & value,
    "fetch_or": lambda old, value: old | value,
    "fetch_xor": lambda old, value: old ^ value,
    "swap": lambda old, value: value,
}


def updated(
    a: Array, indices: list[Array], values: list[Array], change: Callable[..., Any]
) -> tuple[Array, Array]:
    """What is left of `a`, and what each update gives."""
    a, old = a.copy(), np.zeros(indices[0].shape, a.dtype)
    for place in np.ndindex(indices[0].shape):
        at = tuple(int(index[place]) for index in indices)
        if all(0 <= i < extent for i, extent in zip(at, a.shape, strict=True)):
            old[place] = a[at]
            with np.errstate(all="ignore"):
                a[at] = change(a[at], *(value[place] for value in values))
    return a, old


def same(got: Array, wanted: Array) -> None:
    """Equal to the bit; one NaN is as another."""
    got, wanted = (np.where(x != x, 0, x).astype(x.dtype) for x in (got, wanted))
    assert got.tobytes() == wanted.tobytes(), (got, wanted)


VECTOR = """
#[kernel(grid = [N.div_ceil(16)])]
pub fn k<N: Dim, K: Dim>(
    a: &Atomic<Tensor<{element}, K>>,
    old: &mut Tensor<{element}, N>,
    i: &Tensor<{index}, N>,
    x: &Tensor<{element}, N>,
) {{
    let [p, _, _] = program_id();
    let (j, t) = (i.load_or::<16>([p], {outside}), x.load::<16>([p]));
    unsafe {{ old.store([p], {update}); }}
}}
"""


def vector(update: str, element: str = "u32", index: str = "i32", outside: str = "-1") -> str:
    return VECTOR.format(element=element, index=index, outside=outside, update=update)


def numbers(element: str, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.choice(np.array(EDGES[element], NUMPY[element]), count)


ON_INTEGERS = ("fetch_and", "fetch_or", "fetch_xor")


@pytest.mark.parametrize(
    ("name", "element"),
    [(n, e) for n in MEANINGS for e in NUMPY if not (n in ON_INTEGERS and e in FLOATS)],
)
def test_updates_of_one_element_follow_one_another(name: str, element: str) -> None:
    a, x = numbers(element, 5, 1), numbers(element, 48, 2)
    i = np.random.default_rng(3).integers(-2, 7, 48).astype("i4")
    wanted, before = updated(a, [i], [x], MEANINGS[name])
    old = np.ones(48, NUMPY[element])
    launch(vector(f"a.{name}([j], t)", element), "k", a=a, old=old, i=i, x=x)
    same(a, wanted)
    same(old, before)


def test_the_value_may_be_one_for_all() -> None:
    for form in ("", "_acq_rel", "_unchecked"):
        a, old = np.zeros(3, "u4"), np.ones(16, "u4")
        i = np.arange(16, dtype="i4") % 3
        launch(vector(f"a.fetch_add{form}([j], 2)"), "k", a=a, old=old, i=i, x=old.copy())
        np.testing.assert_array_equal(a, [12, 10, 10])
        np.testing.assert_array_equal(old, np.arange(16) // 3 * 2)


def test_all_at_one_element() -> None:
    a, old = np.full(1, 2**32 - 3, "u4"), np.ones(16, "u4")
    x = np.arange(1, 17, dtype="u4")
    sums = np.cumsum(x) + 2**32 - 3
    launch(vector("a.fetch_add([j], t)"), "k", a=a, old=old, i=np.zeros(16, "i4"), x=x)
    np.testing.assert_array_equal(old, np.array([2**32 - 3, *sums[:-1]]) % 2**32)
    assert a[0] == sums[-1] % 2**32


def test_an_exchange_is_made_where_what_is_expected_is_there() -> None:
    a, old = np.array([0, 5], "u4"), np.ones(16, "u4")
    i = np.array([0] * 8 + [1] * 6 + [2, -1], "i4")
    x = np.arange(1, 17, dtype="u4")
    launch(vector("a.compare_exchange([j], 0, t)"), "k", a=a, old=old, i=i, x=x)
    np.testing.assert_array_equal(a, [1, 5])
    np.testing.assert_array_equal(old, [0] + [1] * 7 + [5] * 6 + [0, 0])
    launch(vector("a.compare_exchange([j], t, t + 1)"), "k", a=a, old=old, i=i, x=x)
    np.testing.assert_array_equal(a, [9, 5])


@pytest.mark.parametrize(
    ("index", "kind", "outside", "given"),
    [
        ("u8", "u1", "255", [0, 200, 255, 127, 128]),
        ("i8", "i1", "-1", [0, 100, -1, 127, -128]),
        ("u32", "u4", "999", [0, 200, 2**32 - 1, 2**31, 201]),
        ("u64", "u8", "999", [0, 200, 2**64 - 1, 2**63, 201]),
        ("i64", "i8", "-1", [0, 200, -1, -(2**63), 2**63 - 1]),
        ("usize", "i8", "999", [0, 200, -1, -(2**63), 2**63 - 1]),
    ],
)
def test_indices_of_every_integer_type(index: str, kind: str, outside: str, given: Any) -> None:
    a, i = np.arange(201, dtype="u4"), np.array(given, kind)
    x = np.full(5, 1000, "u4")
    wanted, before = updated(a, [i.astype(object)], [x], MEANINGS["fetch_add"])
    old = np.ones(5, "u4")
    text = vector("a.fetch_add([j], t)", index=index, outside=outside)
    launch(text, "k", a=a, old=old, i=i, x=x)
    np.testing.assert_array_equal(a, wanted)
    np.testing.assert_array_equal(old, before)


@pytest.mark.parametrize(("count", "bins"), [(0, 5), (5, 0), (1, 1), (1000, 10)])
@pytest.mark.parametrize("order", [None, 3])
def test_a_histogram(count: int, bins: int, order: int | None) -> None:
    x = np.random.default_rng(5).integers(-2, bins + 2, count).astype("i4")
    a, old = np.zeros(bins, "u4"), np.zeros(count, "u4")
    launch(vector("a.fetch_add([j], 1)"), "k", order, a=a, old=old, i=x, x=old.copy())
    inside = x[(x >= 0) & (x < bins)]
    np.testing.assert_array_equal(a, np.bincount(inside, minlength=bins))


MATRIX = """
#[kernel(grid = [1])]
pub fn k<M: Dim, N: Dim>(
    a: &Atomic<Tensor<f32, M, N>>,
    x: &Tensor<f32, 8, 4>,
    r: &Tensor<i32, 8>,
    c: &Tensor<i32, 4>,
) {{
    let t = x.load::<8, 4>([0, 0]);
    let (rows, columns) = (r.load::<8>([0]), c.load::<4>([0]));
    {update};
}}
"""


@pytest.mark.parametrize(
    ("update", "indices"),
    [
        ("a.fetch_add([rows.expand::<1>(), columns.expand::<0>()], t)", lambda r, c: (r, c)),
        ("a.t().fetch_add([columns.expand::<0>(), rows.expand::<1>()], t)", lambda r, c: (r, c)),
        ("a.fetch_add([rows.expand::<1>(), columns.expand::<0>() * 0 + 2], t)",
         lambda r, c: (r, 0 * c + 2)),
    ],
)  # fmt: skip
def test_index_tiles_are_paired(update: str, indices: Any) -> None:
    rng = np.random.default_rng(7)
    a, x = np.zeros((6, 10), "f4")[:, :5], rng.integers(0, 9, (8, 4)).astype("f4")
    r, c = rng.integers(-1, 7, 8).astype("i4"), rng.integers(-1, 6, 4).astype("i4")
    rows, columns = np.broadcast_arrays(*indices(r[:, None], c[None, :]))
    wanted, _ = updated(a, [rows, columns], [x], MEANINGS["fetch_add"])
    launch(MATRIX.format(update=update), "k", a=a, x=x, r=r, c=c)
    np.testing.assert_array_equal(a, wanted)


def test_a_scalar_index_is_the_same_for_all() -> None:
    a, x = np.zeros((6, 5), "f4"), np.ones((8, 4), "f4")
    r, c = np.array([0, 3, 3, 9, -1, 5, 3, 0], "i4"), np.zeros(4, "i4")
    launch(MATRIX.format(update="a.fetch_add([rows, 2], 0.5)"), "k", a=a, x=x, r=r, c=c)
    wanted = np.zeros((6, 5), "f4")
    np.add.at(wanted, (r[(r >= 0) & (r < 6)], 2), 0.5)
    np.testing.assert_array_equal(a, wanted)
    launch(MATRIX.format(update="a.swap([6, 2], 9.0)"), "k", a=a, x=x, r=r, c=c)
    launch(MATRIX.format(update="a.swap([5, 4], 9.0)"), "k", a=a, x=x, r=r, c=c)
    wanted[5, 4] = 9
    np.testing.assert_array_equal(a, wanted)


def test_updates_are_neither_merged_nor_moved_nor_removed() -> None:
    # `launch` compares what is emitted with what is left after simplification.
    text = """
    fn bump<N: Dim>(a: &Atomic<Tensor<i32, N>>) -> i32 {
        a.fetch_add([0], 1)
    }

    #[kernel(grid = [2])]
    pub fn k<N: Dim>(a: &Atomic<Tensor<i32, N>>, total: &Atomic<Tensor<i32>>, n: i32) {
        a.fetch_add([1], 1);
        a.fetch_add([1], 1);
        for i in 0..n { bump(&a); }
        while a.load([2]) < n { a.fetch_add([2], 1); }
        let same = a.load([3]);
        a.swap([3], 7);
        total.fetch_add([], same + a.load([3]));
        if n > 3 && bump(a) > 0 { a.swap([4], bump(a)); }
    }
    """
    a, total = np.zeros(5, "i4"), np.zeros((), "i4")
    launch(text, "k", a=a, total=total, n=5)
    np.testing.assert_array_equal(a, [14, 4, 5, 7, 13])
    assert total == 0 + 7 + 7 + 7


class _Heard:
    """What an observer is told, an entry an access."""

    def __init__(self) -> None:
        self.accesses: list[tuple[str, str, list[int], bool, bool]] = []

    def starts(self, program: tuple[int, ...]) -> None:
        pass

    def touched(
        self, op: Any, tensor: str, elements: Any, *, written: bool, atomic: bool = False, **_: Any
    ) -> None:
        name = op.operation.name.removeprefix("tile.")
        self.accesses.append((name, tensor, elements.tolist(), written, atomic))


def test_an_observer_hears_which_elements_are_touched_and_how() -> None:
    text = """
    #[kernel(grid = [1])]
    pub fn k<M: Dim, N: Dim>(
        a: &Atomic<Tensor<f32, M, N>>, y: &mut Tensor<f32, M, N>, x: &Tensor<f32, M, N>,
    ) {
        let i = iota::<i32, 4>() * 2 - 2;
        let t = x.gather::<4, 1>([i, 1]);
        unsafe { y.t().scatter::<1, 4>([1, i / 4], t.t()); }
        a.fetch_max([i, 0], 1.0);
        let now = a.load([1, 1]);
    }
    """
    x = np.zeros((3, 2), "f4")
    (program, instances), found = check(text)
    assert not found
    heard = _Heard()
    with context():
        module = emit(instances, program.sources)
        [kernel] = module.body.operations
        run_kernel(kernel, {"a": x.copy(), "y": x.copy(), "x": x}, None, heard)
    assert heard.accesses == [
        ("gather", "x", [1, 5], False, False),
        ("scatter", "y", [1, 1, 1, 3], True, False),
        ("atomic", "a", [0, 4], True, True),
        ("atomic", "a", [3], False, True),
    ]
