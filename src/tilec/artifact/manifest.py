"""The manifest: everything a caller needs to know about a cubin, as data.

`to_json` and `from_json` are inverse to each other, and the same manifest gives the same bytes.
`manifest.schema.json` beside this file is the published schema; it is made from these classes
(`python -m tilec.artifact.schema`), and a test compares the two. Any change of the classes is a
new `SCHEMA_VERSION`: a reader refuses the versions that it does not know.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from tilec.artifact.expression import Expression
from tilec.artifact.family import Cost, Family
from tilec.artifact.lowering_report import HeldLayout, LoweringReport
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import Coverage, Generic, Parameter, Requirement
from tilec.artifact.structure import StructureError, decoded, encoded, parsed

SCHEMA_VERSION = 10
KEY = "tilec_manifest"  # the first key of the JSON object; its value is the schema version


class ManifestError(ValueError):
    """The bytes are no manifest that this version reads."""


@dataclass(frozen=True)
class Source:
    """The `.tile` file by the name it was compiled under, and the SHA-256 of its bytes in hex."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Toolchain:
    """Versions of what made the machine code; `compiler` is a hash of them and of tilec itself."""

    tilec: str
    mlir: str
    ptxas: str
    compiler: str = ""


@dataclass(frozen=True)
class UnsafeUse:
    """One access inside `unsafe`, such as `scatter`. `file` is the kernel's or one that it uses.

    Units:    `line` and `column` are one-based
    """

    file: str
    line: int
    column: int
    what: str


@dataclass(frozen=True)
class Slot:
    """One parameter of the machine code (docs/abi.md).

    `name` is a parameter's, or for an extent a `Dim`'s. `element` is that of a pointer or scalar,
    `axis` that of a stride.
    """

    kind: Literal["pointer", "stride", "scalar", "extent", "tensor_map"]
    name: str
    element: str | None = None
    axis: int | None = None


@dataclass(frozen=True)
class Precondition:
    """What a variant takes for granted of one tensor.

    Units:    bytes: the pointer is a multiple of the first, and each stride but the last, of axes
              of extent above 1, times the element's size a multiple of the second; elements: the
              last extent is a multiple of `row_multiple`
    """

    param: str
    base_alignment_bytes: int
    stride_multiple_bytes: int
    row_multiple: int = 1


@dataclass(frozen=True)
class TensorMap:
    """A descriptor of one tensor, which launchers encode and pass by value (docs/abi.md).

    `box` is what one copy moves, in the order of the tensor's axes; `writes` tells a map that is
    stored through, `rounds` one whose copies round f32 to tf32.

    Units:    `box` is elements, `swizzle` bytes
    """

    param: str
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128]
    writes: bool
    rounds: bool = False


@dataclass(frozen=True)
class Access:
    """One access of a kernel to a tensor, and what is known of its place.

    `verdict`: "proved" inside for every launch that meets the contract; "launch-checked": inside
    in launches whose extents and scalars meet `conditions`, read as integers of any size, which
    no launcher evaluates; "in-kernel": only the code itself knows; "unchecked": vouched for in
    `unsafe`. What is neither proved nor vouched for has masks.
    `facts` are what the proof needs; or "data-dependent", where indices choose the elements: of
    `gather`, `scatter` and atomic updates; or that the budget of proofs did not decide it.

    Units:    `line` and `column` are one-based
    """

    file: str
    line: int
    column: int
    what: str
    tensor: str
    verdict: Literal["proved", "launch-checked", "in-kernel", "unchecked"]
    conditions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Touched:
    """How much of each axis of a tensor all programs of a launch read, or write, together.

    Said only where it is not the whole tensor, and for written ones only where it is exact.

    Units:    `extents` are elements of each axis, as expressions of the `Dim`s
    """

    tensor: str
    direction: Literal["read", "written"]
    extents: tuple[Expression, ...]


@dataclass(frozen=True)
class Variant:
    """One entry point of the cubin that does what the instance says.

    `cluster` is blocks along x, y and z. A variant with `persistent_blocks_per_sm` is launched with
    at most so many blocks for each multiprocessor, and walks over all programs itself. With a
    `split` above 1 so many blocks, a cluster along x, do each program together. One that
    `starts_early` may be launched while kernels before it on its stream still run: its code waits
    for them before it touches memory that others see.

    Units:    registers are per thread; spills and stack are bytes per thread
    """

    symbol: str
    threads: int
    slots: tuple[Slot, ...]
    preconditions: tuple[Precondition, ...] = ()
    tensor_maps: tuple[TensorMap, ...] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    persistent_blocks_per_sm: int | None = None
    split: int = 1
    starts_early: bool = False
    static_smem_bytes: int = 0
    dynamic_smem_bytes: int = 0
    registers: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    cost: Cost = field(default_factory=Cost)
    lowering: LoweringReport = field(default_factory=LoweringReport)


@dataclass(frozen=True)
class Kernel:
    """One instance of a kernel.

    `name` is the kernel's, `symbol` the instance's (`add__f32_1024`). `dims` are in the order of
    declaration. `grid` is row-major, its last axis the fastest, and of any rank. `variants` are in
    order of preference: the first whose preconditions hold is the one to launch.
    `layouts` are those that the variants' reports name by number.
    """

    name: str
    symbol: str
    generics: tuple[Generic, ...]
    documentation: str
    line: int
    parameters: tuple[Parameter, ...]
    dims: tuple[str, ...]
    grid: tuple[Expression, ...]
    requires: tuple[Requirement, ...]
    unsafe: tuple[UnsafeUse, ...]
    accesses: tuple[Access, ...]
    coverage: tuple[Coverage, ...]
    variants: tuple[Variant, ...]
    layouts: tuple[HeldLayout, ...] = ()
    touched: tuple[Touched, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """What one cubin holds: the kernels of one source file for one target, and those of other files
    that its pipelines launch.

    `checked` tells a build that traps (`tilec build --checked`). `families` are those
    of several members; a kernel that is in none is launched by itself.
    """

    source: Source
    toolchain: Toolchain
    target: str
    checked: bool
    kernels: tuple[Kernel, ...]
    families: tuple[Family, ...] = ()
    pipelines: tuple[Pipeline, ...] = ()


# A list of integers, an item a line. Text has no line breaks: they are escaped.
_NUMBERS = re.compile(r"\[\n\s*(-?\d+(?:,\n\s*-?\d+)*)\n\s*\]")


def to_json(manifest: Manifest) -> str:
    """The manifest as a JSON text that ends in a line break."""
    document = {KEY: SCHEMA_VERSION, **encoded(manifest)}
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return _NUMBERS.sub(lambda numbers: f"[{' '.join(numbers[1].split())}]", text)


def from_json(text: str | bytes) -> Manifest:
    """The manifest that `to_json` wrote.

    Raises:   ManifestError, which names the version or the field at fault
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        document = parsed(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"the manifest is no JSON: {error}") from None
    if not isinstance(document, dict) or KEY not in document:
        raise ManifestError(f"the manifest has no `{KEY}`")
    version = document.pop(KEY)
    if version != SCHEMA_VERSION:
        raise ManifestError(
            f"the manifest has schema version {version!r}, this tilec reads {SCHEMA_VERSION}"
        )
    try:
        return decoded(Manifest, document, "manifest")
    except (StructureError, RecursionError) as error:
        raise ManifestError(str(error)) from None
