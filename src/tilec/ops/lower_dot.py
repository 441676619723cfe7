"""Matrix products on a GPU: `mma.sync` on the words of fragments, or FMA by each thread.

Products of f8 are those of f16, which holds every f8: tensor cores that take f8 sum in fewer bits
than f32 has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, vector
from tilec.ir.dialects import math as mlir_math
from tilec.layout import Layout
from tilec.layout.fma import fma_operand_layouts
from tilec.layout.mma import KOrder, Mma, k_order, operand_layouts
from tilec.layout.products import (
    Step,
    elements_per_word,
    fma_steps,
    lanes_beyond,
    mma_steps,
)
from tilec.ops.fragments import bit_width, i32, pack, unpack, zero
from tilec.ops.lower_layout import Held, read_as_needed
from tilec.ops.lowering import Lowering
from tilec.ops.notes import Multiplied
from tilec.ops.staged import ASYNC, Ring, StagedFactor

# Elements of a word, and how far one instruction goes along k: the longest first.
# Source: PTX ISA, "mma", the table of shapes; f8 goes as f16.
_SHAPES: dict[str, tuple[int, tuple[int, ...]]] = {
    "f16": (2, (16, 8)), "bf16": (2, (16, 8)), "tf32": (1, (8, 4)), "f64": (1, (4,)),
    "i8": (4, (32, 16)), "f8E4M3FN": (4, (16,)), "f8E5M2": (4, (16,)),
}  # fmt: skip


def mma_for(element: str, depth: int) -> Mma | None:
    """The instruction that multiplies this element type along `depth`; None: threads use FMA.

    A `depth` shorter than any is filled up with zeros.
    """
    if element not in _SHAPES:
        return None
    word, lengths = _SHAPES[element]
    k = next((k for k in lengths if depth % k == 0), lengths[-1])
    return Mma(8 if element == "f64" else 16, 8, k, word)


@dataclass(frozen=True)
class Factor:
    """One factor of a product: its element type in the tile dialect, layout and registers."""

    element: str
    layout: Layout
    fragment: ir.Value | StagedFactor
    is_unsigned: bool = False

    def read(self, wanted: Layout, lowering: Lowering) -> Callable[[int], Held]:
        """The registers of this layout by their numbers."""
        fragment = self.fragment
        if not isinstance(fragment, ir.Value):
            assert self.layout == wanted, "what lies in shared memory is read as it is wanted"
            return fragment.reader(lowering)
        if self.layout == wanted:
            return lambda register: Held(fragment, register)
        return read_as_needed(self.layout, wanted, fragment, lowering)

    @property
    def is_f8(self) -> bool:
        return self.element.startswith("f8")


def lower_fma(
    a: Factor, b: Factor, layout: Layout, sums: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    """The registers `sums` of a tile of this layout plus the product, in order of k.

    Factors come in any layout. What a thread needs of them is far more than its registers, so it is
    read from shared memory where it is used.
    """
    wanted = fma_operand_layouts(layout, a.layout.shape[-1])
    left, right = (
        factor.read(target, lowering) for factor, target in zip((a, b), wanted, strict=True)
    )
    sums = list(sums)
    steps = fma_steps(*wanted, layout)
    lowering.note(Multiplied("fma", len(steps), a.layout, b.layout, layout))
    meanwhile = _spread(len(steps), lowering, ())
    for number, step in enumerate(steps):
        meanwhile(number)
        sums[step.c] = mlir_math.fma(left(step.a).value, right(step.b).value, sums[step.c])
    return sums


def lower_mma(
    mma: Mma,
    a: Factor,
    b: Factor,
    layout: Layout,
    sums: Sequence[ir.Value],
    lowering: Lowering,
) -> list[ir.Value]:
    """The registers `sums` of a tile of this layout plus the product.

    Factors come in the layouts that the instruction takes them in, or in any others: then they are
    read from shared memory where they are used.
    """
    depth = a.layout.shape[-1]
    order = _order_of((a, b), layout, mma)
    wanted = operand_layouts(layout, mma, depth, order)
    sums = list(sums)
    sides = [
        _Words(factor, target, depth, mma, lowering)
        for factor, target in zip((a, b), wanted, strict=True)
    ]
    unused = zero(sums[0].type)
    instruction = _Instruction(mma, a, b)
    steps = mma_steps(*wanted, layout, mma, order)
    lowering.note(Multiplied(instruction.name, len(steps), *wanted, layout))
    along_k = len(steps) * mma.k // depth if depth % mma.k == 0 else len(steps)
    rotated = _rotated(sides, steps[:along_k], lowering)
    meanwhile = _spread(len(steps) - (along_k if rotated else 0), lowering, sides)
    for number, step in enumerate(steps):
        if number % along_k == 0:
            _read_ahead(sides, steps[number : number + 2 * along_k])
        if rotated is not None and number == len(steps) - along_k:
            rotated.read_next()
        found = [unused if r is None else sums[r] for r in step.c]
        left, right = (side.of(words) for side, words in zip(sides, (step.a, step.b), strict=True))
        for register, value in zip(step.c, instruction.emit(left, right, found), strict=True):
            if register is not None:
                sums[register] = value
        meanwhile(number)
    return sums


# Units: bytes. What a thread holds of a factor side by side, where threads load it themselves: the
# widest access.
_SIDE_BY_SIDE = 16


def order_of_neighbours(mma: Mma, element_bytes: int, depth: int) -> KOrder:
    """The order along k in which what a thread holds of factors is as wide as accesses are."""
    return k_order(mma, depth, _SIDE_BY_SIDE // element_bytes)


def _order_of(factors: Sequence[Factor], sums: Layout, mma: Mma) -> KOrder:
    """The order along k in which a factor came; that of instructions if none came in another."""
    depth = factors[0].layout.shape[-1]
    held = [factor.fragment for factor in factors if isinstance(factor.fragment, ir.Value)]
    if len(held) == len(factors):
        size = bit_width(ir.VectorType(held[0].type).element_type) // 8
        other = order_of_neighbours(mma, size, depth)
        layouts = operand_layouts(sums, mma, depth, other)
        if any(one.layout == wanted for one, wanted in zip(factors, layouts, strict=True)):
            return other
    return k_order(mma, depth)


# Instructions of a product between loads into registers and what stores them.
_STEPS_OF_PART = 4


def _spread(steps: int, lowering: Lowering, sides: Sequence[_Words]) -> Callable[[int], None]:
    """Emits, at each of these steps by its number, its share of what is to be done meanwhile.

    Copies are spread evenly. What goes through registers begins early and goes on quickly: its last
    stores are what all threads wait for.
    """
    whole = len(lowering.meanwhile)
    is_early = any(side.is_in_ring and not side.is_copied for side in sides)

    def emit(number: int) -> None:
        left = whole * max(0, steps - 1 - number) // steps
        if is_early:
            left = whole - (number + 1) // _STEPS_OF_PART
            left = min(left, -(-whole * max(0, steps - 1 - number) // steps))
        lowering.do_meanwhile(max(0, left))

    return emit


def _read_ahead(sides: Sequence[_Words], steps: Sequence[Step]) -> None:
    """Read what instructions take from a ring, for these and the next along k: the assembler moves
    no read before a copy that is emitted meanwhile."""
    for side, name in zip(sides, ("a", "b"), strict=True):
        if side.is_copied:
            for step in steps:
                side.of(getattr(step, name))


@dataclass(frozen=True)
class _Rotated:
    """What the first instructions of a turn take, read by the turn before: as variables, by words.

    So the last instructions of a turn have time for the barrier, and for what comes after it.
    """

    ring: Ring
    sides: Sequence[_Words]
    variables: Sequence[dict[int, tuple[ir.Value, ...]]]
    lowering: Lowering

    def read_next(self) -> None:
        """All reads of this turn's slot have been emitted."""
        self.lowering.do_meanwhile()
        self.ring.commit()
        self.ring.wait()
        for side, variables in zip(self.sides, self.variables, strict=True):
            factor = side.factor.fragment
            assert isinstance(factor, StagedFactor)
            _keep(side.read_by(factor.reader_of_next(self.lowering)), variables)


