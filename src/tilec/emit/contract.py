"""What callers promise of a kernel or a pipeline, in the words of all languages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import Parameter

_OWN = {
    "shared": "read",
    "mut": "written",
    "part": "written",
    "atomic": "updated atomically",
}  # fmt: skip


def parameter_rows(instances: Sequence[Kernel | Pipeline]) -> Iterator[str]:
    """A line for each parameter, aligned: `z  f32 or bf16 [N], written`.

    Instances have the same parameters, but for types and extents.
    """
    parameters = instances[0].parameters
    width = max((len(parameter.name) for parameter in parameters), default=0)
    for position, parameter in enumerate(parameters):
        seen = [instance.parameters[position] for instance in instances]
        yield f"{parameter.name.ljust(width)}  {_in_words(seen)}"


def _in_words(seen: Sequence[Parameter]) -> str:
    elements = " or ".join(dict.fromkeys(parameter.element for parameter in seen))
    first = seen[0]
    if not first.is_tensor:
        return elements
    extents = ", ".join(
        "/".join(dict.fromkeys(str(parameter.extents[axis]) for parameter in seen))
        for axis in range(first.rank)
    )
    return f"{elements} [{extents}], {_OWN[first.own or 'shared']}"


def requirements(instances: Sequence[Kernel | Pipeline]) -> Iterator[tuple[str, str | None]]:
    """Each `requires!` once, with the symbol of the instance that has it; None where all do."""
    by_instance = [{one.text for one in instance.requires} for instance in instances]
    common = set.intersection(*by_instance)
    found = (
        (one.text, None if one.text in common else instance.symbol)
        for instance in instances
        for one in instance.requires
    )
    yield from dict.fromkeys(found)
