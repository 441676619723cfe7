"""Every broken contract is refused: by its status, with the argument's name, unlaunched."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from tests.emit.calling import CHECK, LAUNCH, PLAN
from tests.emit.launching import Headers
from tests.emit.statuses import STATUS
from tests.unit.manifest_samples import add_kernel, manifest
from tilec.runtime.array import Array, contiguous_strides

BASE = 2**40
LIMIT = 2**40
FAR = (2**63 - 64) // 5  # the largest stride of six rows of 64 bytes


def dense(place, element, *shape, **changes):
    return Array(BASE * place, element, shape, contiguous_strides(shape), 0)._replace(**changes)


def added(**changes):
    """Arguments of `add__f32_1024`: z, x, y: [N], scale."""
    given = {name: dense(i, "f32", 1000) for i, name in enumerate("zxy", 1)}
    given["scale"] = 2.0
    return "add__f32_1024", _changed(given, changes)


def copied(**changes):
    """Arguments of `copy`: target, source: [M, 64] of i8, where M is even; count."""
    given = {"target": dense(1, "i8", 6, 64), "source": dense(2, "i8", 6, 64), "count": 3}
    return "copy", _changed(given, changes)


def multiplied(**changes):
    """Arguments of `matmul`: c: [M, N], a: [M, K], b: [K, N] of bf16."""
    given = {
        "c": dense(1, "bf16", 32, 64),
        "a": dense(2, "bf16", 32, 16),
        "b": dense(3, "bf16", 16, 64),
    }
    return "matmul", _changed(given, changes)


def scalars(**changes):
    """Arguments of `scalars`: a tensor, and a scalar of each type."""
    given = {"int": dense(1, "u8", 4, 2, 3, 5), "bool": False}
    given |= dict.fromkeys(("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize"), 1)
    given |= dict.fromkeys(("f16", "bf16", "f32", "f64"), 0.5)
    return "scalars", _changed(given, changes)


def persistent(**changes):
    return "persistent", multiplied(**changes)[1]


def _changed(given, changes):
    for name, change in changes.items():
        given[name] = given[name]._replace(**change) if isinstance(change, dict) else change
    return list(given.values())


def shape(*extents, **changes):
    return {"shape": extents, "strides": contiguous_strides(extents), **changes}


# (arguments, status, what the message says, the argument's name in it)
BROKEN = [
    (added(z=None), "NULL", "`z` is a null pointer"),
    (added(x=None), "NULL", "`x` is a null pointer"),
    (multiplied(b=None), "NULL", "`b` is a null pointer"),
    (added(x={"element": "f16"}), "DTYPE", "`x`: expected elements of type `f32`, got `f16`"),
    (added(z={"element": "i32"}), "DTYPE", "`z`: expected elements of type `f32`, got `i32`"),
    (copied(source={"element": "u8"}), "DTYPE", "`source`: expected elements of type `i8`"),
    (copied(source={"element": "none"}), "DTYPE", "`source`: expected elements of type `i8`"),
    (added(y=shape(10, 100)), "RANK", "`y`: expected 1 axes, got 2 (shape (10, 100))"),
    (added(y=shape()), "RANK", "`y`: expected 1 axes, got 0 (shape ())"),
    (copied(target=shape(384)), "RANK", "`target`: expected 2 axes, got 1 (shape (384,))"),
    (copied(target=shape(*[2] * 12)), "RANK", "`target`: expected 2 axes, got 12"),
    (copied(source=shape(6, 63)), "EXTENT", "`source`: expected extent 64 of axis 1, got 63"),
    (copied(source=shape(4, 64)), "EXTENT", "`source`: expected extent 6 of axis 0 (`M`"),
    (added(y=shape(999)), "EXTENT", "`y`: expected extent 1000 of axis 0 (`N`, as axis 0 of `z`)"),
    (added(x=shape(0)), "EXTENT", "`x`: expected extent 1000 of axis 0"),
    (added(z=shape(-1)), "LIMIT", "`z`: extent -1 of axis 0 is negative"),
    (added(x=shape(LIMIT + 1)), "LIMIT", f"`x`: extent {LIMIT + 1} of axis 0 is above the limit"),
    (copied(target=shape(2**62, 64)), "LIMIT", "`target`: extent"),
    (scalars(int=shape(LIMIT, 2**30, 1, 1)), "LIMIT", "`int`: shape"),
    (added(x={"strides": (2,)}), "STRIDE", "`x`: expected stride 1 of the last axis, got 2"),
    (added(z={"strides": (-1,)}), "STRIDE", "`z`: stride -1 of axis 0 is negative"),
    (copied(source={"strides": (-64, 1)}), "STRIDE", "`source`: stride -64 of axis 0"),
    (
        copied(source={"strides": (FAR + 1, 1)}),
        "STRIDE",
        f"`source`: strides ({FAR + 1}, 1) spread the elements of shape (6, 64) over "
        f"{5 * (FAR + 1) + 64} bytes, above the limit of 9223372036854775808",
    ),
    (copied(target={"strides": (2**63 - 1, 1)}), "STRIDE", "`target`: strides (922337203685477580"),
    (multiplied(a={"strides": (2**61, 1)}), "NO_INSTANCE", "`a`: strides (2305843009213693952, 1)"),
    (copied(target={"strides": (63, 1)}), "SELF_OVERLAP", "`target` is written"),
    (copied(target={"strides": (0, 1)}), "SELF_OVERLAP", "its strides (0, 1) put several"),
    (multiplied(c={"strides": (32, 1)}), "NO_INSTANCE", "`c` is written, and its strides (32, 1)"),
    (added(y={"device": 1}), "DEVICE", "`y` is on device 1, `z` on device 0"),
    (copied(target={"device": 1}), "DEVICE", "`source` is on device 0, `target` on device 1"),
    (scalars(usize=-1), "SCALAR", "`usize_`: expected a number of type `usize` (0 to 9223372"),
    (scalars(f16=65520.0), "SCALAR", "`f16_`: 65520.0 is out of the range of `f16`"),
    (scalars(f16=-1e6), "SCALAR", "`f16_`: -1000000.0 is out of the range of `f16`"),
    (scalars(bf16=3.4e38), "SCALAR", "is out of the range of `bf16`"),
    (scalars(u8=255), "REQUIRES", "`requires!(u8_ as usize <= A + 250)` (here `u8_ <= A + 250`)"),
    (scalars(u8=255), "REQUIRES", "does not hold, where u8_ = 255, A = 4"),
    (scalars(f32=100.5), "REQUIRES", "`requires!(f32_ < 100.5)` does not hold, where f32_ = 100.5"),
    (
        scalars(f32=-float("nan")),
        "REQUIRES",
        "`requires!(f32_ < 100.5)` does not hold, where f32_ = nan",
    ),
    (scalars(f32=float("inf")), "REQUIRES", "does not hold, where f32_ = inf"),
    (scalars(bool=True, i8=0), "REQUIRES", "where bool_ = True, A = 4, i8_ = 0"),
    (scalars(f16=1000.0), "REQUIRES", "where f16_ = 1000.0, bf16_ = 0.5"),
    (copied(**dict.fromkeys(("target", "source"), shape(5, 64))), "REQUIRES", "M = 5"),
    (copied(count=-1), "GRID", "grid extent 1, `count`, is -1, where count = -1"),
    (copied(**dict.fromkeys(("target", "source"), shape(2**40, 64))), "GRID", "above the limit"),
    (added(z={"pointer": 0}), "ADDRESS", "`z` has no memory: its address is 0"),
    (added(x={"pointer": 0}), "ADDRESS", "`x` has no memory: its address is 0"),
    (added(x={"pointer": BASE + 2}), "ADDRESS", "`x`: expected an address that is a multiple of 4"),
    (
        added(x={"pointer": 2**64 - 3996}),
        "ADDRESS",
        "`x`: 4000 bytes from address 0xfffffffffffff064 on pass the end of the address space",
    ),
    (added(z={"pointer": 2**64 - 4}), "ADDRESS", "`z`: 4000 bytes from address 0xfffffffffffffffc"),
    (multiplied(a={"pointer": BASE + 1}), "ADDRESS", "`a`: expected an address that is a multiple"),
    (added(x={"pointer": BASE}), "OVERLAP", "`z` is written and overlaps `x`"),
    (added(y={"pointer": BASE + 3996}), "OVERLAP", "`z` is written and overlaps `y`"),
    (added(z={"pointer": 2 * BASE - 3996}), "OVERLAP", "`z` is written and overlaps `x`"),
    (
        copied(source={"pointer": BASE + 320}),
        "OVERLAP",
        "`target` is written and overlaps `source`",
    ),
    (copied(source={"pointer": BASE + 383}), "OVERLAP", "bytes 0x10000000000 to 0x10000000180"),
    (
        copied(target={"strides": (128, 1)}, source={"strides": (128, 1), "pointer": BASE + 1}),
        "OVERLAP",
        "`target` is written and overlaps `source`",
    ),
    (persistent(c={"pointer": BASE, "device": 3}), "DEVICE", "`c` on device 3"),
]


@pytest.mark.parametrize("call, status, said", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_contract_is_refused_by_name_and_nothing_is_launched(call, status, said, headers):
    name, arguments = call
    for what in (LAUNCH, CHECK, PLAN):
        outcome = headers.call(name, arguments, what)
        assert said in outcome.message
        assert outcome.status == STATUS[f"TILEC_ERROR_{status}"]
    assert headers.fake.launches == 0


def test_there_are_cases_enough():
    assert len(BROKEN) >= 40


@pytest.mark.parametrize("call", [added(), copied(), multiplied(), scalars(), persistent()])
def test_what_was_changed_was_right_before(call, headers):
    for what in (CHECK, PLAN, LAUNCH):
        assert headers.call(*call, what).message == ""
    assert headers.fake.launches == 1


def test_rows_that_interleave_do_not_overlap(headers):
    name, arguments = copied(
        target={"strides": (128, 1)}, source={"strides": (128, 1), "pointer": BASE + 64}
    )
    assert headers.call(name, arguments).message == ""


@pytest.mark.parametrize(
    "call",
    [
        copied(source={"strides": (FAR, 1)}),
        copied(target={"strides": (FAR, 1)}, source={"strides": (FAR, 1), "pointer": BASE + 64}),
        added(x={"pointer": 2**64 - 4000}),
        added(z={"pointer": 2**64 - 4000}),
        # Along an axis of one element there is nothing to step to, nor without elements.
        multiplied(c={"shape": (1, 64), "strides": (2**63 - 1, 1)}, a=shape(1, 16)),
        multiplied(c=shape(0, 64, pointer=2**64 - 2), a=shape(0, 16, strides=(2**63 - 1, 1))),
    ],
)
def test_tensors_reach_to_the_end_of_the_address_space(call, headers):
    for what in (CHECK, PLAN, LAUNCH):
        assert headers.call(*call, what).message == ""


def test_no_variant_left_says_what_each_asks_for(tools):
    kernel = add_kernel()
    only = Headers([manifest(replace(kernel, variants=kernel.variants[:1]))], tools / "one", tools)
    assert only.use_driver() == 0
    _, arguments = added(x={"pointer": BASE * 2 + 4})
    outcome = only.call("add", arguments)
    assert outcome.status == STATUS["TILEC_ERROR_NO_VARIANT"]
    assert "`add__f32_1024__v16` asks for `z` at a multiple of 16 bytes" in outcome.message
    assert only.fake.launches == 0


@pytest.mark.parametrize(
    "call",
    [
        added(**dict.fromkeys("zxy", shape(0, pointer=0))),
        multiplied(c=shape(0, 64, pointer=0), a=shape(0, 16, pointer=0)),
        scalars(int=shape(4, 0, 3, 5, pointer=0)),
    ],
)
def test_nothing_to_do_is_a_success_that_needs_no_driver(call, fresh):
    assert fresh.library.shim_set_driver(ctypes.CDLL(None)._handle) != 0
    for what in (CHECK, PLAN, LAUNCH):
        outcome = fresh.call(*call, what)
        assert (outcome.message, list(outcome.plan.grid)) == ("", [0, 0, 0])
    assert fresh.fake.launches == fresh.fake.loads == 0