def _keep(side: _Words, variables: dict[int, tuple[ir.Value, ...]]) -> None:
    for number, places in variables.items():
        for word, place in zip(side.made(number), places, strict=True):
            llvm.store(word, place)


def _rotated(sides: Sequence[_Words], first: Sequence[Step], lowering: Lowering) -> _Rotated | None:
    """Begin a turn with what the turn before has read; before the first one, that is read there."""
    factors = [side.factor.fragment for side in sides]
    rings = [one.ring for one in factors if isinstance(one, StagedFactor) and one.ring.rotates]
    if len(rings) < len(factors):
        assert not rings, "what rotates is read by one product"
        return None
    [ring, _] = rings
    word = ir.IntegerType.get_signless(32)
    variables: list[dict[int, tuple[ir.Value, ...]]] = []
    with ring.places[-1]:
        ring.wait()
    for side, factor, name in zip(sides, factors, ("a", "b"), strict=True):
        numbers = sorted({n for step in first for n in getattr(step, name) if n is not None})
        assert isinstance(factor, StagedFactor)
        registers = [register for number in numbers for register in side.registers(number)]
        with ring.places[-1]:
            before = side.read_by(factor.reader_of_first(registers, lowering))
            kept = {n: tuple(lowering.variable() for _ in before.made(n)) for n in numbers}
            _keep(before, kept)
        for number, places in kept.items():
            side.give(number, tuple(llvm.load(word, place) for place in places))
        variables.append(kept)
    return _Rotated(ring, sides, variables, lowering)


