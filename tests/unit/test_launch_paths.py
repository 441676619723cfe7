"""C (hot_path.c) and Python (`Launcher._start`) launch alike: whatever is launched, in whatever
order, the same cells go to the same streams, or the same is refused, and the same is left."""

from __future__ import annotations

import gc
import sys
import threading
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from exchanged import CPU, Derived, Exchanged, torch_of
from exchanged import Parameter as Learned
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest_samples import add_kernel, copy_kernel
from noting_driver import NotingDriver
from test_launching import BASE, OfProtocol, TorchTensor

import tilec.runtime as rt
from tilec.artifact.abi import slots_of
from tilec.artifact.manifest import Kernel, Variant
from tilec.artifact.signature import Parameter, Requirement
from tilec.runtime import foreign, launch, native
from tilec.runtime.array import Array
from tilec.runtime.launcher import Launcher

pytestmark = pytest.mark.skipif(native.built() is None, reason="there was no C compiler")

TORCH_DTYPES = {"f32": "torch.float32", "i8": "torch.int8"}


def kernel(tensors, deciding):
    """A kernel of so many tensors, and numbers of which each decides whether it is launched."""
    numbers = [f"s{i}" for i in range(deciding)]
    parameters = (
        *(Parameter(f"t{i}", "tensor", "f32", ("N",), "shared") for i in range(tensors)),
        *(Parameter(one, "scalar", "i64") for one in numbers),
    )
    dims = ("N",) if tensors else ()
    symbol = f"k{tensors}_{deciding}"
    return Kernel(
        name=symbol,
        symbol=symbol,
        generics=(),
        documentation="",
        line=1,
        parameters=parameters,
        dims=dims,
        grid=(1,),
        requires=tuple(Requirement(f"{one} < 9", ("lt", one, 9), 1) for one in numbers),
        unsafe=(),
        accesses=(),
        coverage=(),
        variants=(Variant(symbol, threads=128, slots=slots_of(parameters, dims)),),
    )


class Subclass(rt.Tensor):
    """Is described, as whatever is no `Tensor` itself."""


class Refusing(TorchTensor):
    """A tensor of PyTorch that has no memory."""

    def data_ptr(self):
        raise RuntimeError("no memory")


class Interrupted(TorchTensor):
    @property
    def is_cuda(self):
        raise KeyboardInterrupt

    @is_cuda.setter
    def is_cuda(self, value):
        pass


class Answering(TorchTensor):
    def __repr__(self):
        return "a tensor"


def answering(**answers):
    """A tensor of PyTorch that gives, or raises, other answers than it should."""

    def make(array):
        tensor = of_torch(array, Answering)
        for name, answer in answers.items():
            setattr(tensor, name, answer if name in ("is_cuda", "dtype", "shape") else told(answer))
        return tensor

    def told(answer):
        def tell():
            if isinstance(answer, Exception):
                raise answer
            return answer

        return tell

    return make


class Whole(int):
    """An integer of the caller's own class."""


class Colour(IntEnum):
    RED = 3


class Unready:
    """Is neither true nor false."""

    def __bool__(self):
        raise ValueError("neither")


def of_runtime(array, kind=rt.Tensor):
    return kind(SimpleNamespace(handle=array.pointer, size=2**20, close=lambda: None), array)


def of_torch(array, kind=TorchTensor):
    dtype = TORCH_DTYPES[array.element]
    return kind(array.pointer, array.shape, array.strides, dtype, array.device)


def exchanged(array, kind=Exchanged, **changes):
    tensor = of_torch(array, kind)
    vars(tensor).update(changes)
    return tensor


