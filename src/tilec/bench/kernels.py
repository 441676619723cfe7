"""Our contender: kernels of prebuilt cubins, launched on the current stream of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tilec.runtime as rt
from tilec.artifact.manifest import Toolchain
from tilec.bench.description import Call, Ours


class Kernels:
    """Kernels by name, from a folder that `tilec build` wrote: a kernel is in the file of its name.

    `used` are the symbols of what was launched, in order of their first launch, and `toolchain` is
    what built them.
    """

    def __init__(
        self, folder: Path, target: str, load: Callable[[Path], rt.Module] = rt.load
    ) -> None:
        self._folder = folder
        self._target = target
        self._load = load
        self.used: list[str] = []
        self.toolchain: Toolchain | None = None

    def fitting(self, *names: str) -> Call:
        """Launches the first of these kernels that takes the arguments; it does not wait.

        Which one that is is decided at the first call, for all others.

        Raises:   rt.ContractError if none takes them; OSError if there is no cubin
        """
        chosen: list[rt.Launcher] = []

        def launch(*arguments: object) -> None:
            if not chosen:
                chosen.append(self._first_that_takes(names, arguments))
            chosen[0].launch(*arguments)

        return launch

    def _first_that_takes(
        self, names: tuple[str, ...], arguments: tuple[object, ...]
    ) -> rt.Launcher:
        refusals = []
        for name in names:
            launcher = self._launcher(name)
            try:
                plan = launcher.plan(*arguments)
            except rt.ContractError as error:
                refusals.append(str(error))
                continue
            if plan.variant.symbol not in self.used:
                self.used.append(plan.variant.symbol)
            return launcher
        raise rt.ContractError("\n".join(refusals))

    def _launcher(self, name: str) -> rt.Launcher:
        module = self._load(self._folder / f"{name}.{self._target}.cubin")
        self.toolchain = module.manifest.toolchain
        launcher: rt.Launcher = module[name]
        return launcher


def fitting(*names: str) -> Ours:
    """Our contender where one launch is all: of the first of these kernels that fits."""
    return lambda kernels: kernels.fitting(*names)
