"""A loaded cubin: its manifest, and its kernels as callables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tilec.artifact.embed import CubinError, extract
from tilec.artifact.manifest import Kernel, Manifest, ManifestError, from_json
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.validate import faults_of
from tilec.runtime.cuda_driver import Driver, cuda_driver
from tilec.runtime.errors import ArtifactError
from tilec.runtime.launcher import Launcher
from tilec.runtime.pipeline import PipelineLauncher

if TYPE_CHECKING:
    from os import PathLike


def load(source: str | PathLike[str] | bytes) -> Module:
    """The kernels of a cubin, from a file or its bytes. Needs no device until one is launched.

    Raises:   OSError; ArtifactError if it is no cubin of this version of tilec, or is damaged
    """
    if isinstance(source, bytes):
        return Module(source, "the cubin")
    return Module(Path(source).read_bytes(), str(source))


class Module:
    """A cubin's kernels: `module.matmul` by name, `module["matmul__bf16"]` those of some types,
    `module["matmul__bf16_128_256_64"]` one instance. Its pipelines likewise.

    By name, the instance is the first of the manifest that the arguments fit, of a family the
    member for their shapes.
    """

    def __init__(self, cubin: bytes, name: str, driver: Callable[[], Driver] = cuda_driver) -> None:
        self.manifest = _manifest_of(cubin, name)
        self.driver = driver
        self._cubin = cubin
        self._name = name
        self._code: object = None
        self._lock = Lock()
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
                    self._code = self.driver().loaded(self._cubin, self.manifest.target, self._name)
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
            raise AttributeError(f"{self._name} has no kernel `{name}`; it has {known}")
        return launchers[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._launchers]

    def __repr__(self) -> str:
        symbols = ", ".join(kernel.symbol for kernel in self.manifest.kernels)
        return f"Module({self._name}, {self.manifest.target}: {symbols})"


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


def _manifest_of(cubin: bytes, name: str) -> Manifest:
    try:
        text = extract(cubin)
        if text is None:
            raise ArtifactError(f"{name} holds no manifest: it was not built by tilec")
        manifest = from_json(text)
    except (CubinError, ManifestError) as error:
        raise ArtifactError(f"{name}: {error}") from None
    fault = next(faults_of(manifest), None)
    if fault is not None:
        raise ArtifactError(f"{name}: the manifest is not sound: {fault}")
    return manifest
