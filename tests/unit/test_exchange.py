"""Tensors that PyTorch tells C of are read in one call, and launched as those that Python reads."""

from __future__ import annotations

import gc
import weakref
from random import Random

import pytest
from exchanged import CPU, STREAM, Derived, Exchanged, Parameter, torch_of
from noting_driver import NotingDriver, arrays, module
from test_launching import BASE, f32_bits, of_runtime

import tilec.runtime as rt
from tilec.runtime import foreign, native
from tilec.runtime.array import Array
from tilec.runtime.launch import UNDER_WAY

pytestmark = pytest.mark.skipif(native.built() is None, reason="there was no C compiler")


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    monkeypatch.setattr(native, "_known_torch", None)
    monkeypatch.setattr(foreign, "_ask", None)
    monkeypatch.setitem(__import__("sys").modules, "torch", torch_of())


def of(array, kind=Exchanged):
    return kind(array.pointer, array.shape, array.strides, "torch.float32", array.device)


def silent(tensor):
    """Answers no question of Python's any more but whether it is negated."""

    def refuse(*_):
        raise AssertionError("it was asked by Python")

    for name in ("data_ptr", "stride", "is_contiguous", "get_device"):
        setattr(tensor, name, refuse)


def launched(kind=Exchanged):
    """`add` and its tensors, launched by Python and then by C."""
    driver = NotingDriver()
    add = module(driver).add
    given = [of(one, kind) for one in arrays()]
    for _ in range(2):
        add.launch(*given, 2.0)
    return driver, add, given


@pytest.mark.parametrize("kind", [Exchanged, Parameter])
def test_what_was_seen_before_is_read_in_one_call(kind):
    driver, add, given = launched(kind)
    for one in given:
        silent(one)
    before = [one.times_read for one in given]
    handle = add.launch(*given, 0.5)
    assert [one.times_read for one in given] == [times + 1 for times in before]
    assert driver.cells[-1] == [BASE, BASE + 2**20, BASE + 2**21, f32_bits(0.5), 1000]
    assert (handle.stream, handle.touched[2]) == (STREAM, True)
    assert add.launch(*given, 0.5, stream=STREAM).stream == STREAM


def test_derived_classes_are_asked_by_python():
    _, add, given = launched(Derived)
    assert [one.times_read for one in given] == [0, 0, 0]
    silent(given[1])
    with pytest.raises(AssertionError, match="asked by Python"):
        add.launch(*given, 2.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"is_negated": True}, "`x` is negated when it is read"),
        ({"shape": (999,)}, "`x`: expected extent 1000 of axis 0"),
        ({"strides": (2,)}, "`x`: expected stride 1 of the last axis, got 2"),
        ({"dtype": "torch.int8"}, "`x`: expected elements of type `f32`, got `i8`"),
        ({"device": 1}, "`x` is on device 1, `z` on device 0"),
        ({"address": 0}, "`x` has no memory"),
        ({"address": BASE}, "`z` is written and overlaps `x`"),
        ({"address": BASE + 2**20 + 2}, "`x`: expected an address that is a multiple of 4"),
        ({"is_cuda": False, "device_type": CPU}, "`x`: expected a tensor"),
    ],
)
def test_a_tensor_that_has_changed_is_looked_at_anew(change, said):
    driver, add, given = launched()
    count = len(driver.cells)
    before = dict(vars(given[1]))
    for _ in range(2):
        vars(given[1]).update(change)
        with pytest.raises(rt.ContractError, match=said):
            add.launch(*given, 2.0)
        assert len(driver.cells) == count
    vars(given[1]).clear()
    vars(given[1]).update(before)
    add.launch(*given, 2.0)
    assert len(driver.cells) == count + 1


def test_more_shapes_and_addresses_than_are_remembered_are_told_apart():
    driver, add, _ = launched()
    random = Random(5)
    for _ in range(400):
        extent = random.choice([1, 5, 64, 999, 1000, 1024, 4096])
        offset = random.choice(range(0, 2**14, 16))
        places = [BASE + i * 2**20 + offset for i in range(3)]
        given = [of(Array(place, "f32", (extent,), (1,), 0)) for place in places]
        given[1].begins_after = random.choice([0, 16])
        if random.random() < 0.3:
            given[2] = of_runtime(Array(places[2], "f32", (extent,), (1,), 0))
        add.launch(*given, 2.0)
        assert driver.cells[-1] == [*places, f32_bits(2.0), extent]


def test_where_a_tensor_cannot_be_read_so_python_asks_it():
    driver, add, given = launched()
    given[2].fails = True
    add.launch(*given, 2.0)
    assert driver.cells[-1][:3] == [BASE, BASE + 2**20, BASE + 2**21]


def test_without_a_version_that_is_known_python_asks(monkeypatch):
    later = type("Later", (Exchanged,), {"__dlpack_c_exchange_api__": object()})
    monkeypatch.setitem(__import__("sys").modules, "torch", torch_of(later))
    driver, _, given = launched(later)
    assert driver.cells[-1][:3] == [BASE, BASE + 2**20, BASE + 2**21]
    assert [one.times_read for one in given] == [0, 0, 0]


def test_a_tensor_of_the_runtime_that_was_seen_and_freed_is_refused():
    driver = NotingDriver()
    add = module(driver).add
    given = [of_runtime(one) for one in arrays()]
    for one in given:
        one._shared.buffer.close = lambda: None
    for _ in range(3):
        add(*given, 2.0)
    given[1].free()
    for _ in range(2):
        with pytest.raises(rt.TilecError, match="`x` was freed"):
            add.launch(*given, 2.0)


def test_tensors_that_were_seen_are_not_kept():
    driver, add, given = launched()
    for _ in range(200):
        add.launch(*given, 2.0)
    seen = [weakref.ref(one) for one in given]
    del given
    for _ in range(2):
        UNDER_WAY.settle()
        for event in driver.events:
            event.is_done = True
    gc.collect()
    assert [one() for one in seen] == [None] * 3
    assert len(driver.cells) == 202
