"""PTX loads and stores of one group of registers, under a mask or not.

Masked accesses are predicated instructions in inline assembly: LLVM has none for run-time masks
and would branch. A load's outputs are tied to the fill value, so a masked-off element has a
defined value.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, llvm, vector
from tilec.ops.fragments import pack, unpack


def load(pointer: ir.Value, element: ir.Type, count: int, *, read_only: bool) -> list[ir.Value]:
    """`count` neighbouring elements; `pointer` is aligned to all of them."""
    result = ir.VectorType.get([count], element)
    alignment = count * _bits(element) // 8
    loaded = llvm.load(result, pointer, alignment=alignment, invariant=read_only or None)
    return unpack(loaded)


def store(pointer: ir.Value, elements: Sequence[ir.Value]) -> None:
    """Write neighbouring elements; `pointer` is aligned to all of them."""
    alignment = len(elements) * _bits(elements[0].type) // 8
    llvm.store(pack(elements), pointer, alignment=alignment)


def load_masked(
    pointer: ir.Value, mask: ir.Value, fill: Sequence[ir.Value], *, read_only: bool
) -> list[ir.Value]:
    """The elements where the mask (i1) is set, `fill` where it is not."""
    words = _words(pack(fill))
    letter = _CONSTRAINT[_bits(words[0].type)]
    names = ", ".join(f"${i}" for i in range(len(words)))
    braces = f"{{{names}}}" if len(words) > 1 else names
    suffix = (".nc" if read_only else "") + _suffix(words, fill)
    text = f"@${len(words) + 1} ld.global{suffix} {braces}, [${len(words)}];"
    outputs = ",".join(f"={letter}" for _ in words)
    ties = ",".join(str(i) for i in range(len(words)))
    result = _struct([w.type for w in words])
    out = llvm.inline_asm(
        result, [pointer, mask, *words], text, f"{outputs},l,b,{ties}", has_side_effects=True
    )
    if len(words) > 1:
        loaded = [
            llvm.extractvalue(w.type, out, ir.DenseI64ArrayAttr.get([i]))
            for i, w in enumerate(words)
        ]
    else:
        loaded = [out]
    return _elements(loaded, fill[0].type, len(fill))


def store_masked(
    pointer: ir.Value, mask: ir.Value | None, elements: Sequence[ir.Value], *, relaxed: bool = False
) -> None:
    """Write the elements if the mask (i1) is set; None: always.

    `relaxed`: other threads and programs may write the same elements at the same time. Each element
    is then what one of them wrote (PTX ISA, "Memory Consistency Model": strong operations).
    """
    words = _words(pack(elements))
    letter = _CONSTRAINT[_bits(words[0].type)]
    first = 1 if mask is None else 2
    names = ", ".join(f"${i + first}" for i in range(len(words)))
    braces = f"{{{names}}}" if len(words) > 1 else names
    predicate, operands, constraints = "", [pointer], "l"
    if mask is not None:
        predicate, operands, constraints = "@$1 ", [pointer, mask], "l,b"
    order = ".relaxed.gpu" if relaxed else ""
    text = f"{predicate}st{order}.global{_suffix(words, elements)} [$0], {braces};"
    constraints = ",".join((constraints, *(letter for _ in words)))
    llvm.inline_asm(None, [*operands, *words], text, constraints, has_side_effects=True)


# ---- words: what one register of an instruction holds --------------------------------------------


# The constraint letters of LLVM's NVPTX inline assembly, by the width of a register.
_CONSTRAINT = {16: "h", 32: "r", 64: "l"}


def _suffix(words: Sequence[ir.Value], elements: Sequence[ir.Value]) -> str:
    # A byte lives in a 16-bit register, which may be wider than what the instruction moves.
    bits = min(_bits(words[0].type), len(elements) * _bits(elements[0].type))
    return (f".v{len(words)}" if len(words) > 1 else "") + f".b{bits}"


def _bits(element: ir.Type) -> int:
    if isinstance(element, ir.IntegerType):
        return int(ir.IntegerType(element).width)
    return int(ir.FloatType(element).width)


def _struct(types: Sequence[ir.Type]) -> ir.Type:
    if len(types) == 1:
        return types[0]
    return ir.Type.parse(f"!llvm.struct<({', '.join(map(str, types))})>")


def _words(fragment: ir.Value) -> list[ir.Value]:
    """The fragment's bits as the fewest registers of 16, 32 or 64 bits."""
    kind = ir.VectorType(fragment.type)
    total = kind.shape[0] * _bits(kind.element_type)
    word = 64 if _bits(kind.element_type) == 64 else min(32, max(16, total))
    words = ir.VectorType.get([max(1, total // word)], ir.IntegerType.get_signless(word))
    if total < 16:
        [byte] = unpack(fragment)
        return [arith.extui(ir.IntegerType.get_signless(16), byte)]
    return unpack(fragment if fragment.type == words else vector.bitcast(words, fragment))


def _elements(words: Sequence[ir.Value], element: ir.Type, count: int) -> list[ir.Value]:
    total = count * _bits(element)
    if total < 16:
        return [arith.trunci(element, words[0])]
    packed = pack(words)
    result = ir.VectorType.get([count], element)
    return unpack(packed if packed.type == result else vector.bitcast(result, packed))
