"""What `tilec inspect` tells of the code of one variant, a part at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilec.artifact.lowering_report import HeldLayout, Movement, Product, TileAccess
from tilec.artifact.manifest import Kernel, Variant
from tilec.cli.columns import columns
from tilec.layout import Layout
from tilec.layout.drawing import drawn

_INDENT = "    "


def accesses_of(kernel: Kernel, variant: Variant) -> Iterator[str]:
    rows = [_access(access, kernel) for access in variant.lowering.accesses]
    yield from _part(f"global memory, {variant.symbol}", rows)


def movements_of(kernel: Kernel, variant: Variant) -> Iterator[str]:
    told = variant.lowering
    rows = [_movement(one, kernel) for one in told.movements]
    rows += [_product(one, kernel) for one in told.products]
    yield from _part(f"between registers and threads, {variant.symbol}", rows)


def shared_of(kernel: Kernel, variant: Variant) -> Iterator[str]:
    told = variant.lowering
    rows = [
        (_place(b.file, b.line, b.column), f"{_count(b.bytes, 'byte')} at {b.offset}")
        for b in told.buffers
    ]
    barriers = f"{_count(told.block_barriers, 'barrier')} of the block, {told.warp_barriers} of a"
    yield from _part(f"shared memory, {variant.symbol} ({barriers} warp)", rows)


def layouts_of(kernel: Kernel, variant: Variant) -> Iterator[str]:
    """Those that the variant uses, drawn."""
    for number in sorted(_used(variant)):
        yield ""
        [first, *rest] = drawn(layout_of(kernel.layouts[number]))
        yield f"  layout #{number}, {first}"
        yield from (f"  {line}" for line in rest)


def layout_of(held: HeldLayout) -> Layout:
    fields = ("shape", "register", "lane", "warp")
    return Layout.from_dict({name: getattr(held, name) for name in fields})


def _used(variant: Variant) -> set[int]:
    told = variant.lowering
    found = {access.layout for access in told.accesses}
    found |= {n for one in told.movements for n in (one.source, one.target)}
    return found | {n for one in told.products for n in (one.left, one.right, one.sums)}


def _part(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield ""
    yield f"  {title}"
    yield from columns(rows, _INDENT) if rows else (f"{_INDENT}none",)


def _access(access: TileAccess, kernel: Kernel) -> tuple[str, ...]:
    more = "" if access.sectors == access.least_sectors else f", could be {access.least_sectors}"
    return (
        _place(access.file, access.line, access.column),
        f"{access.kind} {access.tensor}",
        _tile(kernel, access.layout, (access.element,)),
        f"layout #{access.layout}",
        f"{access.instructions} x {_count(access.vector_bytes, 'byte')}",
        "masked" if access.masked else "not masked",
        f"{_count(access.sectors, 'sector')} a warp{more}",
    )


def _movement(one: Movement, kernel: Kernel) -> tuple[str, ...]:
    layouts = f"#{one.source}" if one.source == one.target else f"#{one.source} to #{one.target}"
    return (
        _place(one.file, one.line, one.column),
        one.kind,
        _tile(kernel, one.source, one.elements),
        f"layout {layouts}",
        one.way,
        ", ".join(_costs(one)) or "free",
    )


def _costs(one: Movement) -> Iterator[str]:
    for count, what in (
        (one.folds, "fold"), (one.shuffles, "shuffle"), (one.selects, "select"),
        (one.stores, "store"), (one.loads, "load"),
    ):  # fmt: skip
        if count:
            yield _count(count, what)
    if one.shared_bytes:
        yield _count(one.shared_bytes, "byte")
        yield _count(one.wavefronts, "wavefront")
        yield _count(one.bank_conflicts, "conflict")


def _product(one: Product, kernel: Kernel) -> tuple[str, ...]:
    return (
        _place(one.file, one.line, one.column),
        "product",
        _tile(kernel, one.sums, ()),
        f"layouts #{one.left}, #{one.right} to #{one.sums}",
        one.instruction,
        f"{_count(one.count, 'instruction')}, {_operations(one, kernel)} operations a program",
    )


def _operations(one: Product, kernel: Kernel) -> int:
    """Multiplications and additions of a product."""
    operations = 2 * kernel.layouts[one.left].shape[-1]
    for extent in kernel.layouts[one.sums].shape:
        operations *= extent
    return operations


def _tile(kernel: Kernel, layout: int, elements: Iterable[str]) -> str:
    shape = "x".join(map(str, kernel.layouts[layout].shape)) or "one"
    return " ".join([shape, *elements])


def _place(file: str, line: int, column: int) -> str:
    return f"{file}:{line}:{column}" if file else "unknown"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