MAKERS = {
    "runtime": of_runtime,
    "torch": of_torch,
    "array": lambda array: array,
    "array of NumPy's": lambda array: array._replace(pointer=np.int64(array.pointer)),
    "protocol": OfProtocol,
    "subclass": lambda array: of_runtime(array, Subclass),
    "refusing": lambda array: of_torch(array, Refusing),
    "interrupted": lambda array: of_torch(array, Interrupted),
    "negative": lambda array: array._replace(pointer=-16),
    "beyond": lambda array: array._replace(pointer=2**64 + array.pointer),
    "none": lambda array: None,
    "own integer": lambda array: array._replace(pointer=Whole(array.pointer)),
    "truth": lambda array: array._replace(pointer=True),
    "torch at an own integer": answering(data_ptr=Whole(BASE)),
    "torch at a number of NumPy's": answering(data_ptr=np.int64(BASE)),
    "torch at a fraction": answering(data_ptr=float(BASE)),
    "torch at text": answering(data_ptr="1024"),
    "torch at nothing": answering(data_ptr=None),
    "torch that fails": answering(data_ptr=ValueError("no")),
    "torch of no device": answering(get_device=-1),
    "torch of a far device": answering(get_device=2**70),
    "torch that cannot say where": answering(get_device=RuntimeError("no")),
    "torch that is neither": answering(is_cuda=Unready()),
    "torch that is not certain": answering(is_neg=Unready()),
    "torch of a list": answering(shape=[1000]),
    "torch of no type": answering(dtype=None),
    "torch of a list of types": answering(dtype=["torch.float32"]),
    "torch that is negated": answering(is_neg=True),
    "torch with strange strides": answering(is_contiguous=False, stride=[1]),
    "torch with strides that fail": answering(is_contiguous=False, stride=RuntimeError("no")),
    "type": lambda array: TorchTensor,
    "exchanged": lambda array: exchanged(array),
    "exchanged parameter": lambda array: exchanged(array, Learned),
    "exchanged behind others": lambda array: exchanged(array, begins_after=48),
    "exchanged of a derived class": lambda array: exchanged(array, Derived),
    "exchanged that fails": lambda array: exchanged(array, fails=True),
    "exchanged that is negated": lambda array: exchanged(array, is_negated=True),
    "exchanged on the host": lambda array: exchanged(array, is_cuda=False, device_type=CPU),
    "exchanged of another device": lambda array: exchanged(array, device=1),
}
SCALARS = [
    2.0, 0.0, -0.0, 1, 0, True, -1, 127, 128, 2**200, 1e39, float("nan"), float("inf"),
    np.float32(2.0), np.int8(3), np.bool_(True), Fraction(1, 2), "2", [2], None,
    Whole(3), Colour.RED, Decimal(2), 2j, np.float64(2.0), np.float16(2.0), np.uint64(2**63),
    np.array(2.0), np.array([2.0]), np.longdouble(2.0), b"2", -(2**63), 2**63, 65520.0, 1e-46,
]  # fmt: skip
STREAMS = [None, 0, 1, launch.PER_THREAD_STREAM, 7, Whole(7), True, "object", "other object"]
# Each with its number of tensors and of numbers.
KERNELS = [
    (add_kernel(), 3, 1),
    (copy_kernel(), 2, 1),
    *((kernel(*n), *n) for n in [(0, 0), (0, 1), (1, 16), (1, 17), (32, 1), (33, 0)]),
]

tensors = st.tuples(
    st.sampled_from(["runtime", "torch", "exchanged", "array"] * 8 + [*MAKERS]),
    st.sampled_from([0] * 8 + [16, 4, 2, 2**20]),
    st.sampled_from([1000] * 10 + [64, 0]),
    st.sampled_from([1] * 10 + [2]),
)
numbers = st.sampled_from([3] * 12 + [*range(len(SCALARS))])
# A few launches of one kernel that differ in their numbers; more of the kernels that do more.
launches = st.tuples(
    st.sampled_from([0, 0, 0, 0, 1, 1, *range(len(KERNELS))]),
    st.sampled_from([(0, 1, 2), (3, 4, 5), (5, 1, 1), (0, 2, 0)]),  # which tensors, over and over
    st.lists(st.lists(numbers, min_size=1, max_size=2), min_size=3, max_size=5),
    st.sampled_from([None, None, *STREAMS]),
    st.sampled_from([False, False, True]),
).map(lambda one: [("launch", *one[:2], numbers, *one[3:]) for numbers in one[2]])
others = st.sampled_from(["settle", "done", "forget", "free", "collect often"])
steps = st.lists(
    st.one_of(launches, launches, others.map(lambda one: [(one,)])), min_size=4, max_size=8
)


