"""What each launch still checks once shapes are known, which stream it takes, what stays alive."""

from __future__ import annotations

import gc
import struct
import threading
import weakref
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from manifest_samples import add_kernel, copy_kernel
from noting_driver import NotingDriver, arrays, module, module_of, started_by_c
from pipeline_samples import with_pipelines

import tilec.runtime as rt
from tilec.artifact.abi import slots_of
from tilec.artifact.manifest import Variant
from tilec.artifact.signature import Parameter, Requirement
from tilec.runtime import foreign, launch, native
from tilec.runtime.array import Array, contiguous_strides

pytestmark = pytest.mark.usefixtures("launch_path")

BASE = 2**40


class TorchTensor:
    """Answers as a tensor of PyTorch does; its dtypes print as PyTorch's do."""

    def __init__(self, address, shape=(1000,), strides=(1,), dtype="torch.float32", device=0):
        self.address, self.shape, self.strides = address, shape, strides
        self.dtype, self.device = dtype, device
        self.is_cuda = True

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.strides

    def is_contiguous(self):
        return self.strides == contiguous_strides(self.shape)

    def is_neg(self):
        return False

    def get_device(self):
        return self.device


def of_torch(array):
    return TorchTensor(array.pointer, array.shape, array.strides)


def of_runtime(array):
    memory = SimpleNamespace(handle=array.pointer, size=2**20)
    return rt.Tensor(memory, array)


class OfProtocol:
    """A tensor of another library, which the driver imports."""

    def __init__(self, array):
        self.exported = array


KINDS = pytest.mark.parametrize("kind", [of_torch, of_runtime, OfProtocol])


@pytest.fixture(autouse=True)
def nothing_under_way(monkeypatch):
    monkeypatch.setattr(launch, "UNDER_WAY", launch.UnderWay())
    for name in ("launcher", "pipeline", "tensor"):
        monkeypatch.setattr(f"tilec.runtime.{name}.UNDER_WAY", launch.UNDER_WAY)


@pytest.fixture
def torch_streams(monkeypatch):
    """PyTorch's current stream of each device."""
    streams = {0: 0}
    torch = SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream=streams.__getitem__))
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    monkeypatch.setattr(foreign, "_ask", None)
    return streams


