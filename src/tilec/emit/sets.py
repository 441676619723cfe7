"""What each launch function launches: an instance, a family, or all of a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import Parameter


@dataclass(frozen=True)
class LaunchSet:
    """Instances that one function launches; `name` is the function's, without prefix and suffix.

    One that no function of C has is called by a number and more: so no kernel is. `kernels` are in
    the manifest's order, and have the same parameters but for types.
    """

    name: str
    kernels: tuple[Kernel, ...]

    @property
    def label(self) -> str:
        """What messages call it, as `tilec.runtime` does."""
        return self.kernels[0].symbol if len(self.kernels) == 1 else self.kernels[0].name


@dataclass(frozen=True)
class Group:
    """Members of a family, in the order of the manifest, or one kernel of none."""

    family: Family | None
    kernels: tuple[Kernel, ...]

    def measured(self) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
        """For each card that the family was measured on rows of extents, each with the number of
        the member that is the fastest there; those of other members are left out."""
        if self.family is None or len(self.kernels) == 1:
            return
        places = {kernel.symbol: place for place, kernel in enumerate(self.kernels)}
        for table in self.family.tables:
            found = [one for one in table.measured if one.member in places]
            yield table.card, [(*one.extents, places[one.member]) for one in found]


def launch_sets(manifest: Manifest) -> list[LaunchSet]:
    """By name all instances of a kernel, by types those of a family, by symbol each one.

    Where two have one name, the larger has it.
    """
    by_symbol = {kernel.symbol: kernel for kernel in manifest.kernels}
    sets: dict[str, tuple[Kernel, ...]] = {}
    for kernel in manifest.kernels:
        sets[kernel.name] = (*sets.get(kernel.name, ()), kernel)
    for family in manifest.families:
        sets.setdefault(family.name, tuple(by_symbol[member] for member in family.members))
    for kernel in manifest.kernels:
        sets.setdefault(kernel.symbol, (kernel,))
    return [LaunchSet(name, kernels) for name, kernels in sets.items()]


def contract_of(pipeline: Pipeline) -> Kernel:
    """The contract of a pipeline, as that of a kernel without a grid and code."""
    return Kernel(
        name=pipeline.name,
        symbol=pipeline.symbol,
        generics=pipeline.generics,
        documentation=pipeline.documentation,
        line=pipeline.line,
        parameters=pipeline.parameters,
        dims=pipeline.dims,
        grid=(),
        requires=pipeline.requires,
        unsafe=(),
        accesses=(),
        coverage=pipeline.coverage,
        variants=(),
    )


def pipeline_sets(manifest: Manifest) -> list[LaunchSet]:
    """By name all instances of a pipeline, by symbol each one; as contracts."""
    sets: dict[str, tuple[Kernel, ...]] = {}
    contracts = [contract_of(pipeline) for pipeline in manifest.pipelines]
    for contract in contracts:
        sets[contract.name] = (*sets.get(contract.name, ()), contract)
    for contract in contracts:
        sets.setdefault(contract.symbol, (contract,))
    return [LaunchSet(name, instances) for name, instances in sets.items()]


@dataclass(frozen=True)
class Choice:
    """What arguments of these types launch: the instances that have them, or a set with more."""

    types: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    launched: LaunchSet


def choices_of(launched: LaunchSet, type_of: Callable[[Parameter], str]) -> list[Choice]:
    """Each combination of types that instances have, once; `type_of` gives that of an argument.

    Instances whose tensors have other types are told apart by every launch. Where only the types of
    numbers differ, it is those of the arguments that say which are meant: they have a set of their
    own.
    """
    by_types: dict[tuple[str, ...], list[Kernel]] = {}
    for kernel in launched.kernels:
        by_types.setdefault(tuple(map(type_of, kernel.parameters)), []).append(kernel)
    parameters = launched.kernels[0].parameters
    tensors = {
        types: tuple(one for one, p in zip(types, parameters, strict=True) if p.is_tensor)
        for types in by_types
    }
    alike = Counter(tensors.values())
    return [
        Choice(
            types,
            tuple(kernels),
            launched
            if alike[tensors[types]] == 1
            else LaunchSet(f"{number}_by_types_{launched.name}", tuple(kernels)),
        )
        for number, (types, kernels) in enumerate(by_types.items())
    ]


def groups_of(kernels: Sequence[Kernel], families: Sequence[Family]) -> list[Group]:
    """The kernels in order, those of a family together where its first one is."""
    family_of = {member: family for family in families for member in family.members}
    groups: dict[str, tuple[Family | None, list[Kernel]]] = {}
    for kernel in kernels:
        family = family_of.get(kernel.symbol)
        name = kernel.symbol if family is None else family.members[0]
        groups.setdefault(name, (family, []))[1].append(kernel)
    return [Group(family, tuple(members)) for family, members in groups.values()]


def variants_before(manifest: Manifest) -> Iterator[tuple[Kernel, int]]:
    """Each kernel, with the number of its first variant in the cubin."""
    count = 0
    for kernel in manifest.kernels:
        yield kernel, count
        count += len(kernel.variants)
