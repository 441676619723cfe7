"""Tensors that say to C what they are, as those of PyTorch from 2.10 on (DLPack 1.3)."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

from test_launching import TorchTensor

CUDA, CPU = 2, 1
STREAM = 7  # PyTorch's current one
_TYPES = {"torch.float32": (2, 32), "torch.int8": (0, 8)}  # code and bits


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


_READ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_DLTensor))
_CURRENT = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class _Exchange(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("owning", ctypes.c_void_p * 3),
        ("read", _READ),
        ("current_stream", _CURRENT),
    )


def _read(tensor, found):
    tensor.times_read += 1
    if tensor.fails:
        return -1
    one = found[0]
    extents = ctypes.c_int64 * max(len(tensor.shape), 1)
    tensor.kept = extents(*tensor.shape), extents(*tensor.strides)
    one.data, one.byte_offset = tensor.address - tensor.begins_after, tensor.begins_after
    one.device_type, one.device = tensor.device_type, tensor.device
    one.rank, one.lanes = len(tensor.shape), 1
    one.code, one.bits = _TYPES[tensor.dtype]
    one.shape, one.strides = (ctypes.addressof(numbers) for numbers in tensor.kept)
    return 0


def _current_stream(device_type, device, stream):
    stream[0] = STREAM if device_type == CUDA else None
    return 0


def _capsule(pointer):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _PLACE]
    return make(pointer, b"dlpack_exchange_api", None)


_PLACE = ctypes.c_void_p
# A later version, which leads to the one that is known.
_KNOWN = _Exchange(1, 3, None, (_PLACE * 3)(), _READ(_read), _CURRENT(_current_stream))
_LATER = _Exchange(2, 0, ctypes.addressof(_KNOWN), (_PLACE * 3)(), _READ(), _CURRENT())


class Exchanged(TorchTensor):
    """`fails`: it cannot be read so; `begins_after`: bytes of its memory."""

    __dlpack_c_exchange_api__ = _capsule(ctypes.addressof(_LATER))
    fails = is_negated = False
    device_type, begins_after, times_read = CUDA, 0, 0

    def is_neg(self):
        return self.is_negated


class Parameter(Exchanged):
    """Read as its base is."""


class Derived(Exchanged):
    """Not read so, for it may answer otherwise."""


def torch_of(tensor=Exchanged, parameter=Parameter):
    """PyTorch, as far as it is looked at."""
    return SimpleNamespace(
        Tensor=tensor,
        nn=SimpleNamespace(Parameter=parameter),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: STREAM),
    )
