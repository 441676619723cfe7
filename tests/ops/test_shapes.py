"""Making and reshaping tiles, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_use import Use, run, tile

from tilec.ops.call import Form
from tilec.types import (
    BF16,
    BOOL,
    F32,
    I32,
    TF32,
    U8,
    USIZE,
    ArrayType,
    ElementVariable,
    TupleType,
    scalar,
)


def counted(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


EXTENTS = st.sampled_from([1, 2, 4, 16, 48])


@settings(max_examples=40, deadline=None)
@given(st.lists(EXTENTS, min_size=0, max_size=3), st.randoms(use_true_random=False))
def test_reshape_keeps_the_order(shape: list[int], random) -> None:  # type: ignore[no-untyped-def]
    factors = [f for e in shape for f in ([16, 3] if e == 48 else [e])]
    target: list[int] = []
    for factor in factors:
        if target and factor != 3 and random.random() < 0.5:
            target[-1] *= factor
        elif factor == 3:
            target[-1] *= 3
        else:
            target.append(factor)
    target = target + [1] * random.randrange(0, 2)
    target = ([1] if random.random() < 0.3 else []) + target
    value = counted(*shape)
    got = run("reshape", (tile(F32, *shape), value), generics=target)
    np.testing.assert_array_equal(got, value.reshape(target))


def test_reshape_refuses_another_count_and_illegal_extents() -> None:
    assert Use("reshape", tile(F32, 4, 8), generics=(4, 4)).refusal().code == "E0301"
    found = Use("reshape", tile(F32, 16, 16), generics=(100, 2)).refusal()
    assert found.code == "E0302" and found.help == "the next extent is 112"
    assert Use("reshape", tile(F32, 4), generics=(F32,)).refusal().code == "E0203"
    assert Use("reshape", tile(F32, 1), generics=(1,) * 6).refusal().code == "E0301"


def test_expand_and_squeeze() -> None:
    x = counted(4, 8)
    for axis in (0, 1, 2, -1, -3):
        got = run("expand", (tile(F32, 4, 8), x), generics=(axis,))
        np.testing.assert_array_equal(got, np.expand_dims(x, axis))
    got = run("squeeze", (tile(F32, 4, 1, 8), x[:, None]), generics=(1,))
    np.testing.assert_array_equal(got, x)
    assert float(run("squeeze", (tile(F32, 1), [3]), generics=(0,))) == 3.0
    assert run("expand", (scalar(F32), 3), generics=(0,)).shape == (1,)
    assert Use("squeeze", tile(F32, 4), generics=(0,)).refusal().code == "E0301"
    assert Use("expand", tile(F32, 4), generics=(3,)).refusal().code == "E0203"
    assert Use("expand", tile(F32, 1, 1, 1, 1, 1), generics=(0,)).refusal().code == "E0301"
    assert Use("expand", tile(F32, 4), generics=(True,)).refusal().code == "E0203"
    assert Use("expand", tile(F32, 4)).refusal().code == "E0203"


@pytest.mark.parametrize(
    ("own", "shape"),
    [((1, 8), (4, 8)), ((4, 1), (4, 8)), ((1, 1), (2, 4)), ((1, 4, 1), (2, 4, 1)), ((1,), (16,))],
)
def test_broadcast_stretches_ones(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = counted(*own)
    got = run("broadcast", (tile(F32, *own), x), generics=shape)
    np.testing.assert_array_equal(got, np.broadcast_to(x, shape))


def test_broadcast_refuses_what_does_not_stretch() -> None:
    assert Use("broadcast", tile(F32, 2), generics=(4,)).refusal().code == "E0301"
    found = Use("broadcast", tile(F32, 4), generics=(4, 4)).refusal()
    assert found.code == "E0301" and found.help is not None and "expand" in found.help


def test_transpositions() -> None:
    x = counted(2, 4, 8)
    kind = tile(F32, 2, 4, 8)
    np.testing.assert_array_equal(run("t", (kind, x)), x.transpose(0, 2, 1))
    got = run("permute", (kind, x), generics=(2, 0, -2))
    np.testing.assert_array_equal(got, x.transpose(2, 0, 1))
    assert Use("t", tile(F32, 4)).refusal().code == "E0301"
    assert Use("permute", kind, generics=(0, 1)).refusal().code == "E0203"
    assert Use("permute", kind, generics=(0, 1, 1)).refusal().code == "E0203"


def test_cat_and_split_are_inverse() -> None:
    a, b = counted(4, 8), -counted(4, 8)
    kind = tile(F32, 4, 8)
    for axis in (0, 1, -1):
        joined = run("cat", (kind, a), (kind, b), generics=(axis,), form=Form.FUNCTION)
        np.testing.assert_array_equal(joined, np.concatenate([a, b], axis))
        halves = run("split", (tile(F32, *joined.shape), joined), generics=(axis,))
        np.testing.assert_array_equal(halves[0], a)
        np.testing.assert_array_equal(halves[1], b)
    joined = run("cat", (kind, a), (kind, b), form=Form.FUNCTION)
    np.testing.assert_array_equal(joined, np.concatenate([a, b]))
    wide = run(
        "cat", (tile(F32, 64), counted(64)), (tile(F32, 32), counted(32)), form=Form.FUNCTION
    )
    assert wide.shape == (96,)


def test_cat_and_split_refuse() -> None:
    cat = {"form": Form.FUNCTION}
    assert Use("cat", tile(F32, 4), tile(I32, 4), **cat).refusal().code == "E0202"
    assert Use("cat", tile(F32, 4, 2), tile(F32, 4, 4), **cat).refusal().code == "E0301"
    assert Use("cat", tile(F32, 2), tile(F32, 1), **cat).refusal().code == "E0302"
    assert Use("cat", scalar(F32), scalar(F32), **cat).refusal().code == "E0203"
    assert Use("split", tile(F32, 1), generics=(0,)).refusal().code == "E0301"
    assert Use("split", tile(F32, 48), generics=(0,)).refusal().code == "E0302"


def test_flip() -> None:
    x = counted(4, 8)
    got = run("flip", (tile(F32, 4, 8), x), generics=(-1,))
    np.testing.assert_array_equal(got, x[:, ::-1])


def test_elements_by_index_are_zero_outside() -> None:
    x = counted(4, 8) + 1
    kind = tile(F32, 4, 8)
    index = TupleType((scalar(U8), scalar(I32)))
    for i, j in ((0, 0), (3, 7), (4, 0), (0, -1), (3, 8), (200, 0)):
        got = float(run("at", (kind, x), (index, (np.uint8(i), j))))
        assert got == (x[i, j] if 0 <= i < 4 and 0 <= j < 8 else 0)
    got = run("at", (tile(F32, 4), [1, 2, 3, 4]), (ArrayType(scalar(USIZE), 1), (2,)))
    assert float(got) == 3
    assert Use("at", kind, TupleType((scalar(I32),))).refusal().code == "E0303"
    assert Use("at", kind, scalar(I32)).refusal().code == "E0203"
    assert Use("at", tile(F32, 4), TupleType((scalar(F32),))).refusal().code == "E0203"
    literal = TupleType((scalar(ElementVariable(is_float=False)),))
    assert float(run("at", (tile(F32, 4), [1, 2, 3, 4]), (literal, (1,)))) == 2


def test_item_takes_the_one_element() -> None:
    assert float(run("item", (tile(F32, 1, 1), [[5]]))) == 5
    assert Use("item", tile(F32, 2)).refusal().code == "E0301"


def test_constants() -> None:
    for name, value in (("zeros", 0), ("ones", 1)):
        for element in (F32, BF16, U8, BOOL, USIZE):
            got = run(name, generics=(element, 4, 8), form=Form.TILE)
            assert got.shape == (4, 8) and (got.astype(np.float64) == value).all()
    got = run(
        "full", (scalar(ElementVariable(is_float=True)), 2.5), generics=(BF16, 16), form=Form.TILE
    )
    assert (got.astype(np.float64) == 2.5).all() and got.shape == (16,)
    got = run("splat", (scalar(F32), 7), generics=(2, 4), form=Form.FUNCTION)
    assert got.shape == (2, 4) and (got == 7).all()
    assert run("splat", (scalar(F32), 7), generics=(2,)).shape == (2,)
    assert float(run("ones", generics=(F32,), form=Form.TILE)) == 1


def test_constants_refuse() -> None:
    tiles = {"form": Form.TILE}
    assert Use("zeros", generics=(F32, 100), **tiles).refusal().code == "E0302"
    assert Use("zeros", generics=(F32, 0), **tiles).refusal().code == "E0302"
    assert Use("zeros", generics=(4, 4), **tiles).refusal().code == "E0203"
    assert Use("zeros", generics=(TF32, 4), **tiles).refusal().code == "E0203"
    assert Use("zeros", **tiles).refusal().code == "E0203"
    assert Use("full", scalar(F32), generics=(I32, 4), **tiles).refusal().code == "E0202"
    assert Use("full", tile(F32, 4), generics=(F32, 4), **tiles).refusal().code == "E0203"


def test_iota_counts_and_wraps() -> None:
    np.testing.assert_array_equal(run("iota", generics=(I32, 96), form=Form.FUNCTION), range(96))
    got = run("iota", generics=(U8, 512), form=Form.FUNCTION)
    np.testing.assert_array_equal(got.view(np.uint8), np.arange(512) % 256)
    np.testing.assert_array_equal(run("iota", generics=(F32, 8), form=Form.FUNCTION), range(8))
    assert Use("iota", generics=(BOOL, 8), form=Form.FUNCTION).refusal().code == "E0203"
    assert Use("iota", generics=(I32,), form=Form.FUNCTION).refusal().code == "E0203"


def test_select_broadcasts_all_three() -> None:
    condition = np.array([[True], [False]])
    a = counted(1, 4)
    got = run(
        "select",
        (tile(BOOL, 2, 1), condition),
        (tile(F32, 1, 4), a),
        (scalar(ElementVariable(is_float=True)), -1.0),
        form=Form.FUNCTION,
    )
    np.testing.assert_array_equal(got, np.where(condition, a, -1))
    got = run(
        "select", (scalar(BOOL), False), (tile(F32, 4), 1), (tile(F32, 4), 2), form=Form.FUNCTION
    )
    assert (got == 2).all()
    kinds = scalar(I32), scalar(F32), scalar(F32)
    assert Use("select", *kinds, form=Form.FUNCTION).refusal().code == "E0203"
    kinds = scalar(BOOL), scalar(F32), scalar(I32)
    assert Use("select", *kinds, form=Form.FUNCTION).refusal().code == "E0202"


def test_tiles_that_no_program_holds_are_refused_before_anything_is_made() -> None:
    for extent in (1 << 25, 1 << 60, 1 << 70):
        assert Use("zeros", generics=(F32, extent), form=Form.TILE).refusal().code == "E0702"
    wide = tile(F32, 1 << 20, 1), tile(F32, 1, 1 << 20)
    assert Use("+", *wide, form=Form.OPERATOR).refusal().code == "E0702"
