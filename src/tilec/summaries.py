"""What is proved of kernels, as pipelines ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.artifact.signature import Coverage
from tilec.pipelines.traced import TracedLaunch
from tilec.proofs.account import coverage_of, shortfall_of
from tilec.proofs.proof import Proof


@dataclass(frozen=True)
class KernelSummaries:
    """Kernels by their symbols; what is known of them is so for the numbers that a launch gives."""

    proofs: Mapping[str, Proof]

    def coverage(self, symbol: str, launch: TracedLaunch) -> tuple[Coverage, ...]:
        return coverage_of(self.proofs[symbol], _numbers_of(launch))

    def shortfall(self, symbol: str, parameter: str, launch: TracedLaunch) -> str | None:
        return shortfall_of(self.proofs[symbol], parameter, _numbers_of(launch))


def _numbers_of(launch: TracedLaunch) -> dict[str, int]:
    """The scalars that a launch gives as numbers."""
    arguments = [given.argument for given in launch.given]
    return {a.parameter: int(a.value) for a in arguments if isinstance(a.value, int)}
