"""Device tensors and the guards around them, on a driver whose device is the host's memory."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import tilec.runtime as rt


class HostMemory:
    def __init__(self, size):
        self.size = size
        self._bytes = np.full(size + 256, 0xEE, np.uint8)
        self.handle = -(-self._bytes.ctypes.data // 256) * 256


class HostDriver:
    def current_device(self):
        return 0

    def allocated(self, size_bytes, device):
        return HostMemory(max(size_bytes, 1))

    def copy_to_device(self, address, host, device):
        ctypes.memmove(address, host.ctypes.data, host.nbytes)

    def copy_to_host(self, host, address, device):
        ctypes.memmove(host.ctypes.data, address, host.nbytes)


@pytest.fixture(autouse=True)
def host_driver(monkeypatch):
    monkeypatch.setattr("tilec.runtime.tensor.cuda_driver", HostDriver)


@pytest.fixture
def zones(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "gpu"))
    from red_zones import RedZones

    return RedZones()


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.uint64, np.float16])
def test_arrays_go_there_and_back(shape, dtype):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    result = rt.to_device(values).numpy()
    assert result.dtype == values.dtype and result.shape == values.shape
    np.testing.assert_array_equal(result, values)


def test_arrays_of_any_strides_are_copied_as_they_read():
    values = np.arange(24, dtype=np.int32).reshape(4, 6)
    for view in (values.T, values[::2, ::-1], np.broadcast_to(values[0], (3, 6))):
        np.testing.assert_array_equal(rt.to_device(view).numpy(), view)


def test_types_that_numpy_lacks_go_as_themselves_or_as_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.0, -2.5, np.inf]).astype(ml_dtypes.bfloat16)
    tensor = rt.to_device(values)
    assert tensor.dtype == "bf16"
    np.testing.assert_array_equal(tensor.bits(), values.view(np.uint16))
    np.testing.assert_array_equal(tensor.numpy(), values)
    same = rt.to_device(values.view(np.uint16), "bf16")
    assert same.dtype == "bf16" and same.numpy().tobytes() == values.tobytes()


def test_what_is_no_element_type_is_refused():
    for make in (
        lambda: rt.to_device(np.zeros(2, np.complex64)),
        lambda: rt.to_device(np.zeros(2, np.float32), "bf16"),
        lambda: rt.to_device(np.zeros(2, np.uint32), "bf16"),
        lambda: rt.empty((2,), "float32"),
    ):
        with pytest.raises(rt.TilecError):
            make()


def test_a_tensor_may_lie_inside_another():
    whole = rt.to_device(np.arange(24, dtype=np.int32))
    rows = whole.at(4, (3, 2), strides=(8, 1))
    np.testing.assert_array_equal(rows.numpy(), [[1, 2], [9, 10], [17, 18]])
    assert rows.pointer == whole.pointer + 4
    for offset, shape, strides in [(4, (24,), None), (-4, (1,), None), (0, (2,), (-1,))]:
        with pytest.raises(ValueError, match=r"bytes|no tensor"):
            whole.at(offset, shape, strides=strides)


def test_a_tensor_keeps_its_memory():
    part = rt.to_device(np.arange(100, dtype=np.int64)).at(8, (3,))
    np.testing.assert_array_equal(part.numpy(), [1, 2, 3])


@pytest.mark.parametrize("misaligned_bytes", [0, 2, 14])
def test_guarded_tensors_hold_what_was_asked(zones, misaligned_bytes):
    values = np.array([[1.5, -2.0, 3.0], [0.0, np.inf, 7.0]])
    x = zones.input(values, "f16", misaligned_bytes=misaligned_bytes, strides=(8, 1))
    z = zones.output((2, 3), "bf16", misaligned_bytes=misaligned_bytes)
    np.testing.assert_array_equal(zones.values(x), values)
    assert np.isnan(zones.values(z)).all()
    assert x.pointer % 256 == z.pointer % 256 == misaligned_bytes
    assert x.strides == (8, 1)
    zones.verify()


def store(address, byte=0x5A):
    ctypes.memset(address, byte, 1)


def test_guards_notice_what_may_not_be_written(zones):
    z = zones.output((2, 3), "f32", strides=(5, 1))
    for column in range(3):
        store(z.pointer + 4 * column)
    zones.verify()
    store(z.pointer + 4 * 3)  # the gap between the rows
    with pytest.raises(AssertionError, match=r"output: 1 bytes .* at bytes 12"):
        zones.verify()


@pytest.mark.parametrize("offset", [-1, 12, 40])
def test_guards_notice_writes_beside_a_tensor(zones, offset):
    z = zones.output((3,), "f32")
    store(z.pointer + offset)
    with pytest.raises(AssertionError, match=f"at bytes {offset} from"):
        zones.verify()


def test_guards_notice_that_an_input_changed(zones):
    x = zones.input(np.ones(3), "f32", name="x")
    store(x.pointer)
    with pytest.raises(AssertionError, match="x: 1 bytes"):
        zones.verify()


def test_what_is_updated_in_place_may_change(zones):
    store(zones.in_place(np.ones(3), "f32").pointer)
    zones.output((0,), "f32")
    zones.verify()
