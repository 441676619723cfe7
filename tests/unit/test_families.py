"""Families: who belongs to one, and which member the shapes of a launch choose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from family_samples import LARGE, SMALL, of_family, part, product
from hypothesis import given
from hypothesis import strategies as st
from manifest_samples import add_kernel
from noting_driver import NotingDriver
from test_embed import cubin

from tilec.artifact.embed import embed
from tilec.artifact.families import families_of
from tilec.artifact.family import Cost, Part
from tilec.artifact.manifest import Precondition, Variant, from_json, to_json
from tilec.artifact.signature import Generic, Requirement
from tilec.artifact.validate import faults_of
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.errors import ContractError, NoDevice
from tilec.runtime.module import Module
from tilec.runtime.plan import Planner

SIZES = st.integers(1, 5000)


def arguments(m, n, k, element="bf16"):
    shapes = ((m, n), (m, k), (k, n))
    return [
        Array((i + 1) * 2**40, element, shape, contiguous_strides(shape), 0)
        for i, shape in enumerate(shapes)
    ]


class Machine:
    """132 multiprocessors."""

    name = "A Card"

    def sm_count(self, device):
        return 132

    def card(self, device):
        return self.name


def chosen(m, n, k, told=None):
    told = told or of_family()
    planner = Planner(told.kernels, Machine(), told.families)
    return planner.plan(arguments(m, n, k)).kernel.symbol


def module(driver, told):
    return Module(embed(cubin(), to_json(told).encode()), "matmul.cubin", lambda: driver)


# ---- who belongs together ------------------------------------------------------------------------


def test_instances_of_the_same_types_are_a_family():
    other = product(64, 64, 256, "f16")
    [family] = families_of([LARGE, other, SMALL, add_kernel()])
    assert (family.name, family.kernel) == ("matmul__bf16", "matmul")
    assert family.members == (LARGE.symbol, SMALL.symbol)
    assert family.dims == ("M", "N", "K")


@pytest.mark.parametrize("value", [True, 0.5])
def test_another_truth_value_or_real_number_is_another_computation(value):
    extra = replace(SMALL, generics=(*SMALL.generics, Generic("C", "const", value)))
    assert families_of([LARGE, extra]) == ()


def test_a_static_extent_is_part_of_the_types():
    c, a, b = SMALL.parameters
    fixed = replace(SMALL, parameters=(c, replace(a, extents=("M", 64)), b))
    assert families_of([LARGE, fixed]) == ()


def test_a_family_goes_through_json():
    told = of_family(measured=[((512, 512, 512), SMALL.symbol)])
    assert from_json(to_json(told)) == told
    assert list(faults_of(told)) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"members": (LARGE.symbol, "x")}, "the unknown member `x`"),
        ({"members": ()}, "has no members"),
        ({"dims": ("M", "N")}, "of another kernel"),
        ({"members": (LARGE.symbol, LARGE.symbol)}, "in two families"),
    ],
)
def test_a_wrong_family_is_a_fault(change, fault):
    told = of_family()
    wrong = replace(told, families=(replace(told.families[0], **change),))
    assert any(fault in found for found in faults_of(wrong))


@pytest.mark.parametrize(
    ("measured", "fault"),
    [
        ([((1, 2, 3), "x")], "which is no member"),
        ([((1, 2), SMALL.symbol)], "are not 3 extents"),
        ([((1, 2, 3), SMALL.symbol), ((1, 2, 3), LARGE.symbol)], "twice at one shape"),
    ],
)
def test_a_wrong_table_is_a_fault(measured, fault):
    assert any(fault in found for found in faults_of(of_family(measured=measured)))


@pytest.mark.parametrize(
    "cost",
    [
        Cost(1, 0, (part(1, 1, "x"),)),
        Cost(1, 0, (part(1, 1),), memory_cycles="x"),
        Cost(1, 0, (part(1, 1),), first_cycles="x"),
    ],
)
def test_a_cost_of_what_is_no_extent_is_a_fault(cost):
    [variant] = SMALL.variants
    wrong = replace(SMALL, variants=(replace(variant, cost=cost),))
    assert any("names `x`" in found for found in faults_of(of_family(LARGE, wrong)))


# ---- the model -----------------------------------------------------------------------------------


def test_the_busiest_multiprocessor_decides():
    # 2048 x 2048 are 128 tiles of 128 x 256: one round. Of 64 x 64 there are 1024, so 8 on one.
    assert chosen(2048, 2048, 2048) == LARGE.symbol
    values = {"M": 2048, "N": 2048, "K": 2048}
    assert LARGE.variants[0].cost.cycles(128, values, 132) == 100 + 20 + 32 * 1138
    assert SMALL.variants[0].cost.cycles(1024, values, 132) == 100 + 8 * (20 + 32 * 256)


def test_few_programs_want_small_tiles():
    assert chosen(512, 512, 512) == SMALL.symbol
    assert chosen(64, 4096, 4096) == SMALL.symbol


def test_blocks_that_are_there_together_hide_what_one_waits_for():
    waiting = Cost(4, 0, (part(10, 40),))
    # All four are there and have one unit to share; the last one's waits are hidden by nobody.
    assert waiting.cycles(4, {}, 1) == 4 * 10 + 30
    assert waiting.cycles(8, {}, 1) == 8 * 10 + 30
    assert waiting.cycles(5, {}, 1) == 80  # the fifth comes after: twice one alone
    assert waiting.cycles(1, {}, 1) == 40
    assert Cost(4, 0, (part(30, 40),)).cycles(4, {}, 1) == 4 * 30 + 10
    assert Cost(4, 0, (part(30, 40),), 2).cycles(4, {}, 1) == 8 * 30 + 10  # two blocks a program
    assert Cost(1, 0, (part(30, 40),), 2).cycles(4, {}, 4) == 80


def test_clusters_of_four_leave_multiprocessors_over():
    # 128 of 132 would do, if these came in fours; eight in 132 are left over.
    assert Cost(1, 0, (part(10, 10),), cluster_blocks=4).cycles(128, {}, 132) == 20
    assert Cost(1, 0, (part(10, 10),), cluster_blocks=2).cycles(128, {}, 132) == 10


def test_memory_gives_all_programs_no_more_than_it_can():
    turn = part(10, 20, ("ceildiv", "K", 64))
    cost = Cost(1, 100, (part(5, 30), turn), memory_cycles=("mul", "K", 2))
    # Few programs wait for it, beside the 25 cycles of the last one that nothing hides.
    assert cost.cycles(1, {"K": 640}, 132) == 100 + 2 * 640 + 25
    # Many have enough to do.
    assert cost.cycles(132 * 10, {"K": 640}, 132) == 100 + 10 * (30 + 10 * 20)


def test_blocks_wait_together_for_what_nobody_read_before():
    cost = Cost(1, 100, (part(5, 30),), first_cycles=("mul", "K", 100))
    assert cost.cycles(4, {"K": 64}, 132) == 100 + 64 * 100 // 4 + 25
    assert cost.cycles(100, {"K": 64}, 132) == 100 + 64 * 100 // 100 + 25
    assert cost.cycles(1000, {"K": 64}, 10) == 100 + 100 * 30  # ten at one time: 640 each


def test_what_is_busy_in_one_part_is_free_in_another():
    products, epilogue = Part(4, 30, 10, 0, 0, 30), Part(1, 0, 80, 0, 5, 100)
    # Two at a time: tensor cores are busy for 4 * 30 a program, shared memory for 4 * 10 + 80.
    assert Cost(2, 0, (products, epilogue)).cycles(20, {}, 1) == 20 * 120
    # One at a time, a program takes 4 * 30 + 100.
    assert Cost(1, 0, (products, epilogue)).cycles(20, {}, 1) == 20 * 220


@given(SIZES, SIZES, SIZES)
def test_every_shape_has_one_member_and_always_the_same(m, n, k):
    told = of_family()
    first = chosen(m, n, k, told)
    assert first in told.families[0].members
    assert chosen(m, n, k, told) == first
    # In which order they are listed matters for nothing but ties.
    costs = [
        kernel.variants[0].cost.cycles(
            -(-m // kernel.parameters[0].block[0]) * -(-n // kernel.parameters[0].block[1]),
            {"M": m, "N": n, "K": k},
            132,
        )
        for kernel in told.kernels
    ]
    assert first == told.kernels[costs.index(min(costs))].symbol


def test_no_programs_are_a_choice_too():
    assert chosen(0, 512, 512) == LARGE.symbol


def test_without_costs_the_first_member_is_taken():
    [variant] = LARGE.variants
    unknown = replace(LARGE, variants=(replace(variant, cost=Cost()),))
    assert chosen(64, 64, 64, of_family(unknown, SMALL)) == LARGE.symbol


def test_a_choice_needs_a_device_where_there_is_one():
    told = of_family()
    with pytest.raises(NoDevice, match="member of a family"):
        Planner(told.kernels, families=told.families).plan(arguments(64, 64, 64))


# ---- members that do not fit ---------------------------------------------------------------------


def test_a_member_whose_requirement_does_not_hold_is_no_choice():
    asking = Requirement("K % 64 == 0", ("eq", ("rem", "K", 64), 0), 9)
    told = of_family(LARGE, replace(SMALL, requires=(asking,)))
    assert chosen(512, 512, 512, told) == SMALL.symbol
    assert chosen(512, 512, 500, told) == LARGE.symbol


def test_each_member_says_why_none_fits():
    asking = Requirement("K > 0", ("gt", "K", 0), 9)
    told = of_family(*(replace(kernel, requires=(asking,)) for kernel in (LARGE, SMALL)))
    with pytest.raises(ContractError, match="no instance of `matmul`") as caught:
        chosen(1, 1, 0, told)
    assert LARGE.symbol in str(caught.value) and SMALL.symbol in str(caught.value)


def test_a_member_is_judged_by_the_variant_that_shapes_allow():
    # The small one is the fast one in a variant that rows of 8 elements only have.
    slow = Variant(
        SMALL.symbol, 128, SMALL.variants[0].slots, cost=Cost(1, 0, (part(10**6, 10**6),))
    )
    quick = replace(
        SMALL.variants[0],
        symbol=f"{SMALL.symbol}__v16",
        preconditions=(_rows("b", 8),),
    )
    told = of_family(LARGE, replace(SMALL, variants=(quick, slow)))
    assert chosen(512, 512, 512, told) == SMALL.symbol
    assert chosen(512, 511, 512, told) == LARGE.symbol


def _rows(param, multiple):
    return Precondition(param, 1, 1, multiple)


def test_types_choose_the_family():
    half = product(64, 64, 256, "f16")
    told = replace(of_family(), kernels=(LARGE, SMALL, half))
    planner = Planner(told.kernels, Machine(), told.families)
    assert planner.plan(arguments(512, 512, 512, "f16")).kernel == half
    with pytest.raises(ContractError, match="expected elements of type"):
        planner.plan(arguments(512, 512, 512, "f32"))


# ---- what was measured ---------------------------------------------------------------------------


def test_what_was_measured_goes_before_the_model():
    told = of_family(measured=[((512, 512, 512), LARGE.symbol)])
    assert chosen(512, 512, 512, told) == LARGE.symbol
    assert chosen(512, 512, 513, told) == SMALL.symbol


def test_what_another_card_measured_does_not_count():
    told = of_family(measured=[((512, 512, 512), LARGE.symbol)], card="Another Card")
    assert chosen(512, 512, 512, told) == SMALL.symbol


def test_what_was_measured_and_does_not_fit_does_not_count():
    asking = Requirement("K > 512", ("gt", "K", 512), 9)
    picky = replace(LARGE, requires=(asking,))
    told = of_family(picky, SMALL, measured=[((512, 512, 512), LARGE.symbol)])
    assert chosen(512, 512, 512, told) == SMALL.symbol


# ---- launches ------------------------------------------------------------------------------------


def test_a_family_is_launched_by_name_by_types_and_by_member():
    driver = NotingDriver()
    loaded = module(driver, of_family())
    for name in ("matmul", "matmul__bf16"):
        loaded[name].launch(*arguments(512, 512, 512))
        assert driver.log[-1][1] == SMALL.symbol
    loaded.matmul(*arguments(4096, 4096, 4096))
    assert driver.log[-2][1] == LARGE.symbol
    loaded[LARGE.symbol].launch(*arguments(512, 512, 512))
    assert driver.log[-1][1] == LARGE.symbol


def test_an_instance_that_is_named_as_its_family_has_a_way_of_its_own():
    plain = replace(LARGE, symbol="matmul__bf16")
    driver = NotingDriver()
    loaded = module(driver, of_family(plain, SMALL))
    loaded["matmul__bf16"].launch(*arguments(512, 512, 512))
    assert driver.log[-1][1] == SMALL.symbol
    loaded.instance("matmul__bf16").launch(*arguments(512, 512, 512))
    assert driver.log[-1][1] == LARGE.variants[0].symbol
    with pytest.raises(KeyError, match="no instance `matmul`; it has `matmul__bf16`"):
        loaded.instance("matmul")


def test_a_choice_is_made_once_for_a_shape():
    driver = NotingDriver()
    launcher = module(driver, of_family(measured=[((1, 1, 1), LARGE.symbol)]))["matmul"]
    launcher.launch(*arguments(512, 512, 512))
    asked = [event for event in driver.log if event[0] in ("multiprocessors", "card")]
    for _ in range(3):
        launcher.launch(*arguments(512, 512, 512))
    assert [e for e in driver.log if e[0] in ("multiprocessors", "card")] == asked
    assert len(driver.cells) == 4


def test_an_unknown_family_is_named_with_those_there_are():
    with pytest.raises(KeyError, match="`matmul__bf16`"):
        module(NotingDriver(), of_family())["matmul__f32"]
