"""Integers of 8 and 16 bits, several in a 32-bit word: what one instruction does to all of them.

The back end takes such fragments apart where an operation has no form for them, and puts them
together again: some five instructions an element, where these take one or two for two.

Source:   PTX ISA, "prmt"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from tilec.ir.dialects import arith, llvm, vector
from tilec.ops.fragments import bit_width, i32, pack, unpack

_WORD_BITS = 32
# Bytes 0 and 1 of a word, and 2 and 3, each below a byte of another word (zeros), or of its signs.
_WITH_ZEROS = (0x4140, 0x4342)
_WITH_SIGNS = (0x9180, 0xB3A2)


def are_bytes_to_halves(source: ir.Type, target: ir.Type) -> bool:
    """Whether fragments of these types are bytes and 16-bit integers that `widened` makes."""
    return _bits(source) == 8 and _bits(target) == 16 and _fills_words(source)


def widened(values: ir.Value, target: ir.Type, *, is_signed: bool) -> ir.Value:
    """Bytes as integers of 16 bits."""
    selectors = _WITH_SIGNS if is_signed else _WITH_ZEROS
    halves = [_permuted(word, chosen) for word in _words(values) for chosen in selectors]
    return vector.bitcast(target, pack(halves))


def are_bf16_to_singles(source: ir.Type, target: ir.Type) -> bool:
    """Whether fragments of these types are pairs of bf16 and f32 that `as_singles` makes."""
    if not isinstance(source, ir.VectorType) or not isinstance(target, ir.VectorType):
        return False
    is_bf16 = isinstance(source.element_type, ir.BF16Type)
    is_single = isinstance(target.element_type, ir.F32Type)
    return is_bf16 and is_single and source.shape[0] % 2 == 0


def as_singles(values: ir.Value, target: ir.Type) -> ir.Value:
    """Pairs of bf16 as f32, of which each is the upper half: one instruction an element, where
    taking the upper one out of its word first takes two."""
    count = ir.VectorType(values.type).shape[0] // 2
    words = unpack(vector.bitcast(ir.VectorType.get([count], _word()), values))
    upper = i32(_signed(0xFFFF0000))
    bits = [one for word in words for one in (arith.shli(word, i32(16)), arith.andi(word, upper))]
    return arith.bitcast(target, pack(bits))


def may_shift_words(kind: ir.Type, count: int | None) -> bool:
    """Whether `shifted_right` is for fragments of this type and such a count, if it is known."""
    return _bits(kind) in (8, 16) and count is not None and _fills_words(kind)


def shifted_right(values: ir.Value, count: int) -> ir.Value:
    """Each element shifted by less than its bits; zeros come in."""
    bits = _bits(values.type)
    own = (1 << bits - count) - 1
    mask = sum(own << first for first in range(0, _WORD_BITS, bits))
    return _each_word(
        values, lambda word: arith.andi(arith.shrui(word, i32(count)), i32(_signed(mask)))
    )


def from_pieces(pieces: Sequence[ir.Value], kind: ir.Type) -> ir.Value:
    """A fragment of what consecutive accesses of 16 bits or more gave, integers of one width."""
    whole = pack(pieces)
    return whole if whole.type == kind else vector.bitcast(kind, whole)


def _each_word(values: ir.Value, change: Callable[[ir.Value], ir.Value]) -> ir.Value:
    return vector.bitcast(values.type, pack([change(word) for word in _words(values)]))


def _words(values: ir.Value) -> list[ir.Value]:
    kind = ir.VectorType(values.type)
    count = kind.shape[0] * _bits(kind) // _WORD_BITS
    return unpack(vector.bitcast(ir.VectorType.get([count], _word()), values))


def _permuted(word: ir.Value, selector: int) -> ir.Value:
    return llvm.call_intrinsic(
        _word(), "llvm.nvvm.prmt", [word, i32(0), i32(_signed(selector))], [], []
    )


def _fills_words(kind: ir.Type) -> bool:
    count: int = ir.VectorType(kind).shape[0]
    return count * _bits(kind) % _WORD_BITS == 0


def _bits(kind: ir.Type) -> int:
    """Of an element of a fragment of integers; 0 for anything else."""
    if not isinstance(kind, ir.VectorType) or not isinstance(kind.element_type, ir.IntegerType):
        return 0
    return 0 if kind.element_type.width == 1 else bit_width(kind.element_type)


def _word() -> ir.Type:
    return ir.IntegerType.get_signless(_WORD_BITS)


def _signed(word: int) -> int:
    return (word ^ 1 << 31) - (1 << 31)
