"""The texts that the locations of a module lie in, so that spans can be made of them.

A place in the IR is a file, a line and a column; a `Span` is a range of a file's text. For IR that
was read from a file, the text may be gone or changed: a blank of the right shape then stands in for
it, in which every line is as wide as the places in it need. Line and column come out right; only
the words that stand there are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mlir import ir

from tilec.ir.walk import operations
from tilec.source import SourceFile

# Gives the text that locations of a file name lie in; None if there is none.
Reader = Callable[[str], "SourceFile | None"]
_Widths = dict[int, int]  # of each line (one-based), the columns that places in it need


def texts_of(module: ir.OpView, read: Reader) -> dict[str, SourceFile]:
    """Each file that locations in a module name, every place of them inside its text."""
    widths: dict[str, _Widths] = {}
    for location in _locations(module):
        for part in _files_of(location):
            lines = widths.setdefault(part.filename, {})
            for line, column in (
                (part.start_line, part.start_col),
                (part.end_line, part.end_col),
            ):
                lines[line] = max(lines.get(line, 0), column)
    return {name: _text(name, lines, read) for name, lines in widths.items()}


def give_places(module: ir.OpView) -> None:
    """Make an operation without a place stand where the one around it does, in the module itself.

    Assumes:  the text of the module is called "-", as MLIR calls a text without a name
    """
    if not _is_placed(module.location):
        module.operation.location = ir.Location.file("-", 1, 1, context=module.context)
    for op in operations(module):
        if not _is_placed(op.location):
            op.operation.location = op.operation.parent.location


def _is_placed(location: ir.Location) -> bool:
    return next(_files_of(location), None) is not None


def _locations(module: ir.OpView) -> Iterator[ir.Location]:
    yield module.location
    for op in operations(module):
        yield op.location
        for region in op.regions:
            for block in region.blocks:
                yield from (argument.location for argument in block.arguments)


def _files_of(location: ir.Location) -> Iterator[ir.Location]:
    """The places in files that a location is made of."""
    if location.is_a_fused():
        for part in location.locations:
            yield from _files_of(part)
    elif location.is_a_callsite():
        yield from _files_of(location.callee)
        yield from _files_of(location.caller)
    elif location.is_a_name():
        yield from _files_of(location.child_loc)
    elif location.is_a_file():
        yield location


def _text(name: str, widths: _Widths, read: Reader) -> SourceFile:
    source = read(name)
    if source is not None and _holds(source, widths):
        return source
    lines = (" " * widths.get(line, 0) for line in range(1, max(widths) + 1))
    return SourceFile(name, "\n".join(lines))


def _holds(source: SourceFile, widths: _Widths) -> bool:
    count = len(source.line_starts)
    return all(
        line <= count and column - 1 <= len(source.line(line - 1))
        for line, column in widths.items()
    )
