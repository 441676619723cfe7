"""The cubins that an emitted file lies beside, loaded when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from tilec.artifact.architecture import nearest
from tilec.artifact.manifest import Manifest
from tilec.regular_files import BINARY_LIMIT, read_regular
from tilec.runtime.cuda_driver import Driver, cuda_driver
from tilec.runtime.errors import ArchitectureError
from tilec.runtime.images import manifest_of
from tilec.runtime.module import Module, load


class Beside:
    """The cubins of a program, one for each target, in the folder of `file`."""

    def __init__(
        self, file: str, cubins: Mapping[str, str], driver: Callable[[], Driver] = cuda_driver
    ) -> None:
        self._folder = Path(file).resolve().parent
        self._cubins = dict(cubins)
        self._driver = driver
        self._module: Module | None = None
        self._manifest: Manifest | None = None
        self._lock = RLock()  # a finalizer may come in the midst, and launch

    def module(self) -> Module:
        """The kernels, of the cubin for the device that is current when this is first asked.

        Needs a device only where there are several cubins.

        Raises:   ImportError if the cubin is not there; ArchitectureError if none of several runs
                  on the device; NoDevice; ArtifactError
        """
        if self._module is None:
            with self._lock:
                if self._module is None:
                    self._module = load(self._path(self._target()))
        return self._module

    def launcher(self, name: str) -> Any:
        """What launches a kernel or a pipeline, also one whose name modules have for another thing.

        Raises:   as `module` does; AttributeError if the cubin is of another file, and has none
        """
        try:
            return self.module()[name]
        except KeyError as error:
            raise AttributeError(*error.args) from None

    def manifest(self) -> Manifest:
        """What the kernels ask of their arguments: the same for all targets. Needs no device."""
        if self._module is not None:
            return self._module.manifest
        if self._manifest is None:
            path = self._path(next(iter(self._cubins)))
            self._manifest = manifest_of(read_regular(path, BINARY_LIMIT), str(path))
        return self._manifest

    def _path(self, target: str) -> Path:
        path = self._folder / self._cubins[target]
        if not path.is_file():
            raise ImportError(f"expected the cubin that was built with this file, {path}")
        return path

    def _target(self) -> str:
        if len(self._cubins) == 1:
            return next(iter(self._cubins))
        major, minor = self._driver().capability(None)
        target = nearest(self._cubins, major, minor)
        if target is None:
            raise ArchitectureError(
                f"the kernels are built for {', '.join(self._cubins)}, "
                f"the device is sm_{major}{minor}"
            )
        return target


def attributes(
    file: str, cubins: Mapping[str, str], names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of an emitted module: `names` are what kernels and pipelines are
    called there, and `module` is what `load` gives."""
    beside = Beside(file, cubins)

    def attribute(name: str) -> Any:
        if name == "module":
            return beside.module()
        if name not in names:
            known = ", ".join(f"`{one}`" for one in names)
            raise AttributeError(f"{file} has no kernel `{name}`; it has {known}")
        return beside.launcher(names[name])

    return attribute, lambda: [*names, "module"]
