"""What each launch function of a header launches: an instance, a family, or all of a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel, Manifest


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
