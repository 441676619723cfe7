"""From arguments to a launch: instance, variant, grid, packed slots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from manifest_samples import add_kernel, copy_kernel, with_variants

from tilec.artifact.signature import Parameter, Requirement
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.errors import ContractError
from tilec.runtime.plan import Planner

BASE = 2**40


def dense(pointer, element, *shape, **changes):
    return Array(pointer, element, shape, contiguous_strides(shape), 0)._replace(**changes)


def add_arguments(n=1000, element="f32", step=2**20, offset=0):
    return [dense(BASE + i * step + offset, element, n) for i in range(3)] + [2.0]


def test_slots_are_packed_in_the_order_of_the_convention():
    plan = Planner([add_kernel()]).plan(add_arguments())
    assert plan.arguments == (BASE, BASE + 2**20, BASE + 2**21, np.float32(2.0), 1000)
    assert plan.arguments[3].dtype == np.float32
    assert plan.device == 0


def test_strides_go_before_what_follows_a_tensor():
    target = Array(BASE, "i8", (6, 64), (100, 1), 0)
    source = Array(BASE + 4096, "i8", (6, 64), (64, 1), 0)
    plan = Planner([copy_kernel()]).plan([target, source, np.int8(3)])
    assert plan.arguments == (BASE, 100, BASE + 4096, 64, 3, 6)
    assert plan.grid == (3, 3, 1)  # 6 / 2 rows of 3 programs


def test_the_first_variant_whose_preconditions_hold_is_launched():
    planner = Planner([add_kernel()])
    assert planner.plan(add_arguments()).variant.symbol == "add__f32_1024__v16"
    assert planner.plan(add_arguments(offset=4)).variant.symbol == "add__f32_1024"
    assert planner.plan(add_arguments(offset=16)).variant.symbol == "add__f32_1024__v16"


def test_a_stride_decides_the_variant_where_there_is_something_to_step_to():
    planner = Planner([copy_kernel()])

    def variant(rows, stride):
        target = Array(BASE, "i8", (rows, 64), (stride, 1), 0)
        source = dense(2 * BASE, "i8", rows, 64)
        return planner.plan([target, source, 1]).variant.symbol

    assert variant(6, 80) == "copy__i8__v16"
    assert variant(6, 81) == "copy__i8"


def test_no_variant_left_is_an_error():
    kernel = add_kernel()
    planner = Planner([replace(kernel, variants=kernel.variants[:1])])
    with pytest.raises(
        ContractError, match=r"preconditions of no variant.*`z` at a multiple of 16"
    ):
        planner.plan(add_arguments(offset=4))


def test_the_instance_follows_the_element_type():
    planner = Planner([add_kernel("f32", 1024), add_kernel("bf16", 2048)])
    assert planner.plan(add_arguments(element="bf16")).kernel.symbol == "add__bf16_2048"
    assert planner.plan(add_arguments(element="f32")).kernel.symbol == "add__f32_1024"
    with pytest.raises(ContractError) as error:
        planner.plan(add_arguments(element="f16"))
    assert "no instance of `add` takes these arguments" in str(error.value)
    assert "`add__bf16_2048`: `z`: expected elements of type `bf16`, got `f16`" in str(error.value)


def test_the_instance_follows_what_is_required():
    """Rows that fit a tile: the smallest block that does."""
    small, large = (
        replace(
            add_kernel("f32", block),
            requires=(Requirement(f"N <= {block}", ("le", "N", block), 5),),
        )
        for block in (1024, 8192)
    )
    planner = Planner([small, large])
    assert planner.plan(add_arguments(1024)).kernel.symbol == "add__f32_1024"
    assert planner.plan(add_arguments(1025)).kernel.symbol == "add__f32_8192"
    with pytest.raises(ContractError, match=r"N <= 8192.*does not hold, where N = 9000"):
        planner.plan(add_arguments(9000))


def test_the_instance_follows_a_scalar_where_only_that_differs():
    def fill(element):
        return with_variants(
            replace(
                copy_kernel(),
                symbol=f"fill__{element}",
                parameters=(
                    Parameter("target", "tensor", "i8", ("M", 64), "mut"),
                    Parameter("count", "scalar", element),
                ),
                grid=(1,),
            )
        )

    planner = Planner([fill("i32"), fill("f32")])
    target = dense(BASE, "i8", 2, 64)
    assert planner.plan([target, 1]).kernel.symbol == "fill__i32"
    assert planner.plan([target, 1.0]).kernel.symbol == "fill__f32"


@pytest.mark.parametrize(
    ("n", "grid"),
    [
        (0, None),
        (1, (1, 1, 1)),
        (1024, (1, 1, 1)),
        (1025, (2, 1, 1)),
        (2**40, (2**30, 1, 1)),
    ],
)
def test_the_grid_covers_the_parts(n, grid):
    assert Planner([add_kernel()]).plan(add_arguments(n, step=2**45)).grid == grid


def test_a_grid_beyond_the_hardware_is_folded():
    kernel = replace(add_kernel(), grid=("N",))
    plan = Planner([kernel]).plan(add_arguments(2**31, step=2**45))
    assert plan.grid == (2**31 - 1, 1, 2)


def test_a_written_tensor_overlaps_no_other_argument():
    planner = Planner([add_kernel()])
    z, x, y, scale = add_arguments()
    planner.plan([z, x, x, scale])  # reading one tensor twice is fine
    for arguments in ([z, z, y, scale], [z, x, z._replace(pointer=z.pointer + 3996), scale]):
        with pytest.raises(ContractError, match=r"`add__f32_1024`: `z` is written and overlaps"):
            planner.plan(arguments)
    planner.plan([z, x, z._replace(pointer=z.pointer + 4000), scale])


def test_a_written_tensor_that_comes_later_is_named_too():
    kernel = add_kernel()
    z, x, y, scale = kernel.parameters
    planner = Planner([with_variants(replace(kernel, parameters=(x, y, z, scale)))])
    a, b, _, s = add_arguments()
    with pytest.raises(ContractError, match="`z` is written and overlaps `y`"):
        planner.plan([a, b, b, s])


def test_empty_tensors_overlap_nothing_and_are_anywhere():
    z, _, _, scale = add_arguments(0)
    plan = Planner([add_kernel()]).plan([z, z, z._replace(pointer=3), scale])
    assert plan.grid is None and plan.variant.symbol == "add__f32_1024__v16"


def test_what_was_remembered_of_shapes_is_not_reused_for_others():
    planner = Planner([add_kernel()])
    planner.plan(add_arguments(1000))
    z, x, y, scale = add_arguments(1000)
    with pytest.raises(ContractError, match="`y`: expected extent 1000 of axis 0"):
        planner.plan([z, x, dense(y.pointer, "f32", 1001), scale])
    with pytest.raises(ContractError, match="`scale`"):
        planner.plan([z, x, y, "2"])
    assert planner.plan(add_arguments(2000)).arguments[-1] == 2000


def test_a_scalar_in_the_grid_counts_for_each_launch():
    planner = Planner([copy_kernel()])
    target, source = dense(BASE, "i8", 4, 64), dense(2 * BASE, "i8", 4, 64)
    assert planner.plan([target, source, 3]).grid == (3, 2, 1)
    assert planner.plan([target, source, 5]).grid == (5, 2, 1)
    for wrong in (300, True, 1.0, [1]):
        with pytest.raises(ContractError, match="`count`"):
            planner.plan([target, source, wrong])


def test_arguments_may_be_named():
    planner = Planner([add_kernel()])
    assert planner.positional((1, 2), {"scale": 4, "y": 3}) == (1, 2, 3, 4)
    for given, named, message in [
        ((1, 2, 3), {}, "expected 4 arguments .z, x, y, scale.; `scale` is missing"),
        ((1, 2), {}, "expected 4 arguments .z, x, y, scale.; `y`, `scale` are missing"),
        ((1, 2, 3, 4, 5), {}, "expected 4 arguments .*, got 5"),
        ((1, 2, 3, 4), {"z": 1}, "`z` is given twice"),
        ((1, 2, 3), {"alpha": 1}, "got one named `alpha`"),
    ]:
        with pytest.raises(ContractError, match=message):
            planner.positional(given, named)
