"""The list of functions in the comment that a file begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.emit.names import identifier
from tilec.emit.sets import LaunchSet

_HEAD = "For each of them, and for each of their instances by its own name:"


def overview(
    what: str, sets: Sequence[LaunchSet], prefix: str, functions: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """What there is, and the functions for each: calls, and what they do.

    The prefix stands before calls of `NAME`.
    """
    yield from _kernels_and_instances(what, sets, prefix)
    yield ""
    yield _HEAD
    yield from aligned(
        [(f"{prefix}{call}" if call.startswith("NAME") else call, does) for call, does in functions]
    )


def aligned(functions: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max(len(call) for call, _ in functions)
    for call, does in functions:
        yield f"  {call.ljust(width)}  {does}".rstrip()


def _kernels_and_instances(what: str, sets: Sequence[LaunchSet], prefix: str) -> Iterator[str]:
    """Of a kernel without a function by its name, the instances."""
    by_name = {launched.name for launched in sets}
    yield f"{what}, with the number of their instances:"
    for launched in sets:
        kernel = launched.kernels[0]
        if launched.name == kernel.name or kernel.name not in by_name:
            given = ", ".join(parameter.name for parameter in kernel.parameters)
            yield f"  {prefix}{identifier(launched.name)}({given}), {len(launched.kernels)}"
