"""A loaded cubin: its manifest, and its kernels as callables."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any

from tilec.artifact.fatbin import is_fatbin
from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Pipeline
from tilec.printable import printable
from tilec.regular_files import BINARY_LIMIT, read_regular
from tilec.runtime.cuda_driver import Driver, cuda_driver
from tilec.runtime.images import cubin_for, manifest_of
from tilec.runtime.launcher import Launcher
from tilec.runtime.pipeline import PipelineLauncher

if TYPE_CHECKING:
    from os import PathLike


def load(source: str | PathLike[str] | bytes, device: int | None = None) -> Module:
    """The kernels of a cubin, from a file or its bytes. Needs no device until one is launched.

    Of a fat binary (`tilec build --fatbin`), the cubin that is nearest to `device`, or to the
    current one.

    Raises:   OSError; ArtifactError if it is no cubin of this version of tilec, or is damaged; of a
              fat binary NoDevice, and ArchitectureError if none of its cubins runs on the device
    """
    content, name = (
        (source, "the cubin")
        if isinstance(source, bytes)
        else (read_regular(source, BINARY_LIMIT), str(source))
    )
    if is_fatbin(content):
        content = cubin_for(content, name, device, cuda_driver())
    return Module(content, name)


class Module:
    """A cubin's kernels: `module.matmul` by name, `module["matmul__bf16"]` those of some types,
    `module["matmul__bf16_128_256_64"]` one instance. Its pipelines likewise.

    By name, the instance is the first of the manifest that the arguments fit, of a family the
    member for their shapes.
    """

    def __init__(self, cubin: bytes, name: str, driver: Callable[[], Driver] = cuda_driver) -> None:
        self.manifest = manifest_of(cubin, name)
        self.driver = driver
        self.cubin = cubin
        self._name = name
        self._code: object = None
        self._lock = RLock()  # a finalizer may come in the midst, and launch
        by_name: dict[str, list[Kernel]] = {}
        for kernel in self.manifest.kernels:
            by_name.setdefault(kernel.name, []).append(kernel)
        families = self.manifest.families
        by_symbol = {kernel.symbol: [kernel] for kernel in self.manifest.kernels}
        by_types = {
            family.name: [by_symbol[member][0] for member in family.members] for family in families
        }
        self._launchers: dict[str, Launcher | PipelineLauncher] = {
            name: Launcher(self, kernels, families)
            for name, kernels in {**by_symbol, **by_types, **by_name}.items()
        }
        self._launchers.update(_pipelines(self, self.manifest))
        self._instances = {symbol: Launcher(self, kernel) for symbol, kernel in by_symbol.items()}

    def code(self) -> object:
        """The machine code, which the driver loads on each device when it is first needed there."""
        if self._code is None:
            with self._lock:
                if self._code is None:
                    self._code = self.driver().loaded(self.cubin, self.manifest.target, self._name)
        return self._code

    def instance(self, symbol: str) -> Launcher:
        """One instance, also where its symbol is the name of a kernel or family too."""
        if symbol not in self._instances:
            known = ", ".join(f"`{n}`" for n in self._instances)
            raise KeyError(f"{self._name} has no instance `{symbol}`; it has {known}")
        return self._instances[symbol]

    def __getitem__(self, name: str) -> Any:
        if name not in self._launchers:
            known = ", ".join(f"`{n}`" for n in sorted(self._launchers))
            raise KeyError(f"{self._name} has no kernel `{name}`; it has {known}")
        return self._launchers[name]

    def __getattr__(self, name: str) -> Any:
        launchers = self.__dict__.get("_launchers", {})
        if name not in launchers:
            names = {k.name for k in self.manifest.kernels}
            known = ", ".join(sorted(names.union(p.name for p in self.manifest.pipelines)))
            said = f"{self._name} has no kernel `{name}`; it has {known}"
            raise AttributeError(printable(said))
        return launchers[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._launchers]

    def __repr__(self) -> str:
        symbols = ", ".join(kernel.symbol for kernel in self.manifest.kernels)
        return printable(f"Module({self._name}, {self.manifest.target}: {symbols})")


def _pipelines(module: Module, manifest: Manifest) -> dict[str, PipelineLauncher]:
    """The pipelines by name, and each instance by its symbol."""
    by_name: dict[str, list[Pipeline]] = {}
    for pipeline in manifest.pipelines:
        by_name.setdefault(pipeline.name, []).append(pipeline)
    by_symbol = {pipeline.symbol: [pipeline] for pipeline in manifest.pipelines}
    return {
        name: PipelineLauncher(module, pipelines, manifest)
        for name, pipelines in {**by_symbol, **by_name}.items()
    }
