"""What `tilec inspect` says of families: members, what was measured, and the model's figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tilec.artifact.expression import ExpressionError, evaluate, holds
from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel, Manifest
from tilec.cli.columns import columns
from tilec.diagnostics.setup_error import SetupError
from tilec.target.description import Target
from tilec.tune.shapes import extents_by_owner


def family_lines(
    manifest: Manifest, target: Target, picks: tuple[str, ...], *, tables: bool
) -> Iterator[str]:
    """Of each family whose members are all in the manifest; `tables` lists what was measured. Picks
    are for the families whose extents they say.

    Raises:   SetupError if a pick is a shape of no family, or there is no family
    """
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    whole = [one for one in manifest.families if all(m in kernels for m in one.members)]
    if picks and not whole:
        raise SetupError("`--pick` is about families, and there is none here")
    dims = {family.name: family.dims for family in whole}
    given = [extents_by_owner(pick, dims) for pick in picks]
    for family in whole:
        yield ""
        yield f"{family.name}: launched as one, by {', '.join(family.dims) or 'nothing'}"
        rows = [("members", family.members[0]), *(("", m) for m in family.members[1:])]
        rows += [
            ("measured", f"{len(table.measured)} shapes on {table.card}") for table in family.tables
        ]
        yield from columns(rows)
        if tables:
            yield from _tables(family)
        for extents in given:
            if family.name in extents:
                yield ""
                yield from _figures(family, kernels, target, extents[family.name])


def _tables(family: Family) -> Iterator[str]:
    for table in family.tables:
        yield ""
        yield f"  measured on {table.card}"
        rows = [(*family.dims, "µs", "member")]
        rows += [(*map(str, one.extents), f"{one.us:g}", one.member) for one in table.measured]
        yield from columns(rows, "    ")


def _figures(
    family: Family, kernels: Mapping[str, Kernel], target: Target, extents: tuple[int, ...]
) -> Iterator[str]:
    """What the model says of each member's first variant at some extents, on the largest card."""
    values = dict(zip(family.dims, extents, strict=True))
    where = ", ".join(f"{dim} = {extent}" for dim, extent in values.items())
    yield f"  {where}, {target.multiprocessors} multiprocessors"
    found = {
        member: _estimate(kernels[member], values, target.multiprocessors)
        for member in family.members
    }
    known = [one[2] for one in found.values() if isinstance(one, tuple)]
    rows = [("member", "programs", "rounds", "cycles", "by the fewest")]
    chosen = next(
        (m for m, one in found.items() if isinstance(one, tuple) and one[2] == min(known)), None
    )
    for member, one in found.items():
        if isinstance(one, str):
            rows.append((member, one, "", "", ""))
            continue
        mark = "  <- the model's choice" if member == chosen else ""
        share = f"{one[2] / max(1, min(known)):.3f}{mark}"
        rows.append((member, str(one[0]), str(one[1]), str(one[2]), share))
    yield from columns(rows, "    ")
    for table in family.tables:
        for measured in table.measured:
            if measured.extents == extents:
                yield f"    {table.card}: {measured.member} was measured, {measured.us:g} µs"


def _estimate(
    kernel: Kernel, values: Mapping[str, int], multiprocessors: int
) -> tuple[int, int, int] | str:
    """Programs, how often a multiprocessor is filled with them, and cycles; or why there are none.

    What depends on scalars too has no answer here.
    """
    cost = kernel.variants[0].cost
    if not cost.parts:
        return "costs are not known"
    try:
        for requirement in kernel.requires:
            if not holds(requirement.expression, values):
                return f"requires {requirement.text}"
        programs = prod(int(evaluate(extent, values)) for extent in kernel.grid)
    except ExpressionError:
        return "depends on scalars"
    rounds = -(-programs * cost.blocks_per_program // (multiprocessors * cost.blocks_per_sm))
    return programs, rounds, cost.cycles(programs, values, multiprocessors)