def f32_bits(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


# What is checked at each launch


@KINDS
def test_known_shapes_are_launched_with_the_arguments_of_each_launch(kind):
    driver = NotingDriver()
    add = module(driver).add
    for offset, scale in [(0, 2.0), (16, -0.5), (32, 0.0), (48, -0.0), (64, 0.0)]:
        moved = [kind(a._replace(pointer=a.pointer + offset)) for a in arrays()]
        add.launch(*moved, scale)
        z = BASE + offset
        assert driver.cells[-1] == [z, z + 2**20, z + 2**21, f32_bits(scale), 1000]


@KINDS
def test_known_shapes_are_still_refused_where_addresses_break_the_contract(kind):
    driver = NotingDriver()
    add = module(driver).add
    z, x, y = arrays()
    add(kind(z), kind(x), kind(y), 2.0)
    launches = len(driver.cells)
    for wrong, message in [
        ([z, z, y], "`z` is written and overlaps `x`"),
        ([z, x, z._replace(pointer=z.pointer + 3996)], "`z` is written and overlaps `y`"),
        ([z, x, y._replace(pointer=y.pointer + 2)], "`y`: expected an address that is a multiple"),
        ([z, x._replace(pointer=0), y], "`x` has no memory"),
        ([z, x._replace(pointer=2**64 - 3996), y], "`x`: 4000 bytes from address 0xfffffffffffff0"),
    ]:
        for _ in range(2):
            with pytest.raises(rt.ContractError, match=f"`add__f32_1024`: {message}"):
                add(*map(kind, wrong), 2.0)
    assert len(driver.cells) == launches
    add(kind(z), kind(x), kind(x), 2.0)  # reading one tensor twice is fine
    add(kind(z), kind(x._replace(pointer=2**64 - 4000)), kind(y), 2.0)  # to the last byte
    assert len(driver.cells) == launches + 2


@KINDS
def test_alignment_chooses_the_variant_at_each_launch(kind):
    driver = NotingDriver()
    add = module(driver).add
    z, x, y = arrays()
    for offset, suffix in [(0, "__v16"), (4, ""), (4, ""), (0, "__v16"), (32, "__v16")]:
        add(kind(z), kind(x._replace(pointer=x.pointer + offset)), kind(y), 2.0)
        assert driver.log[-2][1] == f"add__f32_1024{suffix}"


@KINDS
def test_interleaved_slices_are_told_from_overlapping_ones_at_each_launch(kind):
    driver = NotingDriver()
    copy = module(driver).copy
    target = Array(BASE, "i8", (6, 64), (192, 1), 0)

    def source(offset):
        array = Array(BASE + offset, "i8", (6, 64), (192, 1), 0)
        tensor = kind(array)
        if kind is of_torch:
            tensor.dtype = "torch.int8"
        return tensor

    into = kind(target)
    if kind is of_torch:
        into.dtype = "torch.int8"
    for offset in (64, 128, 64):
        copy(into, source(offset), 1)
    for offset in (63, 32, 1, 129):
        with pytest.raises(rt.ContractError, match="overlaps"):
            copy(into, source(offset), 1)


@KINDS
def test_other_shapes_strides_and_types_are_looked_at_anew(kind):
    driver = NotingDriver()
    add = module(driver).add
    z, x, y = arrays()
    add(kind(z), kind(x), kind(y), 2.0)
    for wrong, message in [
        (y._replace(shape=(999,)), "`y`: expected extent 1000"),
        (y._replace(shape=(1000, 1), strides=(1, 1)), "`y`: expected 1 axes"),
        (y._replace(strides=(2,)), "`y`: expected stride 1"),
    ]:
        with pytest.raises(rt.ContractError, match=message):
            add(kind(z), kind(x), kind(wrong), 2.0)
    add(*[kind(a) for a in arrays(5000)], 2.0)
    assert driver.log[-2][2] == (5, 1, 1) and driver.cells[-1][-1] == 5000


def test_a_tensor_of_another_dtype_or_device_is_looked_at_anew():
    add = module(NotingDriver()).add
    z, x, y = map(of_torch, arrays())
    add(z, x, y, 2.0)
    y.dtype = "torch.float16"
    with pytest.raises(rt.ContractError, match="`y`: expected elements of type `f32`, got `f16`"):
        add(z, x, y, 2.0)
    y.dtype = "torch.complex64"
    with pytest.raises(rt.ContractError, match="`y`: no element type of kernels"):
        add(z, x, y, 2.0)
    y.dtype, y.device = "torch.float32", 1
    with pytest.raises(rt.ContractError, match="`y` is on device 1"):
        add(z, x, y, 2.0)


def test_scalars_are_checked_at_each_launch():
    driver = NotingDriver()
    loaded = module(driver)
    for _ in range(2):
        loaded.add(*arrays(), 1)
        assert driver.cells[-1][3] == f32_bits(1.0)
        for wrong in (True, "2", [2.0], None, 1e39):
            with pytest.raises(rt.ContractError, match="`add__f32_1024`: `scale`"):
                loaded.add(*arrays(), wrong)
    target, source = (Array(BASE * i, "i8", (4, 64), (64, 1), 0) for i in (1, 2))
    for count in (3, 5, 3, 100):
        loaded.copy(target, source, count)
        assert driver.log[-2][2] == (count, 2, 1)
        assert driver.cells[-1][-2:] == [count, 4]
    with pytest.raises(rt.ContractError, match=r"grid extent 1.*is -1"):
        loaded.copy(target, source, -1)


@pytest.mark.parametrize("kind", [of_torch, of_runtime, OfProtocol])
def test_a_tensor_may_have_no_axes(kind):
    parameters = (
        Parameter("total", "tensor", "f32", (), "atomic"),
        Parameter("x", "tensor", "f32", ("N",), "shared"),
    )
    variant = Variant("total", threads=128, slots=slots_of(parameters, ("N",)))
    kernel = replace(
        add_kernel(),
        name="total",
        symbol="total",
        parameters=parameters,
        dims=("N",),
        requires=(),
        coverage=(),
        variants=(variant,),
    )
    driver = NotingDriver()
    total = module(driver, kernel).total
    one, x = Array(BASE, "f32", (), (), 0), Array(BASE + 4, "f32", (1000,), (1,), 0)
    total.launch(kind(one), kind(x))
    assert driver.cells == [[BASE, BASE + 4, 1000]]
    with pytest.raises(rt.ContractError, match="`total` is written and overlaps `x`"):
        total.launch(kind(one), kind(x._replace(pointer=BASE)))
    with pytest.raises(rt.ContractError, match="`total`: expected 0 axes, got 1"):
        total.launch(kind(one._replace(shape=(1,), strides=(1,))), kind(x))


def test_what_is_no_gpu_tensor_goes_to_the_driver():
    add = module(NotingDriver()).add
    z, x, y = map(of_torch, arrays())
    y.is_cuda = False
    for wrong in (y, 5, None, [1.0]):
        with pytest.raises(rt.ContractError, match="`y`: expected a tensor"):
            add(z, x, wrong, 2.0)


def test_a_tensor_of_torch_that_is_negated_when_it_is_read_is_refused():
    class Negated(TorchTensor):
        def is_neg(self):
            return True

    driver = NotingDriver()
    add = module(driver).add
    z, x, y = map(of_torch, arrays())
    for launches in range(2):  # of new shapes, then of known ones
        with pytest.raises(rt.ContractError, match=r"`x` is negated .*`resolve_neg\(\)`"):
            add.launch(z, Negated(x.data_ptr()), y, 1.0)
        assert len(driver.cells) == launches
        add.launch(z, x, y, 1.0)


def test_a_tensor_of_torch_without_memory_is_refused_by_name():
    class Sparse(TorchTensor):
        def data_ptr(self):
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    driver = NotingDriver()
    add = module(driver).add
    z, x, y = arrays()
    for attempt in (add.launch, add.plan):
        with pytest.raises(rt.ContractError, match=r"`x`: expected a tensor with memory .* Sparse"):
            attempt(z, Sparse(x.pointer), y, 1.0)
    assert not driver.cells


# What a broken library may call an address.
NO_ADDRESSES = pytest.mark.parametrize("wrong", [None, "1024", 4096.0, -4096, 2**64, 2**70 + 4096])


def as_it_is(array):
    return array


@NO_ADDRESSES
@pytest.mark.parametrize("kind", [as_it_is, of_torch])
@pytest.mark.parametrize("extent", [1000, 0])
def test_what_is_no_address_is_refused_by_name(kind, extent, wrong):
    driver = NotingDriver()
    add = module(driver).add
    given = list(map(kind, arrays(extent)))
    broken = [given[0], kind(arrays(extent)[1]._replace(pointer=wrong)), given[2]]
    for _ in range(2):  # of new shapes, then of known ones
        for attempt in (add.launch, add.plan):
            with pytest.raises(rt.ContractError, match="`x`: expected an address"):
                attempt(*broken, 1.0)
        started = len(driver.cells)
        add.launch(*given, 1.0)
        assert len(driver.cells) == started + (extent > 0)


def test_threads_that_launch_at_once_have_their_own_arguments():
    both = threading.Barrier(2, timeout=20)

    class SlowDriver(NotingDriver):
        def prepared(self, code, entry, cells):
            def start(stream):
                both.wait()
                self.cells.append(list(cells))

            return start

    driver = SlowDriver()
    add = module(driver).add

    def work(offset):
        moved = [a._replace(pointer=a.pointer + offset) for a in arrays()]
        for _ in range(20):
            add.launch(*moved, float(offset))

    threads = [threading.Thread(target=work, args=(offset,)) for offset in (16, 32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [[BASE + o, BASE + 2**20 + o, BASE + 2**21 + o, f32_bits(o), 1000] for o in (16, 32)]
    assert sorted(driver.cells) == [*[expected[0]] * 20, *[expected[1]] * 20]


# Streams


def test_tensors_of_torch_are_worked_on_its_current_stream(torch_streams):
    driver = NotingDriver()
    add = module(driver).add
    z, x, y = arrays()
    mixed = [
        list(map(of_torch, (z, x, y))),
        [of_runtime(z), of_runtime(x), of_torch(y)],
        [OfProtocol(z), x, of_torch(y)],
    ]
    for current in (0, 77, 0, 99):
        torch_streams[0] = current
        for tensors in mixed:
            add.launch(*tensors, 2.0)
            assert driver.log[-1][-1] == current
            add(*tensors, 2.0)
            assert driver.log[-1] == ("finished", current)
    assert ("imported", "z", 99) in driver.log


def test_a_stream_that_is_given_is_taken(torch_streams):
    driver = NotingDriver()
    add = module(driver).add
    torch_streams[0] = 77
    for tensors in (map(of_torch, arrays()), map(OfProtocol, arrays()), arrays()):
        add.launch(*tensors, 2.0, stream=5)
        assert driver.log[-1][-1] == 5


def test_other_tensors_are_worked_on_the_default_stream(torch_streams):
    driver = NotingDriver()
    add = module(driver).add
    torch_streams[0] = 77
    for kind in (of_runtime, OfProtocol):
        add.launch(*map(kind, arrays()), 2.0)
        assert driver.log[-1][-1] == 0


def test_without_torch_the_default_stream_is_taken(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    monkeypatch.setattr(foreign, "_ask", None)
    driver = NotingDriver()
    module(driver).add.launch(*map(of_torch, arrays()), 2.0)
    assert driver.log[-1][-1] == 0


# Handles, and what lives until the GPU is done


def watched(offset=0, n=1000):
    """Three tensors, and what tells whether the last one lives."""
    tensors = [of_torch(a._replace(pointer=a.pointer + offset)) for a in arrays(n)]
    return tensors, weakref.ref(tensors[-1])


def test_launches_share_events():
    driver = NotingDriver()
    add = module(driver).add
    for _ in range(640):
        add.launch(*watched()[0], 2.0)
    assert 1 <= len(driver.events) <= 11


@pytest.mark.parametrize("keep", [False, True])
def test_arguments_live_until_the_kernel_is_done(keep):
    driver = NotingDriver()
    add = module(driver).add
    tensors, alive = watched()
    kept = add.launch(*tensors, 2.0)
    del tensors
    if not keep:
        del kept
    for _ in range(300):
        add.launch(*watched()[0], 2.0)
    gc.collect()
    assert alive() is not None and driver.events
    for event in driver.events:
        event.is_done = True
    for _ in range(launch.LIMIT + 1):
        add.launch(*watched()[0], 2.0)
    gc.collect()
    assert (alive() is not None) == keep  # a handle that is kept keeps what it borrowed
    if keep:
        kept.wait()
        assert alive() is None


@pytest.mark.parametrize("name", ["add", "sums"])
def test_a_call_that_is_interrupted_keeps_its_arguments(name):
    class Interrupted(NotingDriver):
        def finish(self, entry, stream):
            raise KeyboardInterrupt

    def failed(entry, stream):
        raise rt.LaunchError("no")

    driver = Interrupted()
    call = getattr(module_of(driver, with_pipelines()), name)
    for lives in (True, False):
        tensors, alive = watched()
        given = tensors if name == "add" else tensors[1:]
        with pytest.raises((KeyboardInterrupt, rt.LaunchError)):
            call(*given, 2.0)
        del tensors, given
        gc.collect()
        assert (alive() is not None) == lives
        driver.finish = failed


class Clock(int):
    """Equals what is the same hour."""

    def __eq__(self, other):
        return int(self) % 12 == int(other) % 12

    def __hash__(self):
        return int(self) % 12


class Near(float):
    """Equals what is near."""

    def __eq__(self, other):
        return abs(float(self) - float(other)) < 1

    def __hash__(self):
        return 0


def test_numbers_that_say_that_they_are_equal_are_passed_as_they_are():
    driver = NotingDriver()
    add = module(driver).add
    for number in (Near(2.5), Near(3.0), Near(2.5), 2.5, Clock(1), Clock(13), 13):
        add.launch(*arrays(), number)
        assert driver.cells[-1][3] == f32_bits(float(number))


@pytest.mark.parametrize("kind", [int, Clock])
def test_numbers_that_say_that_they_are_equal_decide_as_they_are(kind):
    kernel = replace(add_kernel(), requires=(Requirement("scale < 9.0", ("lt", "scale", 9.0), 1),))
    add = module(NotingDriver(), kernel).add
    for _ in range(2):
        add.launch(*arrays(), kind(1))
        with pytest.raises(rt.ContractError, match="scale < 9"):
            add.launch(*arrays(), kind(13))


def test_launches_that_are_refused_do_not_gather():
    class Refusing(NotingDriver):
        refuses = False

        def prepared(self, code, entry, cells, early=False):
            def start(stream):
                if self.refuses:
                    raise rt.LaunchError("no")

            return started_by_c(start, cells) if native.built() else start

    driver = Refusing()
    add = module(driver).add
    for refuses in (False, False, True):
        driver.refuses = refuses
        for _ in range(5 * launch.LIMIT):
            with pytest.raises(rt.LaunchError) if refuses else nullcontext():
                add.launch(*arrays(), 2.0)
            for event in driver.events:
                event.is_done = True
    assert len(launch.UNDER_WAY._gathered) <= launch.LIMIT
    assert all(one.is_over for one in launch.UNDER_WAY._gathered)


def test_what_was_waited_for_is_let_go_at_once():
    driver = NotingDriver()
    tensors, alive = watched()
    handle = module(driver).add.launch(*tensors, 2.0)
    del tensors
    assert alive() is not None
    assert not handle.done and len(driver.events) == 1
    handle.wait()
    assert handle.done and alive() is None
    handle.wait()
    launch.UNDER_WAY.settle()
    assert len(driver.events) == 1


def test_each_stream_has_its_own_event():
    driver = NotingDriver()
    add = module(driver).add
    streams = [SimpleNamespace(address=a) for a in (64, 128)]
    first, of_first = watched()
    add.launch(*first, 2.0, stream=streams[0])
    second, of_second = watched()
    add.launch(*second, 2.0, stream=streams[1])
    del first, second
    launch.UNDER_WAY.settle()
    assert len(driver.events) == 2
    driver.events[1].is_done = True
    launch.UNDER_WAY.settle()
    assert of_first() is not None and of_second() is None


def test_a_stream_object_lives_as_long_as_its_launches():
    class Stream:
        address = 64

    driver = NotingDriver()
    stream = Stream()
    alive = weakref.ref(stream)
    module(driver).add.launch(*arrays(), 2.0, stream=stream)
    del stream
    assert alive() is not None
    launch.UNDER_WAY.settle()
    driver.events[0].is_done = True
    launch.UNDER_WAY.settle()
    assert alive() is None


@pytest.mark.parametrize(("stream", "events"), [(None, 0), (0, 0), (1, 0), (2, 1), (4096, 1)])
def test_an_address_of_a_stream_is_used_at_once(stream, events):
    """It may be another stream's later; the thread's own stream is another one elsewhere."""
    driver = NotingDriver()
    module(driver).add.launch(*arrays(), 2.0, stream=stream)
    assert len(driver.events) == events


def test_pytorch_may_be_on_the_threads_own_stream(torch_streams):
    torch_streams[0] = launch.PER_THREAD_STREAM
    driver = NotingDriver()
    module(driver).add.launch(*map(of_torch, arrays()), 2.0)
    assert len(driver.events) == 1


def test_what_holds_much_memory_is_let_go_by_the_next_launch():
    driver = NotingDriver()
    add = module(driver).add
    z, x, y = (
        of_torch(Array(BASE + i * 2**30, "f32", (2**24,), (1,), 0)) for i in range(3)
    )  # 64 MiB each
    alive = weakref.ref(y)
    add.launch(z, x, y, 2.0)
    del z, x, y
    assert len(driver.events) == 1
    add.launch(*arrays(), 2.0)
    assert alive() is not None
    for event in driver.events:
        event.is_done = True
    add.launch(*arrays(), 2.0)
    assert alive() is None


def test_however_much_is_under_way_a_launch_asks_for_few_of_each_stream():
    class Counting(NotingDriver):
        asked = 0

        def is_over(self, event):
            self.asked += 1
            return event.is_done

    driver = Counting()
    add = module(driver).add
    tensors = [
        [Array(BASE + (3 * n + i) * 2**30, "f32", (2**24,), (1,), 0) for i in range(3)]
        for n in range(50)
    ]
    for one in tensors:
        add.launch(*one, 2.0)
    assert len(driver.events) == 50 and driver.asked <= 50
    for event in driver.events[:49]:
        event.is_done = True
    driver.asked = 0
    add.launch(*tensors[0], 2.0)
    assert driver.asked <= 8  # the first, the last, and between them where those that are done end


@pytest.mark.parametrize(
    ("stream", "in_order"),
    [(launch.PER_THREAD_STREAM, False), (64, False), (SimpleNamespace(address=64), True)],
)
def test_one_address_may_be_several_streams(stream, in_order):
    """Another thread's, or one that was made where another was destroyed: that a later launch is
    done says nothing then. A stream that is given as an object is one, as long as it is needed."""
    driver = NotingDriver()
    add = module(driver).add
    tensors = [watched() for _ in range(3)]
    while tensors:
        given, alive = tensors.pop()
        add.launch(*given, 2.0, stream=stream)
        if len(tensors) == 1:
            is_alive = alive
        del given, alive
        launch.UNDER_WAY.settle()
    assert len(driver.events) == 3
    driver.events[0].is_done = driver.events[2].is_done = True
    launch.UNDER_WAY.settle()
    assert (is_alive() is None) == in_order
    driver.events[1].is_done = True
    launch.UNDER_WAY.settle()
    assert is_alive() is None and launch.UNDER_WAY.borrowers() == []


def test_the_event_of_a_threads_own_stream_is_recorded_in_that_thread():
    """Another thread that settles meanwhile would record one of its own stream."""
    recorded = []

    class Settling(NotingDriver):
        def recorded(self, entry, stream):
            recorded.append(threading.get_ident())
            other = threading.Thread(target=launch.UNDER_WAY.settle)
            other.start()
            other.join()
            return super().recorded(entry, stream)

    driver = Settling()
    handle = module(driver).add.launch(*arrays(), 2.0, stream=launch.PER_THREAD_STREAM)
    assert recorded == [threading.get_ident()] and handle.event() is driver.events[0]


def test_asking_for_memory_lets_go_of_what_is_done(monkeypatch):
    class Allocating(NotingDriver):
        def allocated(self, size_bytes, device):
            return SimpleNamespace(handle=BASE, size=size_bytes)

    driver = Allocating()
    monkeypatch.setattr("tilec.runtime.tensor.cuda_driver", lambda: driver)
    tensors, alive = watched()
    module(driver).add.launch(*tensors, 2.0)
    del tensors
    rt.empty((4,), "f32", 0)
    assert alive() is not None
    driver.events[0].is_done = True
    rt.empty((4,), "f32", 0)
    assert alive() is None


def test_a_launch_that_is_captured_into_a_graph_records_nothing():
    driver = NotingDriver()
    add = module(driver).add
    driver.captures = True
    tensors, alive = watched()
    handle = add.launch(*tensors, 2.0)
    del tensors
    assert not handle.done
    with pytest.raises(rt.LaunchError, match="`add__f32_1024` does not run before the graph"):
        handle.wait()
    del handle
    for _ in range(200):
        add.launch(*arrays(), 2.0)
    assert alive() is not None and not driver.events
    driver.captures = False
    launch.UNDER_WAY.settle()
    assert len(driver.events) == 1
    driver.events[0].is_done = True
    launch.UNDER_WAY.settle()
    assert alive() is None


def test_without_an_event_the_device_is_waited_for():
    class Broken(NotingDriver):
        def recorded(self, entry, stream):
            raise rt.LaunchError("invalid handle")

    driver = Broken()
    tensors, alive = watched()
    module(driver).add.launch(*tensors, 2.0)
    del tensors
    launch.UNDER_WAY.settle()
    assert driver.log[-1] == ("device finished", 0) and alive() is None
    # Nor is anything left of launches on several streams.
    streams = [SimpleNamespace(address=n) for n in (64, 128)]
    handles = [module(driver).add.launch(*arrays(), 2.0, stream=one) for one in streams]
    launch.UNDER_WAY.settle()
    assert all(one.is_over for one in handles) and launch.UNDER_WAY.borrowers() == []
    launch.UNDER_WAY.settle()
    assert launch.UNDER_WAY._ledger is None


def test_a_failure_on_the_gpu_is_raised_by_every_handle_that_is_asked():
    driver = NotingDriver(RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS"))
    add = module(driver, add_kernel(), copy_kernel()).add
    handles = [add.launch(*arrays(), 2.0) for _ in range(3)]
    for handle in handles:
        with pytest.raises(rt.LaunchError, match=r"`add__f32_1024` failed.*ILLEGAL_ADDRESS"):
            handle.wait()
    assert repr(handles[0]) == "Launch(add__f32_1024, under way)"


def test_a_trap_of_a_checked_build_says_where_its_text_is():
    driver = NotingDriver(RuntimeError("CUDA_ERROR_ASSERT: device-side assert triggered"))
    handle = module(driver).add.launch(*arrays(), 2.0)
    with pytest.raises(rt.Trapped, match=r"`add__f32_1024` failed.*standard error.*line"):
        handle.wait()
