"""Two contracts of one kernel or pipeline: what callers may give, and what they get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tilec.artifact.expression import Expression, text_of
from tilec.artifact.signature import Coverage, Parameter, Requirement
from tilec.compatibility.change import Found
from tilec.compatibility.implied import implied, renamed

_Place = tuple[int, int]  # of a parameter, and an axis of it


class Contract(Protocol):
    """What kernels and pipelines both have."""

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...

    @property
    def dims(self) -> tuple[str, ...]: ...

    @property
    def requires(self) -> tuple[Requirement, ...]: ...

    @property
    def coverage(self) -> tuple[Coverage, ...]: ...


def contract_changes(old: Contract, new: Contract, known: Iterable[Expression] = ()) -> Found:
    """What the new contract asks and promises otherwise.

    `known` is what the old one asked for beside its `requires!`. Where arguments have other types
    or another order, nothing else is compared.
    """
    mistyped = list(_changes_of_types(old, new))
    yield from mistyped
    if mistyped:
        return
    for before, after in zip(old.parameters, new.parameters, strict=True):
        if before.name != after.name:
            what = "calls that give it by name are refused"
            yield "breaking", f"`{before.name}` is called `{after.name}`: {what}"
        yield from _changes_of_ownership(before, after)
    asked = [*(one.expression for one in old.requires), *known]
    yield from _stricter_extents(old, new, asked)
    yield from _looser_extents(old, new)
    yield from _changes_of_requires(old, new, asked)
    yield from _changes_of_coverage(old, new)


def new_names(old: Contract, new: Contract) -> dict[str, str]:
    """What the `Dim`s and parameters of the old contract are called in the new one.

    Assumes:  parameters have the same types, in the same order
    """
    names: dict[str, str] = {}
    before, after = _extents(old), _extents(new)
    for place, extent in before.items():
        if isinstance(extent, str) and isinstance(after[place], str):
            names.setdefault(extent, str(after[place]))
    pairs = zip(old.parameters, new.parameters, strict=True)
    return {**names, **{one.name: other.name for one, other in pairs}}


def old_terms(old: Contract, new: Contract) -> dict[str, Expression]:
    """What the `Dim`s and parameters of the new contract are in the old one: names, or numbers.

    Assumes:  parameters have the same types, in the same order
    """
    terms: dict[str, Expression] = {}
    before = _extents(old)
    for place, extent in _extents(new).items():
        if isinstance(extent, str):
            terms.setdefault(extent, before[place])
    pairs = zip(old.parameters, new.parameters, strict=True)
    return {**terms, **{other.name: one.name for one, other in pairs}}


def has_same_types(old: Contract, new: Contract) -> bool:
    """Whether arguments have the same types, in the same order."""
    return next(_changes_of_types(old, new), None) is None


def _changes_of_types(old: Contract, new: Contract) -> Found:
    before, after = ([p.name for p in one.parameters] for one in (old, new))
    if len(before) != len(after):
        yield "breaking", f"takes {len(after)} arguments ({', '.join(after)}), was {len(before)}"
        return
    if before != after and sorted(before) == sorted(after):
        yield "breaking", f"takes its arguments in the order {', '.join(after)}"
        return
    for one, other in zip(old.parameters, new.parameters, strict=True):
        if _type(one) != _type(other):
            yield "breaking", f"`{other.name}` is {_type(other)}, was {_type(one)}"


def _type(parameter: Parameter) -> str:
    if not parameter.is_tensor:
        return f"a number of type `{parameter.element}`"
    axes = f"{parameter.rank} {'axis' if parameter.rank == 1 else 'axes'}"
    return f"a tensor of `{parameter.element}` with {axes}"


def _changes_of_ownership(old: Parameter, new: Parameter) -> Found:
    if new.is_written and not old.is_written:
        yield "breaking", f"`{new.name}` is written: it must overlap no other argument"
    elif old.is_written and not new.is_written:
        yield "breaking", f"`{new.name}` is read only: nothing is written to it"
    elif (old.own == "atomic") != (new.own == "atomic"):
        yield "recompile", f"`{new.name}` is owned `{new.own}`, was `{old.own}`"


def _extents(contract: Contract) -> dict[_Place, str | int]:
    return {
        (number, axis): extent
        for number, parameter in enumerate(contract.parameters)
        for axis, extent in enumerate(parameter.extents)
    }


def _stricter_extents(old: Contract, new: Contract, asked: Sequence[Expression]) -> Found:
    """What must be equal now and did not have to be, each time told of the later place."""
    before, after = _extents(old), _extents(new)
    first: dict[str, _Place] = {}
    for place, extent in after.items():
        if isinstance(extent, int):
            if not _were_equal(before[place], extent, asked):
                yield "breaking", f"{_named(place, new)} is {extent}, was {_shown(before[place])}"
            continue
        source = first.setdefault(extent, place)
        if not _were_equal(before[place], before[source], asked):
            same = f"{_named(source, new)} (`{extent}`)"
            yield "breaking", f"{_named(place, new)} is that of {same}, was {_shown(before[place])}"


def _were_equal(one: str | int, other: str | int, asked: Sequence[Expression]) -> bool:
    return one == other or implied(("eq", one, other), asked)


def _looser_extents(old: Contract, new: Contract) -> Found:
    before, after = _extents(old), _extents(new)
    first: dict[str, _Place] = {}
    for place, extent in before.items():
        if isinstance(extent, int):
            if isinstance(after[place], str):
                yield "compatible", f"{_named(place, new)} may be any number, was {extent}"
            continue
        source = first.setdefault(extent, place)
        if after[source] != after[place]:
            yield "compatible", f"{_named(place, new)} need not be that of {_named(source, new)}"


def _named(place: _Place, contract: Contract) -> str:
    number, axis = place
    return f"the extent of axis {axis} of `{contract.parameters[number].name}`"


def _shown(extent: str | int) -> str:
    return f"`{extent}`" if isinstance(extent, str) else str(extent)


def _changes_of_requires(old: Contract, new: Contract, asked: Sequence[Expression]) -> Found:
    # What calls were before is known: where extents were equal, or numbers, they are so here.
    terms = old_terms(old, new)
    after = [renamed(one.expression, terms) for one in new.requires]
    for one, expression in zip(new.requires, after, strict=True):
        if not implied(expression, asked):
            built = text_of(one.expression)
            here = "" if built == one.text else f" (here `{built}`)"
            yield "breaking", f"requires `{one.text}`{here}"
    for one in old.requires:
        if not implied(one.expression, after):
            yield "compatible", f"requires no more that `{one.text}`"


def _changes_of_coverage(old: Contract, new: Contract) -> Found:
    names = new_names(old, new)
    before = {names.get(one.tensor, one.tensor): one for one in old.coverage}
    after = {one.tensor: one for one in new.coverage}
    pairs = zip(old.parameters, new.parameters, strict=True)
    for tensor in (q.name for p, q in pairs if p.is_written and q.is_written):
        nothing_known = Coverage(tensor, writes_all=False, reads_first=True)
        was, is_ = before.get(tensor, nothing_known), after.get(tensor, nothing_known)
        if was.writes_all and not is_.writes_all:
            yield "breaking", f"may leave elements of `{tensor}` as they were: it wrote all of them"
        if is_.writes_all and not was.writes_all:
            yield "compatible", f"writes all elements of `{tensor}`"
        if is_.reads_first and not was.reads_first:
            yield "breaking", f"may read `{tensor}` before it writes it: its values matter"
        if was.reads_first and not is_.reads_first:
            yield "compatible", f"reads nothing of `{tensor}` that it did not write"