class Run:
    """Steps on one of the two ways."""

    def __init__(self, described):
        self.driver = NotingDriver()
        self.forgot = False
        loaded = SimpleNamespace(driver=lambda: self.driver, code=lambda: "code")
        self.launchers = [Launcher(loaded, [one]) for one, _, _ in KERNELS]
        self.streams = {"object": SimpleNamespace(address=7), "other object": stream(8)}
        self.tensors = [
            MAKERS[kind](self.array(number, *facts)) for number, (kind, *facts) in described
        ]

    @staticmethod
    def array(number, offset, extent, stride):
        return Array(BASE + number * 2**20 + offset, "f32", (extent,), (stride,), 0)

    def arguments(self, which, tensors, numbers):
        _, tensor_count, number_count = KERNELS[which]
        given = [self.tensors[tensors[i % 3]] for i in range(tensor_count)]
        if which == 1:  # `copy` has other tensors
            given = [of_torch(Array(BASE + i * 2**20, "i8", (6, 64), (64, 1), 0)) for i in range(2)]
        return [*given, *(SCALARS[numbers[i % len(numbers)]] for i in range(number_count))]

    def launch(self, which, tensors, numbers, on, order):
        given = self.arguments(which, tensors, numbers)
        handle = self.launchers[which].launch(*given, stream=self.streams.get(on, on), order=order)
        what, addresses, is_foreign = handle.touched
        told = what.label, tuple(addresses), is_foreign
        return handle.entry.variant.symbol, handle.stream, handle.is_over, told

    def settle(self):
        launch.UNDER_WAY.settle()

    def done(self):
        for event in self.driver.events:
            event.is_done = True

    def forget(self):
        self.forgot = True
        for one in self.launchers:
            one._planner.known.clear()

    def free(self):
        next(one for one in self.tensors if isinstance(one, rt.Tensor)).free()

    def step(self, name, *told):
        if name == "collect often":
            gc.set_threshold(1, 10**6)  # more would collect what pytest has, too
            return None
        return getattr(self, name)(*told)

    def left(self):
        held = launch.UNDER_WAY
        frames = [
            [len(entry.frames) for entry in fitted.entries.values()]
            for launcher in self.launchers
            for fitted in launcher._planner.known.values()
        ]
        if self.forgot:  # C goes on with what it has seen
            frames = None
        under_way = [(one.label, one.stream) for one in held.borrowers()]
        return self.driver.log, self.driver.cells, frames, held.only, held._room, under_way


def stream(address):
    return SimpleNamespace(address=address)


def outcomes(described, steps, is_quick, built):
    """What became of each step, and what was left after all. A quick GPU is done at once."""
    threshold = gc.get_threshold()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_BUILT", built)
        patch.setattr(native, "_known_torch", None)
        patch.setattr(foreign, "_ask", None)
        patch.setitem(sys.modules, "torch", torch_of())
        for name in ("launch", "launcher", "tensor"):
            patch.setattr(f"tilec.runtime.{name}.UNDER_WAY", launch.UNDER_WAY)
        launch.UNDER_WAY.__init__()
        run = Run(list(enumerate(described)))
        seen = []
        try:
            for step in steps:
                try:
                    seen.append(run.step(*step))
                    if is_quick:
                        run.done()
                        run.settle()
                except (Exception, KeyboardInterrupt, StopIteration) as error:
                    seen.append((type(error), str(error)))
        finally:
            gc.set_threshold(*threshold)
        return seen, run.left()


@settings(max_examples=300, deadline=None)
@given(st.lists(tensors, min_size=6, max_size=6), steps, st.booleans())
def test_both_launch_alike(described, groups, is_quick):
    steps = [step for group in groups for step in group]
    by_c = outcomes(described, steps, is_quick, native.built())
    assert by_c == outcomes(described, steps, is_quick, None)


class MeddlingNumber(float):
    """Runs code of the caller's whenever it is looked up."""

    def __new__(cls, value, meddle):
        number = super().__new__(cls, value)
        number.meddle = meddle
        return number

    def __hash__(self):
        self.meddle()
        return super().__hash__()

    def __eq__(self, other):
        self.meddle()
        return float(self) == float(other)


