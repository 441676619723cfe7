"""A target by its name: from our tables, or from the nearest one that we have a table of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tilec.diagnostics.setup_error import SetupError
from tilec.target import sm_80, sm_90, sm_100
from tilec.target.description import Target
from tilec.target.toolchain import ptxas_targets

DEFAULT = "sm_90a"
TARGETS: dict[str, Target] = {
    target.name: target for table in (sm_80, sm_90, sm_100) for target in table.TARGETS
}
# What LLVM 22 can write: the newest PTX ISA, which has every chip below, and the chips.
NEWEST_PTX = 90
LLVM_CHIPS = frozenset({80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121})


def resolve(name: str, accepted: Callable[[], frozenset[str]] = ptxas_targets) -> Target:
    """The facts of a target; `described_as` is set when they are those of an older relative.

    `accepted` gives the names that ptxas takes; it is asked only for names without a table.

    Raises:   SetupError (E0901) if ptxas does not know the name, or it is older than any table
    """
    if name in TARGETS:
        return TARGETS[name]
    match = re.fullmatch(r"sm_(\d+)(\d)[af]?", name)
    if not match or name not in accepted():
        raise _unknown(name, "is not one that ptxas knows", accepted())
    capability = int(match[1]), int(match[2])
    if _number(capability) not in LLVM_CHIPS:
        raise _unknown(name, "is not one that this compiler writes code for", accepted())
    nearest = max(t.capability for t in TARGETS.values() if t.capability <= capability)
    table = TARGETS[f"sm_{_number(nearest)}"]
    return replace(
        table, name=name, capability=capability, ptx_version=NEWEST_PTX, described_as=table.name
    )


def other_targets(accepted: frozenset[str]) -> list[str]:
    """The targets without a table that can be built, of those that ptxas accepts."""
    others = (name for name in accepted - set(TARGETS) if _digits(name) in LLVM_CHIPS)
    return sorted(others, key=lambda name: (_digits(name), name))


def _unknown(name: str, why: str, accepted: frozenset[str]) -> SetupError:
    return SetupError(
        f"target `{name}` {why}",
        help=f"expected one of {', '.join(TARGETS)}, or, by the facts of the nearest of these, "
        + ", ".join(other_targets(accepted)),
        code="E0901",
    )


def _digits(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _number(capability: tuple[int, int]) -> int:
    return capability[0] * 10 + capability[1]