# ---- words ---------------------------------------------------------------------------------------


class _Words:
    """The words of a factor as an instruction takes them, each made when it is asked for, once."""

    def __init__(
        self, factor: Factor, wanted: Layout, depth: int, mma: Mma, lowering: Lowering
    ) -> None:
        self.factor = self._factor = factor
        self._word = mma.word
        self._held = elements_per_word(mma, depth)
        self._beyond = lanes_beyond(mma, depth)
        self._lowering = lowering
        self._read = factor.read(wanted, lowering)
        fragment = factor.fragment
        self.is_in_ring = isinstance(fragment, StagedFactor)
        self.is_copied = isinstance(fragment, StagedFactor) and fragment.ring.fill == ASYNC
        self._made: dict[int, tuple[ir.Value, ...]] = {}
        self._as_words: dict[ir.Value, ir.Value] = {}

    def of(self, numbers: Sequence[int | None]) -> list[ir.Value]:
        """These words, zero for None. One of f8 becomes two: the first of all, then the second.

        Along k an instruction then takes elements in another order, the same in both factors.
        """
        nothing = self._nothing()
        made = [(nothing, nothing) if n is None else self._make(n) for n in numbers]
        parts = 2 if self._factor.is_f8 else 1
        return [words[part] for part in range(parts) for words in made]

    def read_by(self, read: Callable[[int], Held]) -> _Words:
        """The same words of another slot."""
        other = copy(self)
        other._read, other._made, other._as_words = read, {}, {}
        return other

    def registers(self, number: int) -> range:
        """Those of a word."""
        return range(number * self._held, (number + 1) * self._held)

    def give(self, number: int, words: tuple[ir.Value, ...]) -> None:
        """Words that are there already."""
        self._made[number] = words

    def made(self, number: int) -> tuple[ir.Value, ...]:
        if number not in self._made:
            self._make(number)
        return self._made[number]

    def _nothing(self) -> ir.Value:
        is_f64 = self._factor.element == "f64"
        return zero(ir.F64Type.get() if is_f64 else ir.IntegerType.get_signless(32))

    def _make(self, number: int) -> tuple[ir.Value, ...]:
        if number not in self._made:
            word = self._data_only(self._packed(number * self._held))
            is_e4m3 = "E4M3" in self._factor.element
            self._made[number] = _as_f16(word, is_e4m3=is_e4m3) if self._factor.is_f8 else (word,)
        return self._made[number]

    def _data_only(self, word: ir.Value) -> ir.Value:
        """Zero in the lanes that are beyond the tile."""
        if self._beyond == 0:
            return word
        lane = arith.andi(self._lowering.thread, i32(self._beyond))
        has_data = arith.cmpi(arith.CmpIPredicate.eq, lane, i32(0))
        return arith.select(has_data, word, self._nothing())

    def _packed(self, first: int) -> ir.Value:
        """The word of the registers from this one on; zeros fill it up."""
        registers = [self._read(first + i) for i in range(self._held)]
        if self._factor.element == "f64":
            return registers[0].value
        start = registers[0]
        are_word = self._held == self._word and start.place % self._word == 0
        neighbours = [Held(start.fragment, start.place + i) for i in range(self._held)]
        if are_word and registers == neighbours and start.count % self._word == 0:
            return vector.extract(self._words_of(start.fragment), [], [start.place // self._word])
        values = [register.value for register in registers]
        values += [zero(values[0].type)] * (self._word - self._held)
        return vector.extract(self._words_of(pack(values)), [], [0])

    def _words_of(self, fragment: ir.Value) -> ir.Value:
        if fragment not in self._as_words:
            kind = ir.VectorType(fragment.type)
            words = ir.VectorType.get(
                [kind.shape[0] // self._word], ir.IntegerType.get_signless(32)
            )
            self._as_words[fragment] = vector.bitcast(words, fragment)
        return self._as_words[fragment]


def _as_f16(word: ir.Value, *, is_e4m3: bool) -> tuple[ir.Value, ir.Value]:
    """Four f8 in a word as two words of two f16, exactly."""
    # Each byte becomes the high one of 16 bits: f8e5m2 is then f16.
    even = arith.ori(
        arith.shli(arith.andi(word, i32(0xFF)), i32(8)),
        arith.shli(arith.andi(word, i32(0xFF00)), i32(16)),
    )
    odd = arith.ori(
        arith.andi(arith.shrui(word, i32(8)), i32(0xFF00)), arith.andi(word, i32(-0x1000000))
    )
    if not is_e4m3:
        return even, odd
    return _e4m3_to_f16(even), _e4m3_to_f16(odd)


def _e4m3_to_f16(bits: ir.Value) -> ir.Value:
    """Two f8e4m3, in the high bytes of two halves, as two f16.

    The exponent has a bit less and a bias that is less by 8: shifted by one, numbers are 2^8 too
    small, subnormal ones too. NaN, the largest pattern, would be 480, more than any number.
    """
    sign = arith.andi(bits, i32(-0x7FFF8000))
    rest = arith.shrui(arith.andi(bits, i32(0x7F007F00)), i32(1))
    f16 = ir.F16Type.get()
    pair = ir.VectorType.get([2], f16)

    def both(value: float) -> ir.Value:
        return vector.broadcast(pair, arith.constant(f16, value))

    magnitude = arith.mulf(llvm.bitcast(pair, rest), both(256.0))
    is_nan = arith.cmpf(arith.CmpFPredicate.OGT, magnitude, both(448.0))
    magnitude = arith.select(is_nan, both(float("nan")), magnitude)
    return arith.ori(llvm.bitcast(bits.type, magnitude), sign)


# ---- the instruction -----------------------------------------------------------------------------


class _Instruction:
    """`mma.sync` for the element types of two factors.

    Source:   PTX ISA, "mma"
    """

    def __init__(self, mma: Mma, a: Factor, b: Factor) -> None:
        self.element = "f16" if a.is_f8 else a.element
        self.name = f"mma.m{mma.m}n{mma.n}k{mma.k}.{self.element}"
        self.shape = ir.Attribute.parse(f"#nvvm.shape<m = {mma.m}, n = {mma.n}, k = {mma.k}>")
        self.named: dict[str, ir.Attribute] = {}
        for name, factor in (("a", a), ("b", b)):
            kind = "s8" if self.element == "i8" else self.element
            kind = "u8" if factor.is_unsigned else kind
            self.named[f"multiplicand_{name}_ptx_type"] = ir.Attribute.parse(
                f"#nvvm.mma_type<{kind}>"
            )
        if self.element == "i8":
            self.named["int_overflow_behavior"] = ir.Attribute.parse(
                "#nvvm.mma_int_overflow<wrapped>"
            )

    def emit(
        self, a: Sequence[ir.Value], b: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums plus the product of two fragments."""
        is_half = str(sums[0].type) == "f16"
        held = [pack(sums[i : i + 2]) for i in range(0, len(sums), 2)] if is_half else list(sums)
        kinds = ", ".join(str(value.type) for value in held)
        result = nvvm.mma_sync(
            ir.Type.parse(f"!llvm.struct<({kinds})>"),
            self.shape,
            ir.Attribute.parse("#nvvm.mma_layout<row>"),
            ir.Attribute.parse("#nvvm.mma_layout<col>"),
            [self._operand(word) for word in a],
            [self._operand(word) for word in b],
            held,
            **self.named,
        )
        found = [
            llvm.extractvalue(value.type, result, ir.DenseI64ArrayAttr.get([i]))
            for i, value in enumerate(held)
        ]
        return [x for pair in found for x in unpack(pair)] if is_half else found

    def _operand(self, word: ir.Value) -> ir.Value:
        if self.element != "f16":
            return word
        return llvm.bitcast(ir.VectorType.get([2], ir.F16Type.get()), word)
