"""Matrix products on Hopper: `wgmma`, which four warps start together and wait for later.

Sums are *words* from before the first instruction that adds to them until one has waited for the
last: `words` makes them, `start` takes and gives them, `finish` gives the registers of the tile
again. In between, words may only be handed on, through loops too: even to take one apart would be
to read what is being written.

Source:   PTX ISA, "wgmma.mma_async", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, vector
from tilec.layout import Layout
from tilec.layout.wgmma import (
    WARPGROUP_WARPS,
    WORD_BYTES,
    Block,
    SharedOperand,
    Wgmma,
    a_words,
    blocks,
)
from tilec.ops.fragments import bit_width, element_of, i32, i64, pack, unpack

# The names of types in PTX where they are others than in the language.
_NAMES = {"f8e4m3": "e4m3", "f8e5m2": "e5m2", "i8": "s8", "i32": "s32"}
# Operands of one assembly statement that are both read and written.
_MOST_TIED = 128
# Of an address in shared memory: above it is the number of a block in its cluster.
_ADDRESS_MASK = 0x3FFFF


@dataclass(frozen=True)
class WgmmaDot:
    """A product: what it is made by, the layout of its sums, and where its factors are.

    The first factor is in shared memory, or in registers of an `a_register_layout`: then it may be
    shorter along k, and meets the second one from `k_from` on.
    """

    wgmma: Wgmma
    sums: Layout
    a: SharedOperand | Layout
    b: SharedOperand
    k_from: int = 0

    @property
    def k(self) -> int:
        """How many products are summed."""
        return self.b.k if isinstance(self.a, SharedOperand) else self.a.shape[-1]

    @property
    def rows(self) -> int:
        """How many rows a warpgroup has."""
        return self.sums.shape[-2] * WARPGROUP_WARPS // self.sums.warps


# What an instruction takes of a factor that begins at a place across k, and at one along k.
_Factor: TypeAlias = Callable[[int, int], "list[ir.Value]"]


def words(registers: Sequence[ir.Value]) -> list[ir.Value]:
    """Sums as instructions take them: f32 or i32 as they are, two neighbours of f16 as one i32."""
    if bit_width(registers[0].type) == 8 * WORD_BYTES:
        return list(registers)
    pairs = zip(registers[::2], registers[1::2], strict=True)
    return [_cast(pack(pair), _i32()) for pair in pairs]


def start(
    dot: WgmmaDot,
    sums: Sequence[ir.Value] | None,
    a: ir.Value,
    b: ir.Value,
    warpgroup: ir.Value | None = None,
) -> list[ir.Value]:
    """Begin to add a product to the words `sums`, or to zero if there are none: one group.

    A factor is the address of its tile (i32 or ptr<3>), or the fragment if it is in registers.
    `warpgroup` (i32) is which one this is, the same in all lanes in a way that the assembler sees;
    it is needed where there are several and `a` is in shared memory.

    Assumes:  what the tiles hold is visible to the asynchronous proxy
    """
    parts = blocks(dot.sums)
    before = _nothing(dot) if sums is None else sums
    totals = [_struct([before[w] for w in _words_of(dot, part)]) for part in parts]
    right = _shared(dot.b, _address(b))
    if isinstance(dot.a, SharedOperand):
        left = _shared(dot.a, _own_rows(dot, dot.a, _address(a), warpgroup))
        nvvm.wgmma_fence_aligned()
    else:
        # Were a word made after the fence, the assembler would let each instruction wait.
        held = _tied("wgmma.fence.sync.aligned;", _words_in(a))
        left = _held(dot.a, held, dot.wgmma.element_bytes)
    for k in range(0, dot.k, dot.wgmma.k):
        adds, there = sums is not None or k > 0, dot.k_from + k
        totals = [
            _multiply(
                dot, part.columns, total, (*left(part.row, k), *right(part.column, there)), adds
            )
            for part, total in zip(parts, totals, strict=True)
        ]
    nvvm.wgmma_commit_group_sync_aligned()
    after: dict[int, ir.Value] = {}
    for part, total in zip(parts, totals, strict=True):
        after.update(zip(_words_of(dot, part), _members(total), strict=True))
    return [after[word] for word in range(len(after))]


def wait(pending: int) -> None:
    """Wait until at most so many of the groups that were started last are running."""
    nvvm.wgmma_wait_group_sync_aligned(pending)


def finish(total: str, sums: Sequence[ir.Value], pending: int = 0) -> list[ir.Value]:
    """Wait likewise, for these words among others, and give the registers that they are.

    `total` is the type of the sums, in the language. The words are handed through the wait: nothing
    can read them before it.
    """
    done = _tied(f"wgmma.wait_group.sync.aligned {pending};", sums)
    if total != "f16":
        return done
    pair = ir.VectorType.get([2], ir.F16Type.get())
    return [register for word in done for register in unpack(_cast(word, pair))]


# ---- instructions --------------------------------------------------------------------------------


def _in_word(dot: WgmmaDot) -> int:
    """How many registers a word is."""
    return 2 if dot.wgmma.total == "f16" else 1


def _words_of(dot: WgmmaDot, part: Block) -> list[int]:
    """The numbers of the words that one instruction adds to."""
    return [register // _in_word(dot) for register in part.registers[:: _in_word(dot)]]


def _nothing(dot: WgmmaDot) -> list[ir.Value]:
    """Words for instructions that do not read them."""
    word = ir.F32Type.get() if dot.wgmma.total == "f32" else _i32()
    return [llvm.mlir_undef(word)] * (dot.sums.registers // _in_word(dot))


def _multiply(
    dot: WgmmaDot, columns: int, total: ir.Value, factors: Sequence[ir.Value], adds: bool
) -> ir.Value:
    """One instruction; `total` and the result are structs of words."""
    if not isinstance(dot.a, SharedOperand):
        return _from_registers(dot, columns, total, factors, adds)
    wgmma = dot.wgmma
    texts = {
        "shape": f"#nvvm.shape<m = 64, n = {columns}, k = {wgmma.k}>",
        "typeA": f"#nvvm.wgmma_type<{_name(wgmma.a)}>",
        "typeB": f"#nvvm.wgmma_type<{_name(wgmma.b)}>",
        "typeD": f"#nvvm.wgmma_type<{_name(wgmma.total)}>",
        "scaleD": f"#nvvm.wgmma_scale_out<{'one' if adds else 'zero'}>",
        "scaleA": "#nvvm.wgmma_scale_in<one>",
        "scaleB": "#nvvm.wgmma_scale_in<one>",
        "layoutA": f"#nvvm.mma_layout<{'row' if dot.a.k_major else 'col'}>",
        "layoutB": f"#nvvm.mma_layout<{'col' if dot.b.k_major else 'row'}>",
    }
    done = ir.Operation.create(
        "nvvm.wgmma.mma_async",
        results=[total.type],
        operands=[total, *factors],
        attributes={name: ir.Attribute.parse(text) for name, text in texts.items()},
    )
    return done.result


def _from_registers(
    dot: WgmmaDot, columns: int, total: ir.Value, factors: Sequence[ir.Value], adds: bool
) -> ir.Value:
    """The dialect has the instruction with both factors in shared memory only."""
    wgmma = dot.wgmma
    sums = _members(total)
    count = len(sums)
    *a, b = (f"${2 * count + i}" for i in range(len(factors)))
    types = ".".join(map(_name, (wgmma.total, wgmma.a, wgmma.b)))
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k{wgmma.k}.{types}"
    places = ", ".join(f"${i}" for i in range(count))
    scales = [] if wgmma.total == "i32" else ["1", "1"]
    orders = [str(int(not dot.b.k_major))] if wgmma.element_bytes == 2 else []
    last = ", ".join(["p", *scales, *orders])
    text = (
        f"{{\n.reg .pred p;\nsetp.ne.b32 p, {int(adds)}, 0;\n"
        f"{name} {{{places}}}, {{{', '.join(a)}}}, {b}, {last};\n}}"
    )
    return _assembly(text, sums, factors)


def _name(element: str) -> str:
    return _NAMES.get(element, element)


# ---- factors -------------------------------------------------------------------------------------


def _own_rows(
    dot: WgmmaDot, a: SharedOperand, address: ir.Value, warpgroup: ir.Value | None
) -> ir.Value:
    """Where the rows of this warpgroup begin."""
    if dot.sums.warps == WARPGROUP_WARPS:
        return address
    assert warpgroup is not None, "expected which of several warpgroups this is"
    return arith.addi(address, arith.muli(warpgroup, i32(a.offset(dot.rows, 0))))


def _shared(operand: SharedOperand, address: ir.Value) -> _Factor:
    """Descriptors of a factor in shared memory."""
    high, low = divmod(operand.descriptor, 1 << 32)
    place = arith.shrui(arith.andi(address, i32(_ADDRESS_MASK)), i32(4))
    # Nothing that is added to the address reaches the upper word.
    lower = arith.ori(place, i32(low))
    upper = i64((high ^ 1 << 31) - (1 << 31) << 32)

    def at(across: int, k: int) -> list[ir.Value]:
        whole = arith.addi(lower, i32(operand.offset(across, k) >> 4))
        return [arith.ori(arith.extui(ir.IntegerType.get_signless(64), whole), upper)]

    return at


def _held(layout: Layout, held: Sequence[ir.Value], element_bytes: int) -> _Factor:
    """Words of a factor in registers."""
    return lambda row, k: [held[number] for number in a_words(layout, row, k, element_bytes)]


def _address(base: ir.Value) -> ir.Value:
    word = ir.IntegerType.get_signless(32)
    return base if base.type == word else llvm.ptrtoint(word, base)


# ---- words ---------------------------------------------------------------------------------------


def _words_in(fragment: ir.Value) -> list[ir.Value]:
    """The 32-bit words of a fragment."""
    kind = ir.VectorType(fragment.type)
    count = kind.shape[0] * bit_width(kind.element_type) // (8 * WORD_BYTES)
    whole = vector.bitcast(ir.VectorType.get([count], _i32()), fragment)
    return [element_of(whole, i) for i in range(count)]


def _cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create("llvm.bitcast", results=[kind], operands=[value]).result


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _struct_type(word: ir.Type, count: int) -> ir.Type:
    return llvm.StructType.get_literal([word] * count)


def _struct(words: Sequence[ir.Value]) -> ir.Value:
    whole = llvm.mlir_undef(_struct_type(words[0].type, len(words)))
    for i, word in enumerate(words):
        whole = llvm.insertvalue(whole, word, ir.DenseI64ArrayAttr.get([i]))
    return whole


def _members(struct: ir.Value) -> list[ir.Value]:
    types = llvm.StructType(struct.type).body
    return [
        llvm.extractvalue(kind, struct, ir.DenseI64ArrayAttr.get([i]))
        for i, kind in enumerate(types)
    ]


# ---- assembly ------------------------------------------------------------------------------------


def _tied(text: str, held: Sequence[ir.Value]) -> list[ir.Value]:
    """The words after a statement that nothing done with them, before or after it, may pass."""
    found: list[ir.Value] = []
    for first in range(0, len(held), _MOST_TIED):
        # Statements keep their order: what one that says nothing hands on comes after the first.
        found += _members(_assembly("" if first else text, held[first : first + _MOST_TIED], ()))
    return found


def _assembly(text: str, held: Sequence[ir.Value], inputs: Sequence[ir.Value]) -> ir.Value:
    """A statement that reads and writes words in place: a struct of what they are after it."""
    out = "f" if isinstance(held[0].type, ir.F32Type) else "r"
    read = ["l" if value.type == ir.IntegerType.get_signless(64) else "r" for value in inputs]
    tied = map(str, range(len(held)))
    constraints = ",".join([*[f"={out}"] * len(held), *tied, *read])
    result = _struct_type(held[0].type, len(held))
    return llvm.inline_asm(result, [*held, *inputs], text, constraints, has_side_effects=True)
