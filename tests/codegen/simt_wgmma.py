"""What `wgmma` does, warpgroup by warpgroup, as the PTX ISA writes it.

Places of registers and of elements in shared memory are written out here as the ISA's formulas,
apart from `tilec.layout`. When they run is for `simt_async` to say.
Source:   PTX ISA, "Register Fragments", "Canonical Layouts" and "Matrix Descriptor Format" of
          wgmma.mma_async
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

Array = Any

THREADS = 128
STEP_BYTES = 32

FACTORS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
TOTALS = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


@dataclass(frozen=True)
class Instruction:
    n: int
    d: str
    a: str
    b: str
    adds: bool
    a_along: bool  # contiguous along k
    b_along: bool


@lru_cache(maxsize=1024)
def addresses(descriptor: int, along: bool, across: int, element_bytes: int) -> Array:
    """Where each element (i, k) of a factor is read: an array [across, k].

    T elements are 16 bytes and S is the swizzle in such pieces. Contiguous along k, the layout is
    ((8, m), (T, 2)) : ((S T, SBO), (1, T)), else ((T, S, m), (8, k)) : ((1, T, LBO), (S T, SBO));
    bits of addresses are swizzled.
    """
    descriptor %= 1 << 64
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    assert descriptor >> 46 & 0xFFFF == 0, "the pattern begins where it repeats"
    swizzle, mask = {1: (128, 0x70), 2: (64, 0x30), 3: (32, 0x10)}[descriptor >> 62]
    i, k = np.ogrid[:across, : STEP_BYTES // element_bytes]
    if along:
        place = i % 8 * swizzle + i // 8 * stride + k * element_bytes
    else:
        chunk = swizzle // element_bytes
        place = i % chunk * element_bytes + i // chunk * leading + k % 8 * swizzle + k // 8 * stride
    place = start + place
    return place ^ (place >> 3 & mask)


def sums_place(columns: int) -> tuple[Array, Array]:
    """Row and column of each register: arrays [threads, registers]."""
    thread, i = np.ogrid[:THREADS, : columns // 2]
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
    column = 8 * (i // 4) + thread % 4 * 2 + i % 2
    return tuple(np.broadcast_arrays(row, column))


def a_place(element_bytes: int) -> tuple[Array, Array]:
    """Row and k of each element of the four words of a first factor: [threads, elements]."""
    word = 4 // element_bytes
    thread, i = np.ogrid[:THREADS, : 4 * word]
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // word % 2)
    k = thread % 4 * word + i % word + 4 * word * (i // (2 * word))
    return tuple(np.broadcast_arrays(row, k))


def multiply(instruction: Instruction, shared: Array, sums: Array, a: Array, b: int) -> Array:
    """The words of the sums of one warpgroup after an instruction.

    Shapes:   `shared` bytes, address 0 first; `sums` [threads, words]; `a` is a descriptor or
              [threads, 4] words
    """
    left_type, right_type = (np.dtype(FACTORS[name]) for name in (instruction.a, instruction.b))
    if np.ndim(a):
        left = np.zeros((64, STEP_BYTES // left_type.itemsize), left_type)
        left[a_place(left_type.itemsize)] = np.ascontiguousarray(a).view(left_type)
    else:
        left = _read(shared, int(a), instruction.a_along, 64, left_type)
    right = _read(shared, b, instruction.b_along, instruction.n, right_type)
    if instruction.a == "tf32":
        left, right = _cut(left), _cut(right)
    wide = np.int64 if instruction.d == "s32" else np.float64
    product = left.astype(wide) @ right.astype(wide).T
    total = np.ascontiguousarray(sums).view(TOTALS[instruction.d])
    found = product[sums_place(instruction.n)]
    if instruction.adds:
        found = found + total.astype(wide)
    return np.ascontiguousarray(found.astype(total.dtype)).view(sums.dtype)


def _cut(factor: Array) -> Array:
    """The last 13 bits of a tf32 are not looked at."""
    return (np.ascontiguousarray(factor).view(np.uint32) & 0xFFFFE000).view(np.float32)


def _read(shared: Array, descriptor: int, along: bool, across: int, element: Any) -> Array:
    at = addresses(descriptor, along, across, element.itemsize)
    content = shared[at[..., None] + np.arange(element.itemsize)]
    return np.ascontiguousarray(content).view(element)[..., 0]


# ---- how operations say it -----------------------------------------------------------------------

_NAME = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k\d+\.(\w+)\.(\w+)\.(\w+)")


def from_attributes(op: Any) -> Instruction:
    def word(name: str) -> str:
        [found] = re.findall(r"<(\w+)>", str(op.attributes[name]))
        return str(found)

    [columns] = re.findall(r"n = (\d+)", str(op.attributes["shape"]))
    return Instruction(
        int(columns),
        *(word(f"type{x}") for x in "DAB"),
        word("scaleD") == "one",
        word("layoutA") == "row",
        word("layoutB") == "col",
    )


def from_text(text: str) -> Instruction | None:
    """The instruction of an assembly statement whose first factor is in registers."""
    found = _NAME.search(text)
    if found is None:
        return None
    adds = re.search(r"setp\.ne\.b32 p, ([01]), 0;", text)
    last = re.search(r", p((?:, \d)*);", text)
    assert adds and last, text
    numbers = re.findall(r"\d", last[1])
    assert numbers[:2] == ([] if found[2] == "s32" else ["1", "1"])
    assert len(numbers) == {"s32": 0}.get(found[2], 3 if "16" in found[3] else 2)
    transposed = numbers[2:] == ["1"]
    return Instruction(int(found[1]), *found.groups()[1:], adds[1] == "1", True, not transposed)
