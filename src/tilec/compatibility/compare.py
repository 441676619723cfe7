"""Two builds of one file: everything that callers of the old one may notice of the new one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tilec.artifact.architecture import runs_on
from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import number_kind
from tilec.compatibility.change import Change, Found
from tilec.compatibility.contract import contract_changes, has_same_types
from tilec.compatibility.launching import launch_changes
from tilec.compatibility.plans import pipeline_changes

_CAPABILITIES = [(major, minor) for major in range(5, 16) for minor in range(10)]


def changes_between(old: Sequence[Manifest], new: Sequence[Manifest]) -> list[Change]:
    """The changes, each once, whatever number of targets it is of.

    Manifests of one target are compared; where a target is gone, its old manifest with the first
    new one.
    """
    found = list(_changes_of_targets(old, new))
    by_target = {manifest.target: manifest for manifest in new}
    for before in old:
        found += _changes(before, by_target.get(before.target, new[0]))
    return list(dict.fromkeys(found))


def _changes_of_targets(old: Sequence[Manifest], new: Sequence[Manifest]) -> Iterator[Change]:
    before, after = ([manifest.target for manifest in one] for one in (old, new))
    for target in before:
        lost = [
            f"{major}.{minor}"
            for major, minor in _CAPABILITIES
            if runs_on(target, major, minor) and not _run_on(after, major, minor)
        ]
        if lost:
            message = f"`{target}` is gone: nothing runs on compute capability {lost[0]}"
            yield Change("breaking", "", message)
    for target in after:
        if target not in before:
            yield Change("compatible", "", f"`{target}` is a new target")


def _run_on(targets: Iterable[str], major: int, minor: int) -> bool:
    return any(runs_on(target, major, minor) for target in targets)


def _changes(old: Manifest, new: Manifest) -> Iterator[Change]:
    if new.checked and not old.checked:
        yield Change("breaking", "", "is a checked build: launches may end in an assertion")
    if old.checked and not new.checked:
        yield Change("compatible", "", "is no checked build any more")
    yield from _changes_of_kernels(old, new)
    kernels = (_rivals(one.kernels, one.families) for one in (old, new))
    yield from _changes_of_choices(*kernels)
    yield from _changes_of_choices(_rivals(old.pipelines), _rivals(new.pipelines))
    yield from _changes_of_names(old.kernels, new.kernels)
    yield from _changes_of_names(old.pipelines, new.pipelines)
    yield from _changes_of_families(old.families, new.families)
    yield from _changes_of_pipelines(old, new)


def _changes_of_kernels(old: Manifest, new: Manifest) -> Iterator[Change]:
    after = {kernel.symbol: kernel for kernel in new.kernels}
    known = {kernel.symbol for kernel in old.kernels}
    for kernel in old.kernels:
        if kernel.symbol not in after:
            yield Change("breaking", kernel.symbol, "is gone")
            continue
        found = _changes_of_kernel(kernel, after[kernel.symbol])
        yield from (Change(kind, kernel.symbol, message) for kind, message in found)
    for symbol in after:
        if symbol not in known:
            yield Change("compatible", symbol, "is new")


def _changes_of_kernel(old: Kernel, new: Kernel) -> Found:
    if old.name != new.name:
        yield "breaking", f"is an instance of `{new.name}`, was of `{old.name}`"
    yield from contract_changes(old, new)
    if has_same_types(old, new):
        yield from launch_changes(old, new)


def _changes_of_names(
    old: Sequence[Kernel | Pipeline], new: Sequence[Kernel | Pipeline]
) -> Iterator[Change]:
    """Names that C has no function for any more: what all instances of one are given as a number
    must be of one kind."""
    before, after = _kinds_by_name(old), _kinds_by_name(new)
    for name in (name for name in before if name in after):
        if len(before[name]) == 1 and len(after[name]) > 1:
            message = "its instances take numbers of several kinds: C has no function of it"
            yield Change("breaking", name, message)


def _kinds_by_name(launched: Sequence[Kernel | Pipeline]) -> dict[str, set[tuple[str, ...]]]:
    """By name, of each instance the kinds of its numbers."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for one in launched:
        kinds = tuple(number_kind(p.element) for p in one.parameters if not p.is_tensor)
        found.setdefault(one.name, set()).add(kinds)
    return found


def _changes_of_choices(
    before: Mapping[str, _Rivals], after: Mapping[str, _Rivals]
) -> Iterator[Change]:
    """Instances that are launched by the name of a kernel or pipeline before those that were there.

    Within a family that changes nothing but rounding; otherwise the first whose contract holds is
    launched, and another constant may be another computation.
    """
    for symbol, (name, ahead) in after.items():
        if symbol not in before:
            continue
        for other in ahead:
            was_behind = other in before and symbol in before[other].ahead
            if other not in before[symbol].ahead and (other not in before or was_behind):
                message = f"calls by this name may launch `{other}`, and launched `{symbol}`"
                yield Change("breaking", name, message)


class _Rivals(NamedTuple):
    """An instance's name, and the instances of that name and its types that are tried before."""

    name: str
    ahead: list[str]


def _rivals(
    launched: Sequence[Kernel | Pipeline], families: Sequence[Family] = ()
) -> dict[str, _Rivals]:
    """Those of each instance, of no family of its."""
    family_of = {member: f.name for f in families for member in f.members}
    rivals: dict[str, _Rivals] = {}
    for number, one in enumerate(launched):
        ahead = [
            other.symbol
            for other in launched[:number]
            if other.name == one.name
            and has_same_types(other, one)
            and family_of.get(other.symbol, other.symbol) != family_of.get(one.symbol)
        ]
        rivals[one.symbol] = _Rivals(one.name, ahead)
    return rivals


def _changes_of_families(old: Sequence[Family], new: Sequence[Family]) -> Iterator[Change]:
    after = {family.name: family for family in new}
    for family in old:
        if family.name not in after:
            yield Change("breaking", family.name, "is no family any more")
            continue
        other = after[family.name]
        if family.members != other.members:
            listed = ", ".join(f"`{member}`" for member in other.members)
            yield Change("compatible", family.name, f"chooses among {listed}")
        if family.tables != other.tables:
            yield Change("compatible", family.name, "was measured otherwise: choices may differ")
    names = {family.name for family in old}
    for name in after:
        if name not in names:
            yield Change("compatible", name, "is a new family")


def _changes_of_pipelines(old: Manifest, new: Manifest) -> Iterator[Change]:
    after = {pipeline.symbol: pipeline for pipeline in new.pipelines}
    known = {pipeline.symbol for pipeline in old.pipelines}
    kernels = [{kernel.symbol: kernel for kernel in one.kernels} for one in (old, new)]
    for pipeline in old.pipelines:
        if pipeline.symbol not in after:
            yield Change("breaking", pipeline.symbol, "is gone")
            continue
        found = pipeline_changes(pipeline, after[pipeline.symbol], *kernels)
        yield from (Change(kind, pipeline.symbol, message) for kind, message in found)
    for symbol in after:
        if symbol not in known:
            yield Change("compatible", symbol, "is new")