class MeddlingTensor(TorchTensor):
    """The same when it is asked for its shape or its memory."""

    def __init__(self, *facts, meddle):
        super().__init__(*facts)
        self.meddle = meddle

    def is_contiguous(self):
        self.meddle()
        return super().is_contiguous()

    def data_ptr(self):
        self.meddle()
        return super().data_ptr()


@pytest.fixture
def launched(monkeypatch):
    for name in ("launch", "launcher"):
        monkeypatch.setattr(f"tilec.runtime.{name}.UNDER_WAY", launch.UNDER_WAY)
    driver = NotingDriver()
    module = SimpleNamespace(driver=lambda: driver, code=lambda: "code")
    return driver, Launcher(module, [add_kernel()])


def tensors_at(offset, make=of_torch):
    return [make(Run.array(i, offset, 1000, 1)) for i in range(3)]


def bits_of(number):
    return int(np.float32(number).view(np.uint32))


def cells_at(offset, scale):
    return [BASE + offset, BASE + 2**20 + offset, BASE + 2**21 + offset, bits_of(scale), 1000]


def test_arguments_may_run_code_of_the_callers(launched):
    """It launches the same kernel, forgets what is known of it, and collects garbage."""
    driver, add = launched
    depth = 0

    def meddle():
        nonlocal depth
        if depth:
            return
        depth = 1
        add.launch(*tensors_at(16), 3.0)
        for fitted in add._planner.known.values():
            fitted.entries.clear()
        add._planner.known.clear()
        gc.collect(0)
        depth = 0

    z, x, _ = tensors_at(0)
    y = MeddlingTensor(BASE + 2**21, meddle=meddle)
    for scale in (2.0, MeddlingNumber(0.5, meddle), MeddlingNumber(0.5, meddle), 7):
        for third in (y, of_torch(Run.array(2, 0, 1000, 1))):
            add.launch(z, x, third, scale)
            assert driver.cells[-1] == cells_at(0, float(scale))
    assert cells_at(16, 3.0) in driver.cells


def test_a_number_that_is_refused_costs_no_new_frame(launched):
    driver, add = launched
    made = 0
    prepared = driver.prepared

    def counting(*told):
        nonlocal made
        made += 1
        return prepared(*told)

    driver.prepared = counting
    given = tensors_at(0)
    add.launch(*given, 2.0)
    with pytest.raises(rt.ContractError):
        add.launch(*given, "2")
    assert made == 1


@pytest.mark.parametrize("stream", [-1, 2**64, 2**200, "7", None])
def test_a_function_of_a_frame_takes_addresses_of_streams_only(launched, stream):
    driver, add = launched
    add.launch(*tensors_at(0), 2.0)
    [(_, start)] = next(iter(next(iter(add._planner.known.values())).entries.values())).frames
    with pytest.raises((OverflowError, TypeError)):
        start(stream)
    assert len(driver.cells) == 1


@pytest.mark.parametrize("wrong", [(-1,), (4,), ("0",)])
def test_it_asks_for_no_argument_that_there_is_not(wrong):
    parts = {
        "count": 4, "tensor_at": (0,), "deciding_at": (3,), "several": False, "known": {},
        "driver": None, "under_way": None, "launch": None, "tensor": None, "array": None,
        "current_stream": None,
    }  # fmt: skip
    for name in ("tensor_at", "deciding_at"):
        with pytest.raises((IndexError, TypeError)):
            native.built().HotPath(**{**parts, name: wrong})


def test_many_threads_launch_one_kernel(launched):
    """While another one forgets what is known, and takes another stream for the only one."""
    driver, add = launched
    add.launch(*tensors_at(0), 0.0)
    stop = threading.Event()

    def meddle():
        while not stop.is_set():
            add._planner.known.clear()
            launch.UNDER_WAY.only = None
            for event in list(driver.events):
                event.is_done = True

    def work(number):
        given = tensors_at(16 * number, (of_torch, of_runtime)[number % 2])
        for _ in range(20):
            add.launch(*given, float(number))

    driver.cells.clear()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    meddler = threading.Thread(target=meddle)
    for one in (meddler, *threads):
        one.start()
    for one in threads:
        one.join()
    stop.set()
    meddler.join()
    expected = [cells_at(16 * number, number) for number in range(16)]
    assert sorted(driver.cells) == sorted(expected * 20)
