"""The functions of an emitted file of Rust, called from Python as those of a header are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.emit.launching import CUBIN
from tests.emit.noting import Pipelines
from tests.emit.rust.compiler import rustc
from tests.emit.rust.library import rust_library
from tilec.artifact.manifest import Manifest
from tilec.emit.sets import launch_sets, pipeline_sets


class RustLaunchers(Pipelines):
    """A file's functions with a fake driver, in a library of their own in `folder`."""

    def __init__(
        self, manifests: Sequence[Manifest], folder: Path, tools: Path, inside: str = ""
    ) -> None:
        rustc()
        self._tools, self._manifests = tools, manifests
        self.sets = {one.name: one for one in launch_sets(manifests[0])}
        self.pipelines = {one.name: one for one in pipeline_sets(manifests[0])}
        self.path = rust_library(manifests, CUBIN, folder, inside)
        self.open(self.path)
