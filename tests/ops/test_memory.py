"""Loads, stores and parts: type rules, and reads and writes at every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_use import Use, tile

from tilec.interpret.memory import View, view_of
from tilec.ops.call import Form, Receiver
from tilec.types import (
    BF16,
    F32,
    I32,
    U8,
    U32,
    UNIT,
    USIZE,
    ArrayType,
    Dim,
    ElementVariable,
    Own,
    PartType,
    TensorType,
    TupleType,
    scalar,
)

M, N = Dim("M"), Dim("N")
SHARED = TensorType(F32, (M, N))
OUTPUT = TensorType(F32, (M, N), Own.MUT)
PART = PartType(OUTPUT, (4, 8))
INDEX = TupleType((scalar(USIZE), scalar(USIZE)))


def tensor(name: str, *types: Any, **rest: Any) -> Use:
    return Use(name, *types, receiver=Receiver.TENSOR, **rest)


def part(name: str, *types: Any, **rest: Any) -> Use:
    return Use(name, *types, receiver=Receiver.PART, **rest)


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)


def window(x: np.ndarray, start: tuple[int, int], shape: tuple[int, int], fill: float = 0) -> Any:
    """What a total read gives, one element at a time."""
    rows, columns = x.shape
    return [
        [
            x[i, j] if 0 <= i < rows and 0 <= j < columns else fill
            for j in range(start[1], start[1] + shape[1])
        ]
        for i in range(start[0], start[0] + shape[0])
    ]


@pytest.mark.parametrize("index", [(0, 0), (1, 0), (0, 1), (-1, 0), (2, 9)])
def test_loads_are_total(index: tuple[int, int]) -> None:
    x = matrix(6, 11)
    view = view_of("x", x, None)
    got = tensor("load", SHARED, INDEX, generics=(4, 8)).run(view, index)
    np.testing.assert_array_equal(got, window(x, (4 * index[0], 8 * index[1]), (4, 8)))
    got = tensor("load_at", SHARED, INDEX, generics=(4, 8)).run(view, index)
    np.testing.assert_array_equal(got, window(x, index, (4, 8)))
    use = tensor("load_or", SHARED, INDEX, scalar(F32), generics=(4, 8))
    np.testing.assert_array_equal(
        use.run(view, index, -9.0), window(x, (4 * index[0], 8 * index[1]), (4, 8), -9)
    )


def test_index_components_have_types_of_their_own() -> None:
    kinds = TupleType((scalar(U8), scalar(I32)))
    x = np.zeros((4, 400), np.float32).T.copy()
    x[200] = 5
    got = tensor("load_at", SHARED, kinds, generics=(1, 4)).run(
        view_of("x", x, None), (np.uint8(200), 0)
    )
    np.testing.assert_array_equal(got, [[5] * 4])
    kinds = ArrayType(scalar(USIZE), 2)
    assert tensor("load", SHARED, kinds, generics=(4, 8)).type() == tile(F32, 4, 8)
    literal = scalar(ElementVariable(is_float=False))
    kinds = TupleType((literal, literal))
    assert tensor("load", SHARED, kinds, generics=(4, 8)).type() == tile(F32, 4, 8)


def test_load_like_reads_where_the_part_is() -> None:
    x, z = matrix(6, 11), np.zeros((6, 20), np.float32)
    own = view_of("z", z, None).tile((1, 1), (4, 8))
    got = tensor("load_like", SHARED, PART).run(view_of("x", x, None), own)
    # The tensors differ in length: each is clipped by its own extents.
    np.testing.assert_array_equal(got, window(x, (4, 8), (4, 8)))


def test_a_part_of_a_part_reads_like_at_its_own_elements() -> None:
    x, z = matrix(6, 20), np.zeros((6, 20), np.float32)
    own = view_of("z", z, None).tile((1, 1), (4, 8))
    [sub] = [part("sub", PART, INDEX, generics=(2, 4)).run(own, (0, 1))]
    assert isinstance(sub, View)
    got = tensor("load_like", SHARED, PartType(OUTPUT, (2, 4))).run(view_of("x", x, None), sub)
    np.testing.assert_array_equal(got, window(x, (4, 12), (2, 4)))


@pytest.mark.parametrize("index", [(0, 0), (1, 1), (-1, 0), (3, 0)])
def test_stores_are_clipped(index: tuple[int, int]) -> None:
    before = matrix(6, 11)
    for name, scale in (("store", (4, 8)), ("store_at", (1, 1))):
        y = before.copy()
        value = -matrix(4, 8)
        use = tensor(name, OUTPUT, INDEX, tile(F32, 4, 8), generics=(4, 8), in_unsafe=True)
        assert use.run(view_of("y", y, None), index, value) == []
        start = index[0] * scale[0], index[1] * scale[1]
        for i in range(6):
            for j in range(11):
                a, b = i - start[0], j - start[1]
                inside = 0 <= a < 4 and 0 <= b < 8
                assert y[i, j] == (value[a, b] if inside else before[i, j])


def test_parts_read_write_and_know_their_place() -> None:
    z = matrix(6, 11)
    own = view_of("z", z, None).tile((1, 1), (4, 8))
    np.testing.assert_array_equal(part("load", PART).run(own), window(z, (4, 8), (4, 8)))
    axis = scalar(ElementVariable(is_float=False))
    before = z.copy()
    assert part("store", PART, tile(F32, 4, 8)).run(own, np.full((4, 8), 7)) == []
    assert (z[4:, 8:] == 7).all()
    z[4:, 8:] = before[4:, 8:]
    np.testing.assert_array_equal(z, before)
    assert part("id", PART, axis, constants=(None, 1)).type() == scalar(USIZE)
    assert part("store", PART, scalar(F32)).run(own, 3.0) == []
    assert (z[4:, 8:] == 3).all()


def test_part_axes_are_constants_inside_the_rank() -> None:
    axis = scalar(I32)
    for name in ("id", "offset"):
        assert part(name, PART, axis).refusal().code == "E0203"
        found = part(name, PART, axis, constants=(None, 2)).refusal()
        assert found.code == "E0203" and "there are 2 axes" in found.message
        assert part(name, PART, axis, constants=(None, -1)).type() == scalar(USIZE)


def test_unsigned_and_narrow_elements_are_stored_as_they_are() -> None:
    x = np.array([1, 2**32 - 1, 2**31, 7], np.uint32)
    kind = TensorType(U32, (N,))
    got = tensor("load", kind, TupleType((scalar(USIZE),)), generics=(4,)).run(
        view_of("x", x, None), (0,)
    )
    np.testing.assert_array_equal(got.view(np.uint32), x)
    y = np.zeros(4, np.uint32)
    own = PartType(TensorType(U32, (N,), Own.MUT), (4,))
    part("store", own, tile(U32, 4)).run(view_of("y", y, None), got)
    np.testing.assert_array_equal(y, x)


def test_views_change_the_indexing_only() -> None:
    x = matrix(6, 11)
    turned = tensor("t", SHARED)
    assert turned.type() == TensorType(F32, (N, M), Own.SHARED, contiguous=0)
    np.testing.assert_array_equal(turned.run(view_of("x", x, None)).data, x.T)
    cube = TensorType(BF16, (M, N, 8))
    use = tensor("permute", cube, generics=(2, 0, 1))
    assert use.type() == TensorType(BF16, (8, M, N), Own.SHARED, contiguous=0)
    back = tensor("permute", use.type(), generics=(1, 2, 0))
    assert back.type() == cube
    assert tensor("t", TensorType(F32, (N,))).refusal().code == "E0301"


# ---- refusals --------------------------------------------------------------------------------


def test_ranks_of_index_and_tensor_agree() -> None:
    single = TupleType((scalar(USIZE),))
    assert tensor("load", SHARED, single, generics=(1, 256)).refusal().code == "E0303"
    assert tensor("load", SHARED, INDEX, generics=(256,)).refusal().code == "E0303"
    assert (
        tensor("store", OUTPUT, single, tile(F32, 4, 8), in_unsafe=True).refusal().code == "E0303"
    )
    assert tensor("store", OUTPUT, INDEX, tile(F32, 4), in_unsafe=True).refusal().code == "E0303"
    vector = PartType(TensorType(F32, (N,), Own.MUT), (8,))
    assert tensor("load_like", SHARED, vector).refusal().code == "E0303"
    assert part("sub", PART, single, generics=(2, 4)).refusal().code == "E0303"
    assert part("sub", PART, INDEX, generics=(2,)).refusal().code == "E0303"


def test_extents_are_legal_and_written() -> None:
    assert tensor("load", SHARED, INDEX, generics=(100, 4)).refusal().code == "E0302"
    found = tensor("load", SHARED, INDEX).refusal()
    assert found.code == "E0203" and found.help == "`.load::<…, …>([…])`"
    assert part("sub", PART, INDEX, generics=(3, 4)).refusal().code == "E0302"


def test_stored_tiles_fit() -> None:
    assert part("store", PART, tile(F32, 4, 4)).refusal().code == "E0301"
    assert part("store", PART, tile(F32, 1, 8)).refusal().code == "E0301"
    assert part("store", PART, tile(I32, 4, 8)).refusal().code == "E0202"
    use = {"generics": (4, 8), "in_unsafe": True}
    assert tensor("store", OUTPUT, INDEX, tile(F32, 4, 4), **use).refusal().code == "E0301"
    assert tensor("load_or", SHARED, INDEX, scalar(I32), generics=(4, 8)).refusal().code == "E0202"
    assert tensor("load_like", SHARED, SHARED).refusal().code == "E0203"


def test_stores_to_tensors_are_for_the_checks_to_refuse() -> None:
    kinds = INDEX, tile(F32, 4, 8)
    assert tensor("store", OUTPUT, *kinds).type() == UNIT
    assert tensor("store", OUTPUT, *kinds, in_unsafe=True).type() == UNIT
    assert tensor("store", SHARED, *kinds).type() == UNIT


def test_unchecked_accesses_are_for_unsafe() -> None:
    kinds = OUTPUT, INDEX, tile(F32, 4, 8)
    assert tensor("store_unchecked", *kinds).refusal().code == "E0203"
    assert tensor("store_unchecked", *kinds, in_unsafe=True).type() == UNIT
    found = tensor("load_unchecked", SHARED, INDEX, generics=(4, 8)).refusal()
    assert found.code == "E0203" and found.help == "`load` is safe, and as fast where it is proved"


def test_atomic_tensors_are_no_plain_ones() -> None:
    atomic = TensorType(F32, (M, N), Own.ATOMIC)
    assert tensor("load", atomic, INDEX, generics=(4, 8)).refusal().code == "E0503"
    assert tensor("store", atomic, INDEX, tile(F32, 4, 8)).refusal().code == "E0503"


def test_what_is_not_there_yet_says_so() -> None:
    for name in ("sort", "topk", "histogram", "normal"):
        assert Use(name, tile(F32, 4), generics=(0,)).refusal().code == "E0103"
    assert Use("philox", form=Form.FUNCTION).refusal().code == "E0103"


def test_program_numbers_are_three() -> None:
    use = Use("program_id", form=Form.FUNCTION)
    assert use.type() == ArrayType(scalar(USIZE), 3)
    assert [int(n) for n in use.run()] == [0, 0, 0]
    assert [int(n) for n in Use("num_programs", form=Form.FUNCTION).run()] == [1, 1, 1]
