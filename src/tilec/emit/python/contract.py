"""What callers promise, for docstrings."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.emit.contract import parameter_rows, requirements
from tilec.emit.python.callables import CallSet


def contract(called: CallSet, file: str) -> Iterator[str]:
    """The documentation of a kernel or pipeline, its parameters, what it requires, and whence."""
    first = called.first
    what = "Pipeline" if called.is_pipeline else "Kernel"
    yield from (first.documentation or f"{what} `{called.name}`.").splitlines()
    yield ""
    for row in parameter_rows(called.instances):
        yield f"    {row}"
    for text, symbol in requirements(called.instances):
        yield f"    requires `{text}`" + (f" (`{symbol}`)" if symbol else "")
    yield ""
    if len(called.instances) == 1:
        yield f"{file}:{first.line}"
    else:
        symbols = ", ".join(f"`{instance.symbol}`" for instance in called.instances)
        yield f"{file}:{first.line}. The instance for the arguments, of {symbols}."
