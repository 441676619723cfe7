"""docs/ops.md: every operation of the language, and every operation of our dialect."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.dialect import declarations
from tilec.ops.call import Operation
from tilec.ops.registry import modules

_HEADER = """\
# Operations

Generated from `src/tilec/ops` and `dialects/`: do not edit, run `make bless`.

Tiles and scalars of one element type work together: shapes of equal rank broadcast along extents
of 1, a scalar fits any tile. An axis may be counted from the end, in braces: `t.sum::<{-1}>()`.
Accuracy is in units in the last place of f32 and of f64, on the GPU; 0 is correctly rounded. f16
and bf16 are computed in f32 and rounded once.
"""


def reference() -> str:
    """The page as text."""
    sections = [_HEADER]
    for module in modules():
        operations: tuple[Operation, ...] = getattr(module, "OPERATIONS", ())
        if operations:
            sections.append(_section(module.__doc__ or "", operations))
    sections.append(_dialect())
    return "\n".join(sections)


def _section(documentation: str, operations: Sequence[Operation]) -> str:
    """The operations of one module under the first paragraph of what it says of itself."""
    title = " ".join(documentation.strip().partition("\n\n")[0].split())
    if len({operation.summary for operation in operations}) == 1 < len(operations):
        listed = ", ".join(f"`{operation.signature}`" for operation in operations)
        return f"## {title.rstrip('.')}\n\n{listed}\n"
    with_accuracy = any(hasattr(operation, "ulp") for operation in operations)
    heads = ["Operation", "Meaning", *(["f32 ulp", "f64 ulp"] if with_accuracy else [])]
    rows = [_row(operation, with_accuracy) for operation in operations]
    return f"## {title.rstrip('.')}\n\n{_table(heads, rows)}"


def _row(operation: Operation, with_accuracy: bool) -> list[str]:
    accuracy = [f"{ulp:g}" for ulp in getattr(operation, "ulp", ())] or ["", ""]
    return [
        f"`{operation.signature}`",
        operation.summary,
        *(accuracy if with_accuracy else []),
    ]


def _dialect() -> str:
    rows = []
    for declared in declarations().values():
        memory = [f"reads {', '.join(declared.reads)}"] if declared.reads else []
        memory += [f"writes {', '.join(declared.writes)}"] if declared.writes else []
        memory += [f"updates {', '.join(declared.updates)}"] if declared.updates else []
        rows.append([f"`{declared.name}`", declared.summary, "; ".join(memory)])
    table = _table(["Operation", "Meaning", "Memory"], rows)
    return f"## The tile dialect\n\nWhat the compiler's own IR has beside MLIR's.\n\n{table}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(_escaped(cell) for cell in line)} |\n" for line in lines)


def _escaped(cell: str) -> str:
    """A bar would end the cell, in code too."""
    return cell.replace("|", "\\|")
