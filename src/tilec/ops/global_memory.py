"""PTX loads and stores of one group of registers, under a mask or not.

Masked accesses are predicated instructions in inline assembly: LLVM has none for run-time masks
and would branch. A load's outputs are tied to the fill value, so a masked-off element has a
defined value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, llvm, vector
from tilec.ops.fragments import pack, unpack, zero


@dataclass(frozen=True)
class Use:
    """What is known of an access beside its place.

    `is_read_only`: nobody writes there while the kernel runs. `is_last`: nobody needs in the cache
    what it touches. `is_relaxed`: others may write there at the same time, and each element is then
    what one of them wrote (PTX ISA, "Memory Consistency Model": strong operations).
    """

    is_read_only: bool = False
    is_last: bool = False
    is_relaxed: bool = False

    @property
    def cache(self) -> str:
        """PTX ISA, "Cache Operators": .cs is for what is likely to be accessed once."""
        return ".cs" if self.is_last else ""


def load(pointer: ir.Value, element: ir.Type, count: int, use: Use) -> list[ir.Value]:
    """`count` neighbouring elements; `pointer` is aligned to all of them."""
    if use.is_last:
        return load_masked(pointer, None, [zero(element)] * count, use)
    result = ir.VectorType.get([count], element)
    alignment = count * _bits(element) // 8
    loaded = llvm.load(result, pointer, alignment=alignment, invariant=use.is_read_only or None)
    return unpack(loaded)


def store(pointer: ir.Value, elements: Sequence[ir.Value], use: Use) -> None:
    """Write neighbouring elements; `pointer` is aligned to all of them."""
    if use.is_last or use.is_relaxed:
        store_masked(pointer, None, elements, use)
        return
    alignment = len(elements) * _bits(elements[0].type) // 8
    llvm.store(pack(elements), pointer, alignment=alignment)


def load_masked(
    pointer: ir.Value,
    mask: ir.Value | None,
    fill: Sequence[ir.Value],
    use: Use,
    words: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """The elements where the mask (i1) is set (None: all), `fill` where it is not.

    `words` are those of `fill`, where many loads have the same.
    """
    words = words or words_of(fill)
    letter = _CONSTRAINT[_bits(words[0].type)]
    names = ", ".join(f"${i}" for i in range(len(words)))
    braces = f"{{{names}}}" if len(words) > 1 else names
    suffix = use.cache + (".nc" if use.is_read_only else "") + _suffix(words, fill)
    text = f"ld.global{suffix} {braces}, [${len(words)}];"
    operands, constraints = [pointer], [*(f"={letter}" for _ in words), "l"]
    if mask is not None:
        text = f"@${len(words) + 1} {text}"
        operands += [mask, *words]
        constraints += ["b", *(str(i) for i in range(len(words)))]
    result = _struct([w.type for w in words])
    out = llvm.inline_asm(result, operands, text, ",".join(constraints), has_side_effects=True)
    if len(words) > 1:
        loaded = [
            llvm.extractvalue(w.type, out, ir.DenseI64ArrayAttr.get([i]))
            for i, w in enumerate(words)
        ]
    else:
        loaded = [out]
    return _elements(loaded, fill[0].type, len(fill))


# No grid has extent 0: a branch that is never taken, at a condition that no assembler knows.
KEEP_TOGETHER = (
    "{ .reg .pred never; .reg .u32 blocks; mov.u32 blocks, %nctaid.z;"
    " setp.eq.u32 never, blocks, 0; @never exit; }"
)


def keep_together() -> None:
    """Have the loads before this begin before anything waits for one of them.

    In loops ptxas saves registers by beginning each load where it is used, after the one before has
    come: argmax of rows then is at 0.81 of the copy rate, not 1.03. It moves none across a branch.
    """
    llvm.inline_asm(None, [], KEEP_TOGETHER, "", has_side_effects=True)


def store_masked(
    pointer: ir.Value, mask: ir.Value | None, elements: Sequence[ir.Value], use: Use
) -> None:
    """Write the elements if the mask (i1) is set; None: always."""
    words = words_of(elements)
    letter = _CONSTRAINT[_bits(words[0].type)]
    first = 1 if mask is None else 2
    names = ", ".join(f"${i + first}" for i in range(len(words)))
    braces = f"{{{names}}}" if len(words) > 1 else names
    predicate, operands, constraints = "", [pointer], "l"
    if mask is not None:
        predicate, operands, constraints = "@$1 ", [pointer, mask], "l,b"
    kind = "st.relaxed.gpu.global" if use.is_relaxed else f"st.global{use.cache}"
    text = f"{predicate}{kind}{_suffix(words, elements)} [$0], {braces};"
    constraints = ",".join((constraints, *(letter for _ in words)))
    llvm.inline_asm(None, [*operands, *words], text, constraints, has_side_effects=True)


def select_elements(
    condition: ir.Value, yes: Sequence[ir.Value], no: Sequence[ir.Value]
) -> list[ir.Value]:
    """One of two lists of elements of one type, a register at a time."""
    pairs = zip(words_of(yes), words_of(no), strict=True)
    chosen = [arith.select(condition, one, other) for one, other in pairs]
    return _elements(chosen, yes[0].type, len(yes))


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


def words_of(elements: Sequence[ir.Value]) -> list[ir.Value]:
    """The bits of the elements as the fewest registers of 16, 32 or 64 bits."""
    element = elements[0].type
    each = _bits(element)
    total = len(elements) * each
    if total < 16:
        [byte] = elements
        return [arith.extui(ir.IntegerType.get_signless(16), byte)]
    word = ir.IntegerType.get_signless(64 if each == 64 else min(32, total))
    if each == total:
        return [elements[0] if element == word else arith.bitcast(word, elements[0])]
    if element == word:
        return list(elements)
    return unpack(vector.bitcast(ir.VectorType.get([total // word.width], word), pack(elements)))


def _elements(words: Sequence[ir.Value], element: ir.Type, count: int) -> list[ir.Value]:
    total = count * _bits(element)
    if total < 16:
        return [arith.trunci(element, words[0])]
    if words[0].type == element:
        return list(words)
    if count == 1:
        return [arith.bitcast(element, words[0])]
    return unpack(vector.bitcast(ir.VectorType.get([count], element), pack(words)))
