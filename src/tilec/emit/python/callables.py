"""What Python calls by one name: the instances of a kernel, or of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import Coverage, Parameter
from tilec.emit.python.text import attribute_names

_REALS = frozenset({"f16", "bf16", "f32", "f64"})
TENSOR = "tensor"


@dataclass(frozen=True)
class CallSet:
    """Instances that one call launches, in the order of the manifest; never none.

    They have the same parameters, but for types, static extents and blocks.
    """

    name: str
    instances: tuple[Kernel, ...] | tuple[Pipeline, ...]

    @property
    def first(self) -> Kernel | Pipeline:
        return self.instances[0]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.first.parameters

    @property
    def stub_class(self) -> str:
        """The class that says what of it a stub has."""
        return f"_{'Pipeline' if self.is_pipeline else 'Kernel'}_{self.name}"

    @property
    def is_pipeline(self) -> bool:
        return isinstance(self.first, Pipeline)

    def kind_of(self, position: int) -> str | None:
        """What Python gives for a parameter: TENSOR, `bool`, `float` or `int`; None if that is not
        the same for all instances."""
        kinds = {_kind_of(instance.parameters[position]) for instance in self.instances}
        return kinds.pop() if len(kinds) == 1 else None


def kernels_by_name(manifest: Manifest) -> list[CallSet]:
    """The kernels of a file, in the order of the source."""
    by_name: dict[str, list[Kernel]] = {}
    for kernel in manifest.kernels:
        by_name.setdefault(kernel.name, []).append(kernel)
    return [CallSet(name, tuple(kernels)) for name, kernels in by_name.items()]


def pipelines_by_name(manifest: Manifest) -> list[CallSet]:
    """The pipelines of a file, in the order of the source."""
    by_name: dict[str, list[Pipeline]] = {}
    for pipeline in manifest.pipelines:
        by_name.setdefault(pipeline.name, []).append(pipeline)
    return [CallSet(name, tuple(pipelines)) for name, pipelines in by_name.items()]


def names_of(called: Sequence[CallSet], prefix: str, is_taken: Callable[[str], bool]) -> list[str]:
    """What a file calls each of these, in which some names are taken."""
    return attribute_names([f"{prefix}{one.name}" for one in called], is_taken)


def results_of(called: CallSet) -> tuple[int, ...]:
    """The positions of the tensors that a call may make itself, in order; none where a caller must.

    All that any instance writes is such: written in full, never read before, of extents that other
    tensors have, and of a type that follows from the types of other arguments.
    """
    written = tuple(i for i, p in enumerate(called.parameters) if p.is_written)
    inputs = [p for p in called.parameters if p.is_tensor and not p.is_written]
    if not inputs or not all(
        _is_made(instance, i) for instance in called.instances for i in written
    ):
        return ()
    types: dict[object, object] = {}
    for instance in called.instances:
        told = tuple(_type_of(p) for p in instance.parameters if not p.is_written)
        made = tuple(_type_of(instance.parameters[i]) for i in written)
        if types.setdefault(told, made) != made:
            return ()
    return written


def _is_made(instance: Kernel | Pipeline, position: int) -> bool:
    parameter = instance.parameters[position]
    told = Coverage(parameter.name, writes_all=True, reads_first=False)
    if parameter.own == "atomic" or told not in instance.coverage:
        return False
    bound = {
        extent
        for other in instance.parameters
        if other.is_tensor and not other.is_written
        for extent in other.extents
    }
    return all(isinstance(extent, int) or extent in bound for extent in parameter.extents)


def _type_of(parameter: Parameter) -> object:
    """What a call sees of a parameter: a scalar's width is no matter of a Python number."""
    if not parameter.is_tensor:
        return _kind_of(parameter)
    fixed = tuple(e if isinstance(e, int) else None for e in parameter.extents)
    return parameter.element, fixed


def _kind_of(parameter: Parameter) -> str:
    if parameter.is_tensor:
        return TENSOR
    if parameter.element in _REALS:
        return "float"
    return "bool" if parameter.element == "bool" else "int"
