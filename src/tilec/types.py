"""The types of the language: elements, tiles, tensors, parts.

Pure data. `tilec.ir` maps them to MLIR types, the front end infers them, operations check them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import count


class Kind(Enum):
    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"


@dataclass(frozen=True)
class Element:
    """An element type. `usize` is a signed 64-bit number (docs/language.md, Indices).

    Units:    `bits` is the width in memory, except for `tf32`, which never reaches memory
    """

    name: str
    kind: Kind
    bits: int

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.SIGNED

    def __str__(self) -> str:
        return self.name


BOOL = Element("bool", Kind.BOOL, 8)
I8, I16, I32, I64 = (Element(f"i{n}", Kind.SIGNED, n) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (Element(f"u{n}", Kind.UNSIGNED, n) for n in (8, 16, 32, 64))
USIZE = Element("usize", Kind.SIGNED, 64)
F16, F32, F64 = (Element(f"f{n}", Kind.FLOAT, n) for n in (16, 32, 64))
BF16 = Element("bf16", Kind.FLOAT, 16)
F8E4M3 = Element("f8e4m3", Kind.FLOAT, 8)
F8E5M2 = Element("f8e5m2", Kind.FLOAT, 8)
TF32 = Element("tf32", Kind.FLOAT, 32)

ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in (
        BOOL, I8, I16, I32, I64, U8, U16, U32, U64, USIZE, F16, BF16, F32, F64, F8E4M3, F8E5M2,
        TF32,
    )
}  # fmt: skip

# Types that hold numbers but do no arithmetic: they are converted, stored, and fed to `dot`.
STORAGE_ONLY = frozenset({F8E4M3, F8E5M2, TF32})

_ids = count()


@dataclass(frozen=True)
class ElementVariable:
    """The not yet known element type of an unsuffixed literal (`is_float` tells which kind)."""

    is_float: bool
    id: int = field(default_factory=lambda: next(_ids))

    @property
    def is_integer(self) -> bool:
        return not self.is_float

    def __str__(self) -> str:
        return "{float}" if self.is_float else "{integer}"


ElementLike = Element | ElementVariable


@dataclass(frozen=True)
class Dim:
    """A run-time extent, by the name that the kernel gives it."""

    name: str

    def __str__(self) -> str:
        return self.name


Extent = Dim | int


class Own(Enum):
    """Who may touch the elements behind a tensor type."""

    SHARED = "shared"
    MUT = "mut"
    ATOMIC = "atomic"


@dataclass(frozen=True)
class TileType:
    """`Tile<element, shape…>`; with an empty shape a scalar."""

    element: ElementLike
    shape: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_scalar(self) -> bool:
        return not self.shape

    def __str__(self) -> str:
        if self.is_scalar:
            return str(self.element)
        return f"Tile<{', '.join(map(str, (self.element, *self.shape)))}>"


def scalar(element: ElementLike) -> TileType:
    """The type of one value of an element type."""
    return TileType(element)


@dataclass(frozen=True)
class TensorType:
    """`&Tensor<…>`, `&mut Tensor<…>` or `&Atomic<Tensor<…>>`, or a view of one.

    `contiguous` is the axis of stride 1: the last one, until a view permutes it.
    """

    element: Element
    extents: tuple[Extent, ...]
    own: Own = Own.SHARED
    contiguous: int = -1

    @property
    def rank(self) -> int:
        return len(self.extents)

    def __str__(self) -> str:
        body = f"Tensor<{', '.join(map(str, (self.element, *self.extents)))}>"
        return {
            Own.SHARED: f"&{body}",
            Own.MUT: f"&mut {body}",
            Own.ATOMIC: f"&Atomic<{body}>",
        }[self.own]


@dataclass(frozen=True)
class PartType:
    """`Part<&mut Tensor<…>, B0, …>`; `borrowed` for a `&mut Part<…>` or `&Part<…>`."""

    tensor: TensorType
    block: tuple[int, ...]
    borrowed: Own | None = None  # None: by value; MUT: `&mut`; SHARED: `&`

    @property
    def element(self) -> Element:
        return self.tensor.element

    @property
    def rank(self) -> int:
        return len(self.block)

    def __str__(self) -> str:
        prefix = {None: "", Own.MUT: "&mut ", Own.SHARED: "&"}[self.borrowed]
        return f"{prefix}Part<{', '.join(map(str, (self.tensor, *self.block)))}>"


@dataclass(frozen=True)
class TupleType:
    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class ArrayType:
    """An array of scalars, such as `[usize; 3]`."""

    item: TileType
    length: int

    def __str__(self) -> str:
        return f"[{self.item}; {self.length}]"


UNIT = TupleType(())

Type = TileType | TensorType | PartType | TupleType | ArrayType


def is_legal_extent(extent: int) -> bool:
    """Whether a tile may have this extent: a power of two, or a multiple of 16."""
    return extent > 0 and (extent & (extent - 1) == 0 or extent % 16 == 0)
