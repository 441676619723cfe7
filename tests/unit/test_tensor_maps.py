"""Launches with tensor maps, in clusters and of persistent kernels: what is chosen and passed."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import replace

import pytest
from cuda.bindings import driver as real
from manifest_samples import copy_kernel, mapped_kernel
from noted_cuda import forget, installed
from noting_driver import Event, NotingDriver, module

import tilec.runtime as rt
from tilec.artifact.abi import slots_of
from tilec.artifact.manifest import TensorMap
from tilec.runtime import driver as real_driver
from tilec.runtime import starting
from tilec.runtime.array import Array
from tilec.runtime.launch import UnderWay
from tilec.runtime.plan import Planner

pytestmark = pytest.mark.usefixtures("launch_path")

BASE = 2**40
STEP = 2**32
M, K = 100, 96  # rows of 192 bytes


def arrays(rows=M, columns=K, stride=None, offset=0, device=0):
    strides = (columns if stride is None else stride, 1)
    return [
        Array(BASE + i * STEP + offset, "bf16", (rows, columns), strides, device) for i in range(2)
    ]


def planned(y, x, kernel=None):
    return Planner([kernel or mapped_kernel()]).plan([y, x, 2.0])


def suffix(plan):
    return plan.variant.symbol.removeprefix("scaled__bf16")


# Which variant


def test_maps_are_planned_at_the_addresses_of_their_tensors():
    y, x = arrays()
    plan = planned(y, x)
    assert suffix(plan) == "__tma" and plan.grid == (2, 2, 1)
    assert len(plan.arguments) == len(plan.variant.slots)
    assert plan.arguments[:2] == (y.pointer, K)
    of_x, of_y = plan.arguments[-2:]
    assert (of_x.param, of_x.address, of_x.box) == ("x", x.pointer, (64, 64))
    assert (of_y.param, of_y.address, of_y.box) == ("y", y.pointer, (64, 32))
    assert of_x.extents == of_y.extents == (K, M) and of_x.stride_bytes == (192,)


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (arrays(), "__tma"),
        (arrays(1, 8), "__tma"),
        (arrays(1, 8, stride=3), "__tma"),  # one row: no stride
        (arrays(M, K, stride=200), "__tma"),
        (arrays(M, K, stride=201), ""),
        (arrays(offset=16), "__tma"),
        (arrays(offset=8), ""),
        (arrays(offset=2), ""),
        (arrays(M, 1, stride=8), "__v16"),  # rows that are stored end inside 16 bytes
        (arrays(M, 95, stride=96), "__v16"),
        ([*arrays(2, 8)[:1], arrays(2, 8, stride=0)[1]], "__v16"),
        ([*arrays(2, 8)[:1], arrays(2, 8, stride=2**38)[1]], "__tma"),
        ([*arrays(2, 8)[:1], arrays(2, 8, stride=2**39)[1]], "__v16"),  # 2**40 bytes
        (arrays(2**31 - 1, 8), "__tma"),
        (arrays(2**31, 8), "__v16"),
        (arrays(0, K), "__v16"),
        (arrays(M, 0), "__v16"),
    ],
)
def test_where_a_map_is_impossible_the_next_variant_is_launched(given, chosen):
    if given[0].shape[0] > 2**30:
        given[1] = given[1]._replace(pointer=2**50)
    assert suffix(planned(*given)) == chosen


def test_a_negative_stride_is_refused_as_for_every_kernel():
    y, x = arrays()
    with pytest.raises(rt.ContractError, match="`x`: stride -96 of axis 0 is negative"):
        planned(y, x._replace(strides=(-96, 1)))


def test_no_variant_left_is_an_error_that_tells_of_maps():
    kernel = mapped_kernel()
    kernel = replace(kernel, variants=kernel.variants[:1])
    for given in (arrays(offset=2), arrays(M, 95, stride=96)):
        with pytest.raises(rt.ContractError, match=r"no variant: .*asks for a tensor map of `x`"):
            planned(*given, kernel)


@pytest.mark.parametrize("offsets", [(0, 16, 8, 2, 0, 8)])
def test_alignment_chooses_at_each_launch(offsets):
    driver = NotingDriver()
    scaled = module(driver, mapped_kernel()).scaled
    for offset in offsets:
        scaled.launch(*arrays(offset=offset), 2.0)
        wanted = "" if offset % 16 else "__tma"
        assert driver.log[-1][1] == f"scaled__bf16{wanted}"
        assert len(driver.cells[-1]) == 7  # without the maps, which are the driver's


# Clusters and persistent kernels


def test_a_grid_of_clusters_is_rounded_up():
    assert planned(*arrays(), mapped_kernel(cluster=(1, 4, 1))).grid == (2, 4, 1)


def test_where_the_hardware_has_no_such_grid_the_next_variant_is_launched():
    # 65535 rows of programs, which two along y do not divide
    plan = planned(*arrays(64 * 65535, 8), mapped_kernel(cluster=(1, 2, 1)))
    assert suffix(plan) == "__v16" and plan.grid == (1, 65535, 1)


def test_persistent_kernels_ask_for_the_device_of_the_tensors():
    driver = NotingDriver()
    scaled = module(driver, mapped_kernel(persistent_blocks_per_sm=1, cluster=(2, 1, 1))).scaled
    for rows, blocks in [(64, 2), (64 * 3, 6), (64 * 65, 130), (64 * 1000, 132)]:
        assert scaled.plan(*arrays(rows), 2.0).grid == (blocks, 1, 1)
        scaled.launch(*arrays(rows, device=1), 2.0)
        assert driver.log[-1][2] == (blocks, 1, 1)
    asked = [said for said in driver.log if said[0] == "multiprocessors"]
    assert {device for _, device in asked} == {0, 1}


def test_without_programs_nobody_asks_for_multiprocessors():
    plan = planned(*arrays(0), mapped_kernel(persistent_blocks_per_sm=1))
    assert plan.grid is None
    with pytest.raises(rt.NoDevice, match="persistent"):
        planned(*arrays(), mapped_kernel(persistent_blocks_per_sm=1))


# What the driver is told


@pytest.fixture
def installs(monkeypatch):
    """A CUDA with so many devices, where everything is done at once."""
    monkeypatch.setattr("tilec.runtime.launcher.UNDER_WAY", UnderWay())
    monkeypatch.setattr(real_driver, "recorded", lambda entry, stream: Event())
    monkeypatch.setattr(real_driver, "tail", lambda stream, device: Event())
    monkeypatch.setattr(real_driver, "order", lambda event, stream, device: True)
    monkeypatch.setattr(real_driver, "waits_for_legacy", lambda stream: False)
    monkeypatch.setattr(real_driver, "is_captured", lambda stream: False)
    monkeypatch.setattr(real_driver, "is_over", lambda event: True)
    yield lambda count: installed(monkeypatch, count)
    forget()


@pytest.fixture
def cuda(installs):
    return installs(1)


def launcher(**changes):
    return module(real_driver, mapped_kernel(**changes)).scaled


def passed(cuda, number=-1):
    """The cells and the numbers of the maps that a launch was given by address."""
    places = (ctypes.c_uint64 * 9).from_address(cuda.parameters[number])
    return [ctypes.c_uint64.from_address(place).value for place in places]


def test_the_driver_encodes_what_abi_md_says(cuda):
    y, x = arrays(M, K, stride=200)
    launcher().launch(y, x, 2.0)
    types, swizzles = real.CUtensorMapDataType, real.CUtensorMapSwizzle
    promotions = real.CUtensorMapL2promotion
    shared = {
        "data_type": types.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        "rank": 2,
        "extents": [K, M],
        "strides": [400],
        "steps": [1, 1],
    }
    narrow = promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    wide_swizzle = swizzles.CU_TENSOR_MAP_SWIZZLE_128B
    none = swizzles.CU_TENSOR_MAP_SWIZZLE_NONE
    assert cuda.maps == [
        {**shared, "address": x.pointer, "box": [64, 64], "modes": [0, wide_swizzle, narrow, 0]},
        {**shared, "address": y.pointer, "box": [64, 32], "modes": [0, none, narrow, 0]},
    ]


def test_maps_are_the_last_parameters(cuda):
    y, x = arrays()
    launcher().launch(y, x, 2.0)
    cells = passed(cuda)
    assert cells[:2] == [y.pointer, K] and cells[5:7] == [M, K]
    assert cells[7:] == [1, 2]  # the first and the second that were encoded


def test_a_vector_has_a_map(cuda):
    kernel = mapped_kernel()
    parameters = tuple(
        replace(p, extents=("K",), block=p.block[:1]) if p.is_tensor else p
        for p in kernel.parameters
    )
    maps = (TensorMap("x", (64,), 128, False),)
    slots = slots_of(parameters, ("K",), maps)
    variant = replace(kernel.variants[0], tensor_maps=maps, slots=slots)
    vector = replace(kernel, parameters=parameters, dims=("K",), grid=(1,), variants=(variant,))
    y, x = (a._replace(shape=(1000,), strides=(1,)) for a in arrays())
    module(real_driver, vector).scaled.launch(y, x, 2.0)
    [told] = cuda.maps
    assert (told["rank"], told["extents"], told["strides"]) == (1, [1000], [])


def test_the_same_addresses_are_encoded_once(cuda):
    scaled = launcher()
    for _ in range(5):
        scaled.launch(*arrays(), 2.0)
    assert len(cuda.maps) == 2
    for offset in (16, 0, 32, 16, 0):
        scaled.launch(*arrays(offset=offset), 2.0)
        y, x = (cuda.maps[number - 1] for number in reversed(passed(cuda)[7:]))
        assert x["address"] == BASE + STEP + offset and y["address"] == BASE + offset
    assert len(cuda.maps) == 6


def test_other_shapes_and_strides_have_other_maps(cuda):
    scaled = launcher()
    for given in (arrays(), arrays(M + 1), arrays(M, K, stride=104), arrays()):
        scaled.launch(*given, 2.0)
        told = cuda.maps[passed(cuda)[7] - 1]
        assert told["extents"] == [K, given[0].shape[0]]
        assert told["strides"] == [2 * given[0].strides[0]]
    assert len(cuda.maps) == 6


def test_few_addresses_are_remembered(cuda, monkeypatch):
    monkeypatch.setattr(starting, "_REMEMBERED_MAPS", 4)
    scaled = launcher()
    y, x = arrays()
    for turn in range(2):
        for step in range(20):
            scaled.launch(y, x._replace(pointer=x.pointer + 16 * step), 2.0)
            told = cuda.maps[passed(cuda)[7] - 1]
            assert told["address"] == x.pointer + 16 * step, turn
    assert len(cuda.maps) == 41


def test_threads_have_the_maps_of_their_own_tensors(cuda, monkeypatch):
    monkeypatch.setattr(starting, "_REMEMBERED_MAPS", 2)
    scaled = launcher()
    scaled.launch(*arrays(), 2.0)
    wrong, failures = [], []

    def noted(function, *geometry):
        places = (ctypes.c_uint64 * 9).from_address(geometry[8])
        cells = [ctypes.c_uint64.from_address(place).value for place in places]
        of_x, of_y = (cuda.maps[number - 1]["address"] for number in cells[7:])
        if (of_x, of_y) != (cells[2], cells[0]):
            wrong.append(cells)
        return [real.CUresult.CUDA_SUCCESS]

    monkeypatch.setattr(cuda, "cuLaunchKernel", noted)

    def work(first):
        try:
            for step in range(150):
                scaled.launch(*arrays(offset=16 * (first + step % 5)), 2.0, stream=96)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not failures


def test_a_map_is_made_with_the_tensors_device_current(installs):
    two_devices = installs(2)
    scaled = launcher()
    for device in (1, 0, 1, 0):
        two_devices.cuCtxSetCurrent(2 - device)
        scaled.launch(*arrays(device=device), 2.0)
        assert two_devices.device == 1 - device
    assert two_devices.encoded_on == [1, 1, 0, 0]


def test_a_thread_without_a_context_makes_maps(cuda):
    scaled = launcher()
    thread = threading.Thread(target=lambda: scaled.launch(*arrays(), 2.0))
    thread.start()
    thread.join()
    assert cuda.encoded_on == [0, 0] and len(cuda.launched) == 1


def test_a_map_that_the_driver_refuses_is_told_with_its_numbers(cuda):
    scaled = launcher()
    cuda.refusal = int(real.CUresult.CUDA_ERROR_INVALID_VALUE)
    for _ in range(2):
        with pytest.raises(rt.LaunchError) as error:
            scaled(*arrays(), 2.0)
        assert str(error.value) == (
            "`scaled__bf16` was not launched: the driver refuses a tensor map of `x` "
            "(address 0x10100000000, extents (100, 96), strides in bytes (192,), "
            "copies of (64, 64)): CUDA_ERROR_INVALID_VALUE: bad"
        )
    assert not cuda.launched
    cuda.refusal = 0
    scaled.launch(*arrays(), 2.0)
    assert cuda.launched


def test_a_driver_without_tensor_maps_is_told(cuda, monkeypatch):
    status = real.CUresult.CUDA_ERROR_NOT_FOUND
    monkeypatch.setattr(cuda, "cuGetProcAddress", lambda *asked: (status, 0, 1), raising=False)
    with pytest.raises(rt.LaunchError, match="has no `cuTensorMapEncodeTiled`"):
        launcher().launch(*arrays(), 2.0)


def test_clusters_are_an_attribute_of_the_launch(cuda):
    scaled = launcher(cluster=(1, 2, 1), dynamic_smem_bytes=1024)
    cuda.cuCtxSetCurrent(1)
    for stream in (96, 64):
        scaled.launch(*arrays(64 * 3), 2.0, stream=stream)
        assert cuda.launched_extended[-1] == {
            "grid": (2, 4, 1),
            "block": (384, 1, 1),
            "smem": 1024,
            "cluster": (1, 2, 1),
            "early": False,
            "stream": stream,
        }
        assert passed(cuda)[7:] == [1, 2]
    assert not cuda.launched


@pytest.mark.parametrize(("cluster", "blocks"), [(2, 132), (4, 128), (8, 128)])
def test_persistent_clusters_all_have_room(cuda, cluster, blocks):
    scaled = launcher(cluster=(cluster, 1, 1), persistent_blocks_per_sm=1)
    scaled.launch(*arrays(64 * 1000), 2.0)
    assert cuda.launched_extended[-1]["grid"] == (blocks, 1, 1)
    scaled.launch(*arrays(64), 2.0)
    assert cuda.launched_extended[-1]["grid"] == (cluster, 1, 1)


def test_clusters_are_launched_by_a_thread_without_a_context(cuda):
    scaled = launcher(cluster=(2, 1, 1), tensor_maps=(), slots=mapped_kernel().variants[-1].slots)
    thread = threading.Thread(target=lambda: scaled.launch(*arrays(), 2.0))
    thread.start()
    thread.join()
    assert len(cuda.launched_extended) == 1 and not cuda.maps


def test_kernels_without_maps_are_launched_as_ever(cuda):
    copy = module(real_driver, copy_kernel()).copy
    target, source = (Array(BASE * i, "i8", (4, 64), (64, 1), 0) for i in (1, 2))
    copy.launch(target, source, 3)
    assert len(cuda.launched) == 1 and not cuda.maps and not cuda.launched_extended


def test_the_kernels_of_the_gpu_tests_are_sound():
    from tests.gpu.mapped_kernels import manifest as mapped_manifest
    from tilec.artifact.validate import faults_of

    assert list(faults_of(mapped_manifest())) == []
