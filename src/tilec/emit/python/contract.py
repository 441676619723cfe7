"""What callers promise, for docstrings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.signature import Parameter
from tilec.emit.python.callables import CallSet

_OWN = {
    "shared": "read",
    "mut": "written",
    "part": "written",
    "atomic": "updated atomically",
}  # fmt: skip


def contract(called: CallSet, file: str) -> Iterator[str]:
    """The documentation of a kernel or pipeline, its parameters, what it requires, and whence."""
    first = called.first
    what = "Pipeline" if called.is_pipeline else "Kernel"
    yield from (first.documentation or f"{what} `{called.name}`.").splitlines()
    yield ""
    width = max((len(p.name) for p in called.parameters), default=0)
    for position, parameter in enumerate(called.parameters):
        seen = [instance.parameters[position] for instance in called.instances]
        yield f"    {parameter.name.ljust(width)}  {_parameter(seen)}"
    for text in dict.fromkeys(_requirements(called)):
        yield f"    requires {text}"
    yield ""
    if len(called.instances) == 1:
        yield f"{file}:{first.line}"
    else:
        symbols = ", ".join(f"`{instance.symbol}`" for instance in called.instances)
        yield f"{file}:{first.line}. The instance for the arguments, of {symbols}."


def _requirements(called: CallSet) -> Iterator[str]:
    by_instance = [{one.text for one in instance.requires} for instance in called.instances]
    common = set.intersection(*by_instance)
    for instance in called.instances:
        for one in instance.requires:
            yield f"`{one.text}`" + ("" if one.text in common else f" (`{instance.symbol}`)")


def _parameter(seen: Sequence[Parameter]) -> str:
    elements = " or ".join(dict.fromkeys(parameter.element for parameter in seen))
    first = seen[0]
    if not first.is_tensor:
        return elements
    extents = ", ".join(
        "/".join(dict.fromkeys(str(parameter.extents[axis]) for parameter in seen))
        for axis in range(first.rank)
    )
    return f"{elements} [{extents}], {_OWN[first.own or 'shared']}"
