"""Which instances are a family, and what must hold of one in a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilec.artifact.expression import names_in, text_of
from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.number_kinds import fault_of_number
from tilec.artifact.signature import Parameter


def families_of(kernels: Sequence[Kernel]) -> tuple[Family, ...]:
    """The families of several members, in the order of their first ones; members as listed.

    Members have the same types, and the same `Dim`s: they differ in constants that are whole
    numbers, as extents of tiles are. Another truth value or another real number is another
    computation, and so is another static extent of a tensor.
    """
    groups: dict[object, list[Kernel]] = {}
    for kernel in kernels:
        groups.setdefault(_kind_of(kernel), []).append(kernel)
    return tuple(
        Family(
            name=_name_of(group[0]),
            kernel=group[0].name,
            dims=group[0].dims,
            members=tuple(kernel.symbol for kernel in group),
        )
        for group in groups.values()
        if len(group) > 1
    )


def _kind_of(kernel: Kernel) -> object:
    fixed = tuple(g for g in kernel.generics if g.kind == "type" or type(g.value) is not int)
    return kernel.name, fixed, tuple(map(_unblocked, kernel.parameters)), kernel.dims


def _unblocked(parameter: Parameter) -> Parameter:
    """A parameter as callers see it: what one program owns of it is no matter of theirs."""
    return replace(parameter, block=())


def _name_of(kernel: Kernel) -> str:
    types = [str(g.value) for g in kernel.generics if g.kind == "type"]
    return f"{kernel.name}__{'_'.join(types)}" if types else kernel.name


def faults_of_families(manifest: Manifest) -> Iterator[str]:
    """What is wrong with the families of a manifest, and with the costs of its variants."""
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    seen: set[str] = set()
    for family in manifest.families:
        yield from (f"the family `{family.name}` {fault}" for fault in _faults(family, kernels))
        for member in family.members:
            if member in seen:
                yield f"`{member}` is in two families"
            seen.add(member)
    for kernel in manifest.kernels:
        yield from _faults_of_costs(kernel)


def _faults(family: Family, kernels: Mapping[str, Kernel]) -> Iterator[str]:
    if not family.members:
        yield "has no members"
    for member in family.members:
        if member not in kernels:
            yield f"has the unknown member `{member}`"
        elif kernels[member].name != family.kernel or kernels[member].dims != family.dims:
            yield f"has the member `{member}`, which is of another kernel"
    for table in family.tables:
        shapes = [one.extents for one in table.measured]
        if len(set(shapes)) != len(shapes):
            yield f"was measured twice at one shape on `{table.card}`"
        for one in table.measured:
            if one.member not in family.members:
                yield f"was measured with `{one.member}`, which is no member"
            if len(one.extents) != len(family.dims):
                yield f"was measured at {one.extents}, which are not {len(family.dims)} extents"


def _faults_of_costs(kernel: Kernel) -> Iterator[str]:
    for variant in kernel.variants:
        cost = variant.cost
        if cost.blocks_per_sm < 1:
            yield f"`{variant.symbol}` has {cost.blocks_per_sm} blocks on a multiprocessor"
        for part in cost.parts:
            if min(*part.busy_cycles, part.alone_cycles) < 0:
                yield f"`{variant.symbol}` takes less than no time"
        expressions = (cost.memory_cycles, cost.first_cycles, *(part.turns for part in cost.parts))
        for name in {name for one in expressions for name in names_in(one)}:
            if name not in kernel.dims:
                yield f"a cost of `{variant.symbol}` names `{name}`, which is no `Dim`"
        for one in expressions:
            fault = fault_of_number(one, (), may_be_real=False)
            if fault is not None:
                yield f"a cost of `{variant.symbol}`, `{text_of(one)}`, {fault}"
