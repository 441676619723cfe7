"""The driver, devices, contexts and machine code: found once, and an error where they fail."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from threading import Barrier, Thread

import pytest

from tests.emit.calling import CHECK, LAUNCH, PLAN
from tests.emit.launching import CUBIN, Headers
from tests.emit.samples import everything
from tests.emit.statuses import STATUS
from tests.unit.manifest_samples import add_kernel, manifest
from tilec.runtime.array import Array, contiguous_strides

BASE = 2**40


def dense(place, element, *shape, device=0):
    return Array(BASE * place, element, shape, contiguous_strides(shape), device)


def add_arguments(device=0):
    return [*(dense(i, "f32", 1000, device=device) for i in (1, 2, 3)), 2.0]


def scaled_arguments():
    return [dense(1, "bf16", 64, 64), dense(2, "bf16", 64, 64), 1.0]


def clustered_arguments():
    return [dense(1, "bf16", 640, 640), dense(2, "bf16", 640, 64), dense(3, "bf16", 64, 640)]


def refused(outcome, name):
    assert outcome.status == STATUS[f"TILEC_ERROR_{name}"], outcome.message
    return outcome.message


@pytest.mark.parametrize("devices", [(0,), (1,), (0, 1)])
def test_sixteen_threads_load_once(fresh, devices):
    """Each thread launches on one of the devices, as the first call of all."""
    fresh.use_driver()
    barrier = Barrier(16)
    statuses = []

    def first_call(device):
        barrier.wait()
        statuses.append(fresh.call("add", add_arguments(device)).status)

    threads = [Thread(target=first_call, args=(devices[i % len(devices)],)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 16
    assert (fresh.fake.loads, fresh.fake.launches) == (1, 16)


def test_one_cubin_is_loaded_once_for_all_devices(fresh):
    fresh.use_driver()
    for device in (0, 1, 0, 1):
        assert fresh.call("add", add_arguments(device)).message == ""
        assert fresh.fake.context == device
    assert fresh.fake.loads == 1


def test_without_a_driver_contracts_are_checked_and_launches_say_so(fresh, tmp_path):
    assert fresh.call("add", add_arguments(), CHECK).message == ""
    assert fresh.call("matmul", clustered_arguments(), CHECK).message == ""
    assert fresh.call("persistent", clustered_arguments(), CHECK).message == ""
    assert fresh.call("add", add_arguments(device=-1), CHECK).message == ""
    assert "`z`" in fresh.call("add", [dense(1, "f16", 8), *add_arguments()[1:]], CHECK).message
    other = ctypes.CDLL(None)
    message = refused_driver(fresh, other._handle)
    assert "has no `cuInit`: CUDA 12 or later is needed" in message
    refused(fresh.call("add", add_arguments()), "NO_DRIVER")
    refused(fresh.call("persistent", clustered_arguments(), PLAN), "NO_DRIVER")


def refused_driver(headers, handle):
    assert headers.library.shim_set_driver(handle) == STATUS["TILEC_ERROR_NO_DRIVER"]
    return headers.library.shim_message().decode()


def test_a_driver_that_is_in_use_stays(fresh):
    fresh.use_driver()
    assert "another CUDA driver is in use" in refused_driver(fresh, ctypes.CDLL(None)._handle)
    assert fresh.call("add", add_arguments()).message == ""


def test_a_driver_without_devices_is_an_error(fresh):
    fresh.fake.fail_init = 1
    fresh.use_driver()
    assert "CUDA_ERROR_NO_DEVICE" in refused(fresh.call("add", add_arguments()), "NO_DEVICE")
    fresh.fake.fail_init = 0
    assert fresh.call("add", add_arguments()).message == ""


@pytest.mark.parametrize("device", [2, 63, 64, 2**31 - 1])
def test_a_device_that_is_not_there_is_an_error(headers, device):
    message = refused(headers.call("add", add_arguments(device)), "NO_DEVICE")
    assert f"there is no device {device}: the driver has 2" in message


def test_a_cubin_that_does_not_load_is_an_error_each_time_until_it_does(fresh):
    fresh.use_driver()
    fresh.fake.fail_load = 1
    for _ in range(2):
        message = refused(fresh.call("add", add_arguments()), "LOAD")
        assert "kernels/add.tile: the driver does not load `add__f32_1024__v16`" in message
        assert "CUDA_ERROR_INVALID_IMAGE" in message
    fresh.fake.fail_load = 0
    assert fresh.call("add", add_arguments()).message == ""
    assert (fresh.fake.loads, fresh.fake.launches) == (1, 1)


def test_a_corrupt_cubin_is_an_error(tools):
    corrupt = Headers([everything()], tools / "corrupt", tools, cubin=b"\x7fELX" + CUBIN[4:])
    corrupt.use_driver()
    refused(corrupt.call("add", add_arguments()), "LOAD")
    assert corrupt.fake.launches == 0


@pytest.mark.parametrize("major, minor", [(8, 0), (9, 1), (10, 0)])
def test_another_architecture_is_an_error_that_names_both(fresh, major, minor):
    fresh.fake.major, fresh.fake.minor = major, minor
    fresh.use_driver()
    message = refused(fresh.call("add", add_arguments()), "ARCHITECTURE")
    assert message == (
        f"kernels/add.tile is built for sm_90a, device 0 (A Card) is sm_{major}{minor}"
    )
    assert fresh.fake.loads == fresh.fake.launches == 0


def test_of_several_targets_the_nearest_that_runs_is_taken(tools):
    targets = ("sm_80", "sm_90a", "sm_86")
    manifests = [_for_target(target) for target in targets]
    made = Headers(manifests, tools / "targets", tools)
    taken = {}
    for capability in ((8, 0), (8, 6), (8, 9), (9, 0)):
        headers = made.anew()
        headers.fake.major, headers.fake.minor = capability
        headers.use_driver()
        before = headers.driver.fake_questions()
        assert headers.call("add", add_arguments(-1)).message == ""
        assert headers.driver.fake_questions() - before == 3
        taken[capability] = headers.fake.kernel.decode(), headers.fake.block[0]
    threads = {"sm_80": 80, "sm_86": 86, "sm_90a": 90}
    wanted = {(8, 0): "sm_80", (8, 6): "sm_86", (8, 9): "sm_86", (9, 0): "sm_90a"}
    assert taken == {
        capability: (f"add_for_{target}", threads[target]) for capability, target in wanted.items()
    }
    headers = made.anew()
    headers.fake.major = 7
    headers.use_driver()
    message = refused(headers.call("add", add_arguments()), "ARCHITECTURE")
    assert "is built for sm_90a, sm_86, sm_80, device 0 (A Card) is sm_70" in message


def test_the_driver_is_asked_once_a_launch_whose_memory_a_tensor_is(headers):
    """Also where an instance is chosen of several."""
    products = [dense(i, "bf16", 96, 96, device=-1) for i in (1, 2, 3)]
    for name, arguments in (("add", add_arguments(-1)), ("matmul", products)):
        for _ in range(2):  # the choice is remembered from the first on
            before = headers.driver.fake_questions()
            assert headers.call(name, arguments).message == ""
            assert headers.driver.fake_questions() - before == 3


def test_what_was_said_of_memory_in_another_launch_does_not_count(headers):
    assert headers.call("add", add_arguments(-1)).message == ""
    headers.fake.second_from = 2 * BASE  # as if it were freed, and given out on the other device
    message = refused(headers.call("add__f32_1024", add_arguments(-1)), "DEVICE")
    assert message == "`add__f32_1024`: `x` is on device 1, `z` on device 0"
    headers.fake.host_from = 3 * BASE
    assert "`x` is on device 1" in refused(
        headers.call("add__f32_1024", add_arguments(-1)), "DEVICE"
    )


def _for_target(target):
    kernel = add_kernel()
    variant = replace(kernel.variants[1], symbol=f"add_for_{target}", threads=int(target[3:5]))
    return replace(manifest(replace(kernel, variants=(variant,))), target=target)


@pytest.mark.parametrize("current", [-1, 0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_a_launch_is_in_a_context_of_its_device_and_leaves_the_current_one(
    headers, current, device
):
    headers.driver.fake_enter(current)
    assert headers.call("add", add_arguments(device)).message == ""
    assert headers.fake.context == device
    assert headers.driver.fake_current() == current


def test_a_failed_launch_is_an_error_and_leaves_the_context(headers):
    headers.fake.fail_launch = 1
    message = refused(headers.call("add", add_arguments(1)), "LAUNCH")
    assert message == "`add__f32_1024` was not launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    assert headers.driver.fake_current() == -1


def test_the_driver_says_on_which_device_a_tensor_is(headers):
    headers.fake.second_from = BASE
    assert headers.call("add", add_arguments(device=-1)).message == ""
    assert headers.fake.context == 1
    mixed = [dense(1, "f32", 1000), *add_arguments(device=-1)[1:]]
    message = refused(headers.call("add", mixed), "DEVICE")
    assert "`x` is on device 1, `z` on device 0" in message


def test_memory_of_the_host_is_refused(headers):
    headers.fake.host_from = 3 * BASE
    message = refused(headers.call("add__f32_1024", add_arguments(device=-1)), "DEVICE")
    assert "`y`: 0x30000000000 is the address of no memory that CUDA knows" in message
    assert headers.fake.launches == 0


def test_a_stream_of_another_device_is_refused(headers):
    on_second = 0x20000
    message = refused(headers.call("add", add_arguments(0), stream=on_second), "DEVICE")
    assert "the tensors are on device 0, the stream on device 1" in message
    assert headers.call("add", add_arguments(1), stream=on_second).message == ""
    assert headers.fake.stream == on_second


def test_streams_are_passed_on(headers):
    for stream in (0, 1, 2, 0x10000):
        assert headers.call("add", add_arguments(), stream=stream).message == ""
        assert headers.fake.stream == stream


def test_tensor_maps_are_made_once_for_a_tensor(fresh):
    fresh.use_driver()
    for _ in range(3):
        assert fresh.call("scaled", scaled_arguments()).message == ""
    assert (fresh.fake.kernel, fresh.fake.maps) == (b"scaled__bf16__tma", 2)
    other = scaled_arguments()
    other[1] = other[1]._replace(pointer=5 * BASE)
    assert fresh.call("scaled", other).message == ""
    assert fresh.fake.maps == 3


def test_a_tensor_map_that_the_driver_refuses_is_an_error(fresh):
    fresh.use_driver()
    fresh.fake.fail_map = 1
    message = refused(fresh.call("scaled", scaled_arguments()), "TENSOR_MAP")
    assert "the driver refuses a tensor map of `x` (bytes 0x20000000000" in message
    fresh.fake.fail_map = 0
    assert fresh.call("scaled", scaled_arguments()).message == ""
    assert fresh.fake.launches == 1


def test_more_shared_memory_than_48_kib_is_asked_for_once(fresh):
    fresh.use_driver()
    assert fresh.call("add", add_arguments()).message == ""
    assert fresh.fake.shared_limit == 0
    assert fresh.call("clustered", clustered_arguments()).message == ""
    assert (fresh.fake.shared_limit, fresh.fake.shared_bytes) == (200_000, 200_000)
    fresh.fake.shared_limit = 0
    assert fresh.call("clustered", clustered_arguments()).message == ""
    assert fresh.fake.shared_limit == 0


def test_persistent_clusters_are_as_many_as_have_room(fresh):
    fresh.use_driver()
    fresh.fake.clusters_at_once = 7
    assert fresh.call("clustered", clustered_arguments()).message == ""
    assert (list(fresh.fake.grid), list(fresh.fake.cluster)) == ([28, 1, 1], [4, 1, 1])
    small = [dense(1, "bf16", 64, 64), dense(2, "bf16", 64, 64), dense(3, "bf16", 64, 64)]
    assert fresh.call("clustered", small).message == ""
    assert list(fresh.fake.grid) == [4, 1, 1]


def test_all_of_a_cubin_can_be_loaded_ahead(fresh):
    fresh.use_driver()
    assert fresh.library.shim_load(1) == 0
    assert (fresh.fake.loads, fresh.fake.launches) == (1, 0)
    assert fresh.call("matmul", clustered_arguments(), LAUNCH).message == ""
    assert fresh.fake.loads == 1
    assert fresh.library.shim_load(9) == STATUS["TILEC_ERROR_NO_DEVICE"]


def test_a_cubin_that_was_given_back_is_loaded_again(fresh):
    fresh.library.shim_unload()
    fresh.use_driver()
    fresh.library.shim_unload()
    assert fresh.fake.unloads == 0
    for loads in (1, 2):
        assert fresh.call("add", add_arguments()).message == ""
        fresh.library.shim_unload()
        assert (fresh.fake.loads, fresh.fake.unloads) == (loads, loads)


def test_each_thread_has_its_own_message(headers):
    said = {}
    all_failed = Barrier(2)

    def fail(name, position):
        arguments = add_arguments()
        arguments[position] = None
        headers.call("add", arguments)
        all_failed.wait()
        said[name] = headers.library.shim_message().decode()

    threads = [Thread(target=fail, args=pair) for pair in (("z", 0), ("y", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: f"`{name}` is a null pointer" in message for name, message in said.items()} == {
        "z": True,
        "y": True,
    }
