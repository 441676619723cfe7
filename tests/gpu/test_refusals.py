"""Broken contracts, and first calls from many threads, in every language that launches.

Each call that is refused names the argument, and no byte of any tensor is another one afterwards:
guards, gaps, and what would have been written.
"""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest
from host_driver import DRY_RUN
from test_rust import LIBRARIES, FromRust

import tilec.runtime as rt
from tests.emit.calling import Functions
from tilec.runtime.array import Array

pytestmark = pytest.mark.skipif(DRY_RUN, reason="headers and Rust launch by the driver itself")

LANGUAGES = ("python", "c", "rust")
THREADS = 16
# A kernel's file, its instance, and the shapes of its tensors.
CALLED = (
    ("add", "add__f32_1024", ((1000,), (1000,), (1000,))),
    ("softmax", "softmax__f32_4_256", ((12, 200), (12, 200))),
    ("matmul", "matmul__bf16_128_128_64", ((130, 72), (130, 40), (40, 72))),
)


class FromPython:
    """The launchers of `tilec.runtime`, which say what is wrong as those of other languages do."""

    def __init__(self, module):
        self._module = rt.load(module.cubin)  # nothing of it is loaded on a device yet

    def refusal(self, symbol, arguments):
        try:
            self._module.instance(symbol)(*arguments)
        except rt.ContractError as error:
            return str(error)
        return ""


class FromLibrary:
    def __init__(self, functions):
        self._functions = functions

    def refusal(self, symbol, arguments):
        return self._functions.call(symbol, arguments).message


@pytest.fixture(params=LANGUAGES)
def language(request, tmp_path):
    """Opens a module in a language, as if nobody had before."""

    def opened(module):
        if request.param == "python":
            return FromPython(module)
        if request.param == "c":
            return FromLibrary(Functions([module.manifest], tmp_path / "c", module.cubin))
        name = module.manifest.source.file.rpartition("/")[2].removesuffix(".tile")
        built = LIBRARIES / f"{name}.{module.manifest.target}.so"
        if not built.exists():
            pytest.skip(f"{built.name} was not built: there was no rustc")
        # A copy has machine code, and state, of its own.
        return FromLibrary(FromRust(module, shutil.copy(built, tmp_path / built.name)))

    return opened


def placed(zones, kernel, shapes):
    """The arguments of a call that is right, as their arrays."""
    return [
        (
            zones.output(shape, parameter.element, name=parameter.name)
            if parameter.is_written
            else zones.input(np.ones(shape), parameter.element, name=parameter.name)
        ).array
        for parameter, shape in zip(kernel.parameters, shapes, strict=True)
    ]


def breaches(array, others, is_written):
    """Ways to break the contract by one tensor of a call, each with what is done."""
    *outer, last = array.shape
    *outer_strides, _ = array.strides
    other = "i32" if array.element != "i32" else "f32"
    yield "another type", array._replace(element=other)
    yield "an axis more", array._replace(shape=(*array.shape, 1), strides=(*array.strides, 1))
    yield "an axis less", array._replace(shape=array.shape[1:], strides=array.strides[1:])
    yield "a shorter axis", array._replace(shape=(*outer, last - 1))
    yield "a negative extent", array._replace(shape=(*outer, -1))
    yield "an extent above the limit", array._replace(shape=(*outer, 2**40 + 1))
    yield "elements apart", array._replace(strides=(*outer_strides, 2))
    yield "elements backwards", array._replace(strides=(*outer_strides, -1))
    yield "no address", array._replace(pointer=0)
    yield "an odd address", array._replace(pointer=array.pointer + 1)
    yield "another device", array._replace(device=array.device + 1)
    if outer:
        yield "rows backwards", array._replace(strides=(-last, 1))
    if is_written and outer:
        yield "all rows at one place", array._replace(strides=(0, 1))
        yield "rows that overlap", array._replace(strides=(last - 1, 1))
    if is_written:
        for one in others:
            yield "what is read", array._replace(pointer=one.pointer)
            yield (
                "the end of what is read",
                array._replace(pointer=one.pointer + one.span_bytes - 4),
            )


@pytest.mark.parametrize(("file", "symbol", "shapes"), CALLED)
def test_a_broken_contract_is_refused_and_nothing_is_touched(
    load, language, zones, count, file, symbol, shapes
):
    module = load(file)
    [kernel] = [one for one in module.manifest.kernels if one.symbol == symbol]
    called = language(module)
    right = placed(zones, kernel, shapes)
    unwritten = [zone.memory.bits() for zone in zones._zones]
    tried = 0
    for index, parameter in enumerate(kernel.parameters):
        others = [one for i, one in enumerate(right) if i != index]
        for what, array in breaches(right[index], others, parameter.is_written):
            said = called.refusal(symbol, [*right[:index], array, *right[index + 1 :]])
            assert f"`{parameter.name}`" in said, (parameter.name, what, said)
            tried += 1
    for zone, before in zip(zones._zones, unwritten, strict=True):
        np.testing.assert_array_equal(zone.memory.bits(), before)
    assert called.refusal(symbol, right) == ""
    count("broken contracts refused", tried)


def test_there_are_enough_of_them():
    array = Array(2**20, "f32", (4, 4), (4, 1), 0)
    one = [what for what, _ in breaches(array, [array, array], True)]
    assert len(one) + 2 * len(list(breaches(array, [], False))) >= 40


def test_first_calls_from_many_threads(load, language, zones):
    """All of them launch, the first call of each being the first of its language in all."""
    module = load("add")
    called = language(module)
    x = np.arange(1000) % 128.0
    pairs = []
    for number in range(THREADS):
        z = zones.output((1000,), "f32")
        pairs.append(
            (z, [z.array, zones.input(x, "f32").array, zones.input(x * number, "f32").array])
        )
    together = threading.Barrier(THREADS)
    said = [None] * THREADS

    def call(number):
        together.wait()
        said[number] = called.refusal("add__f32_1024", pairs[number][1])

    threads = [threading.Thread(target=call, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [""] * THREADS
    for number, (z, _) in enumerate(pairs):
        np.testing.assert_array_equal(zones.values(z), x + x * number)
