"""Values that go from thread to thread: shuffles within a warp, and accesses to shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.layout import LANE_BITS, LANES
from tilec.layout.shared_access import ThreadAccesses
from tilec.ops.fragments import bit_width, byte_offset, i32, in_memory, pack, unpack
from tilec.ops.lowering import SHARED_ALIGNMENT, Lowering

_FULL_WARP = -1


def shuffle_xor(value: ir.Value, lane_mask: int) -> ir.Value:
    """The value of the lane whose number differs in these bits.

    Source:   PTX ISA, "shfl.sync", mode bfly
    """
    return _shuffle(value, "bfly", i32(lane_mask))


def shuffle_from(value: ir.Value, lane: ir.Value) -> ir.Value:
    """The value of a lane of this warp, by its number (i32)."""
    return _shuffle(value, "idx", lane)


def _shuffle(value: ir.Value, kind: str, operand: ir.Value) -> ir.Value:
    words = _to_words(value)
    word = ir.IntegerType.get_signless(32)
    attribute = ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>")
    moved = [
        nvvm.shfl_sync(word, i32(_FULL_WARP), w, operand, i32(LANES - 1), attribute) for w in words
    ]
    return _from_words(moved, value.type)


def _to_words(value: ir.Value) -> list[ir.Value]:
    """The bits of a scalar as 32-bit integers."""
    word, wide = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    bits = _as_integer(value)
    width = ir.IntegerType(bits.type).width
    if width == 64:
        high = arith.shrui(bits, arith.constant(wide, 32))
        return [arith.trunci(word, bits), arith.trunci(word, high)]
    return [bits if width == 32 else arith.extui(word, bits)]


def _from_words(words: Sequence[ir.Value], result: ir.Type) -> ir.Value:
    wide = ir.IntegerType.get_signless(64)
    width = _register_width(result)
    if width == 64:
        low, high = (arith.extui(wide, w) for w in words)
        bits = arith.ori(low, arith.shli(high, arith.constant(wide, 32)))
    elif width == 32:
        [bits] = words
    else:
        bits = arith.trunci(ir.IntegerType.get_signless(width), words[0])
    return _from_integer(bits, result)


def _register_width(kind: ir.Type) -> int:
    return 1 if str(kind) == "i1" else bit_width(kind)


def _as_integer(value: ir.Value) -> ir.Value:
    if isinstance(value.type, ir.IntegerType):
        return value
    integer = ir.IntegerType.get_signless(_register_width(value.type))
    if isinstance(value.type, ir.IndexType):
        return arith.index_cast(integer, value)
    return arith.bitcast(integer, value)


def _from_integer(bits: ir.Value, result: ir.Type) -> ir.Value:
    if isinstance(result, ir.IntegerType):
        return bits
    if isinstance(result, ir.IndexType):
        return arith.index_cast(result, bits)
    return arith.bitcast(result, bits)


def to_memory(value: ir.Value) -> ir.Value:
    """A scalar as it stands in memory: a bool as a byte, `index` as 64 bits."""
    held = in_memory(value.type)
    if held == value.type:
        return value
    if isinstance(value.type, ir.IndexType):
        return arith.index_cast(held, value)
    return arith.extui(held, value)


def from_memory(value: ir.Value, element: ir.Type) -> ir.Value:
    """A scalar as registers hold it, from what stands in memory."""
    if value.type == element:
        return value
    if isinstance(element, ir.IndexType):
        return arith.index_cast(element, value)
    zero = arith.constant(value.type, 0)
    return arith.cmpi(arith.CmpIPredicate.ne, value, zero)


def as_in_memory(fragment: ir.Value) -> ir.Value:
    """A fragment whose elements are as they stand in memory."""
    element = ir.VectorType(fragment.type).element_type
    if in_memory(element) == element:
        return fragment
    return pack([to_memory(value) for value in unpack(fragment)])


def write_shared(
    buffer: ir.Value, accesses: ThreadAccesses, registers: Sequence[ir.Value], lowering: Lowering
) -> None:
    """Each thread that takes part stores its registers (as in memory) where the plan says."""
    taking_part = takes_part(accesses, lowering)
    if taking_part is None:
        _write(buffer, accesses, registers, lowering)
        return
    branch = scf.IfOp(taking_part)
    with ir.InsertionPoint(branch.then_block):
        _write(buffer, accesses, registers, lowering)
        scf.yield_([])


def _write(
    buffer: ir.Value, accesses: ThreadAccesses, registers: Sequence[ir.Value], lowering: Lowering
) -> None:
    size = bit_width(registers[0].type) // 8
    address = Address(buffer, accesses, size, lowering)
    for access in accesses.accesses:
        stored = pack([registers[r] for r in access.registers])
        alignment = len(access.registers) * size
        llvm.store(stored, address.of(access.xor, access.add), alignment=alignment)


def read_shared(
    buffer: ir.Value, accesses: ThreadAccesses, element: ir.Type, lowering: Lowering
) -> dict[int, list[ir.Value]]:
    """What each thread loads (as in memory), by register: as often as accesses name it."""
    size = bit_width(element) // 8
    address = Address(buffer, accesses, size, lowering)
    found: dict[int, list[ir.Value]] = {}
    for access in accesses.accesses:
        count = len(access.registers)
        kind = ir.VectorType.get([count], element)
        pointer = address.of(access.xor, access.add)
        loaded = unpack(llvm.load(kind, pointer, alignment=min(SHARED_ALIGNMENT, count * size)))
        for register, value in zip(access.registers, loaded, strict=True):
            found.setdefault(register, []).append(value)
    return found


def takes_part(accesses: ThreadAccesses, lowering: Lowering) -> ir.Value | None:
    """Whether this thread does what the plan says (i1); None: all do."""
    mask = accesses.lane_mask | accesses.warp_mask << (LANE_BITS)
    if mask == 0:
        return None
    bits = arith.andi(lowering.thread, i32(mask))
    return arith.cmpi(arith.CmpIPredicate.eq, bits, i32(accesses.lane_value))


class Address:
    """Addresses (ptr<3>) of a thread's accesses; those of equal XOR parts share arithmetic."""

    def __init__(
        self, buffer: ir.Value, accesses: ThreadAccesses, size: int, lowering: Lowering
    ) -> None:
        self.buffer = buffer
        self.size = size
        self.thread = lowering.thread_number((*accesses.lane, *accesses.warp))
        self._starts: dict[int, ir.Value] = {}

    def of(self, xor: int, add: int) -> ir.Value:
        if xor not in self._starts:
            element = arith.xori(self.thread, i32(xor)) if xor else self.thread
            self._starts[xor] = byte_offset(self.buffer, arith.muli(element, i32(self.size)))
        start = self._starts[xor]
        return byte_offset(start, i32(add * self.size)) if add else start
