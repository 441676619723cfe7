"""Files of arrays, as NumPy writes them and as nobody should: what they hold, or why it is none."""

from __future__ import annotations

import io
import tracemalloc

import numpy as np
import pytest

from tilec.interpret.npy import read_npy, written_npy


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("utf-8" if version == 3 else "latin1")
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def described(descr: object = "<f4", shape: object = (3,), fortran: object = False) -> str:
    return repr({"descr": descr, "fortran_order": fortran, "shape": shape})


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "|b1", "<i8", ">u2", "|V2", "<c8", "|u1"])
@pytest.mark.parametrize("shape", [(), (5,), (0,), (2, 3), (1, 0, 7)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_what_numpy_writes(dtype, shape, order):
    rng = np.random.default_rng(3)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    data = rng.integers(0, 2, size, np.uint8).tobytes()
    array = np.asarray(np.frombuffer(data, dtype).reshape(shape), order=order)
    stream = io.BytesIO()
    np.save(stream, array)
    found = read_npy(stream.getvalue())
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative and found.flags.c_contiguous and found.flags.writeable
    assert found.shape == shape
    assert read_npy(written_npy(found)).tobytes() == found.tobytes()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_reads_each_version_of_the_format(version):
    found = read_npy(npy(described(), np.arange(3, dtype="<f4").tobytes(), version))
    np.testing.assert_array_equal(found, np.arange(3))


def test_reads_a_header_that_python_2_wrote():
    found = read_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}", bytes(12)))
    assert found.shape == (3,)


REFUSED = {
    "truth values for extents": (npy(described(shape=(True,)), b"\1" * 4), "extents are integers"),
    "a list for a shape": (npy(described(shape=[3]), bytes(12)), "header is none|extents"),
    "a number for a shape": (npy(described(shape=3), bytes(12)), "header is none|extents"),
    "fractions": (npy(described(shape=(1.0,)), bytes(4)), "header is none|extents"),
    "negative": (npy(described(shape=(-1,)), bytes(12)), "no extent is negative"),
    "negative twice": (npy(described(shape=(-3, -1)), bytes(12)), "no extent is negative"),
    "10^12": (npy(described(shape=(10**12,))), "takes 4000000000000 bytes, and 0 are there"),
    "10^30": (npy(described(shape=(10**30,))), "more elements than there are"),
    "10^30 beside 0": (npy(described(shape=(0, 10**30))), "more elements than there are"),
    "wraps": (npy(described(shape=(2**32, 2**32))), "and 0 are there"),
    "many axes": (npy(described(shape=(1,) * 65), bytes(4)), "it has 65 axes"),
    "cut": (npy(described(), bytes(11)), r"takes 12 bytes, and 11 are there"),
    "objects": (npy(described(descr="|O"), bytes(24)), "Python objects"),
    "objects in fields": (npy(described(descr=[("a", "|O")]), bytes(24)), "Python objects"),
    "no bytes": (npy(described(descr="|V0", shape=(10**18,))), "which no tensor has"),
    "no letters": (npy(described(descr="<U0", shape=(10**18,))), "which no tensor has"),
    "large elements": (npy(described(descr="|V2000000000"), bytes(9)), "and 9 are there"),
    "larger elements": (npy(described(descr="|V" + "9" * 40), bytes(9)), "header is none"),
    "arrays for elements": (npy(described(descr="(1000000000,)<f4")), "its header is none"),
    "no type": (npy(described(descr="nonsense")), "its header is none"),
    "code": (npy("__import__('os').abort()"), "its header is none"),
    "no expression": (npy("{'descr': "), "its header is none"),
    "keys": (npy("{'shape': (3,)}"), "its header is none"),
    "deep": (npy("-" * 9_000 + "1"), "it is nested too deeply"),
    "deep brackets": (npy("(" * 4_000 + ")" * 4_000), "its header is none"),
    "a deep sum": (npy("1" + "+1" * 4_000), "its header is none"),
    "long": (npy(" " * 60_000), "its header has 60000 bytes, more than 10000"),
    "gigabytes": (b"\x93NUMPY\2\0\xff\xff\xff\xff{}", "it ends within its header"),
    "no header": (b"\x93NUMPY\1\0", "it ends within its header|its header is none"),
    "no version": (b"\x93NUMPY", "its format has version 0"),
    "version 4": (npy(described(), bytes(12), 4), "its format has version 4"),
    "no UTF-8": (b"\x93NUMPY\3\0\2\0\0\0\xff\xff", "codec|header"),
    "a zero": (npy("\0"), "its header is none"),
    "a pickle": (b"\x80\4N.", "it is no .npy file"),
    "an archive": (b"PK\3\4", "an archive of several arrays"),
    "nothing": (b"", "it is no .npy file"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_says_why_a_file_holds_no_array(kind):
    content, said = REFUSED[kind]
    with pytest.raises(ValueError, match=said) as refused:
        read_npy(content)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("kind", ["10^12", "10^30", "wraps", "large elements", "gigabytes"])
def test_a_header_takes_no_memory_for_what_it_promises(kind):
    tracemalloc.start()
    with pytest.raises(ValueError):
        read_npy(REFUSED[kind][0])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20
