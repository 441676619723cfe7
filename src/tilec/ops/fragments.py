"""What one thread holds: scalars, fragments (vectors of registers), pointers; and as memory has it.

Everything is emitted at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, vector

# By class and not by name: these questions are asked for every register.
_F8 = tuple(kind for name, kind in vars(ir).items() if name.startswith("Float8"))


def in_registers(element: ir.Type) -> ir.Type:
    """The type of an element in registers: f8 is held by its bits, tf32 as an f32."""
    if isinstance(element, _F8):
        return ir.IntegerType.get_signless(8)
    if isinstance(element, ir.FloatTF32Type):
        return ir.F32Type.get()
    return element


def in_memory(element: ir.Type) -> ir.Type:
    """The type of an element in memory: a bool is a byte, `index` 64 bits."""
    if isinstance(element, ir.IntegerType):
        return ir.IntegerType.get_signless(8) if element.width == 1 else element
    if isinstance(element, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    return in_registers(element)


def bit_width(element: ir.Type) -> int:
    """Bits of an element in memory."""
    held = in_memory(element)
    width: int = (
        ir.IntegerType(held) if isinstance(held, ir.IntegerType) else ir.FloatType(held)
    ).width
    return width


def i32(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), value)


def i64(value: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(64), value)


def zero(element: ir.Type) -> ir.Value:
    """Zero of an integer or float type."""
    return arith.constant(element, 0.0 if isinstance(element, ir.FloatType) else 0)


def index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def llvm_ptr(space: int) -> ir.Type:
    return ir.Type.parse(f"!llvm.ptr<{space}>")


# An index of `llvm.getelementptr` that stands among its operands.
_DYNAMIC = -(2**31)


def element_offset(base: ir.Value, offset: ir.Value, element: ir.Type) -> ir.Value:
    """`base + offset` elements; `offset` is an i32 or i64 value."""
    done = ir.Operation.create(
        "llvm.getelementptr",
        results=[base.type],
        operands=[base, offset],
        attributes={
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC]),
            "elem_type": ir.TypeAttr.get(element),
        },
    )
    return done.result


def byte_offset(base: ir.Value, offset: ir.Value) -> ir.Value:
    return element_offset(base, offset, ir.IntegerType.get_signless(8))


def unpack(fragment: ir.Value) -> list[ir.Value]:
    """The elements of a fragment, in register order."""
    count = ir.VectorType(fragment.type).shape[0]
    return [element_of(fragment, i) for i in range(count)]


def element_of(fragment: ir.Value, register: int) -> ir.Value:
    """The element in one register of a fragment."""
    place = ir.DenseI64ArrayAttr.get([register])
    done = ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(fragment.type).element_type],
        operands=[fragment],
        attributes={"static_position": place},
    )
    return done.result


def pack(elements: Sequence[ir.Value]) -> ir.Value:
    """A fragment of these elements."""
    result = ir.VectorType.get([len(elements)], elements[0].type)
    done = ir.Operation.create("vector.from_elements", results=[result], operands=list(elements))
    return done.result


def select_registers(fragment: ir.Value, registers: Sequence[int]) -> ir.Value:
    """A fragment whose register i is register `registers[i]` of the given one."""
    count = ir.VectorType(fragment.type).shape[0]
    if list(registers) == list(range(count)):
        return fragment
    elements = {r: element_of(fragment, r) for r in sorted(set(registers))}
    return pack([elements[r] for r in registers])


def certain(registers: Sequence[int | None]) -> list[int]:
    """Register numbers of a view in which none is left out."""
    assert None not in registers, "only slices leave registers out"
    return [r for r in registers if r is not None]


def splat(value: ir.Value, count: int) -> ir.Value:
    return vector.broadcast(ir.VectorType.get([count], value.type), value)


def with_element(kind: ir.Type, element: ir.Type) -> ir.Type:
    """The scalar or vector type, with another element."""
    if isinstance(kind, ir.VectorType):
        return ir.VectorType.get(kind.shape, element)
    return element
