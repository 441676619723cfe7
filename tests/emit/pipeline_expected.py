"""What `tilec.runtime` would launch of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from tests.emit.expected import Machine
from tilec.artifact.manifest import Manifest
from tilec.emit.sets import LaunchSet
from tilec.runtime.errors import ContractError
from tilec.runtime.pipeline import PipelineLauncher
from tilec.runtime.pipeline_plan import SOMEWHERE, PipelinePlan


def launcher_of(one: LaunchSet, manifest: Manifest) -> PipelineLauncher:
    """The pipelines of a set as the runtime has them."""
    symbols = {contract.symbol for contract in one.kernels}
    pipelines = [pipeline for pipeline in manifest.pipelines if pipeline.symbol in symbols]
    return PipelineLauncher(SimpleNamespace(driver=Machine), pipelines, manifest)


def planned(
    launcher: PipelineLauncher, arguments: Sequence[object], workspace: int = SOMEWHERE
) -> PipelinePlan | str:
    """The runtime's plan with a workspace at this address, or what it says against it."""
    try:
        return launcher.plan(*arguments, workspace=workspace)
    except ContractError as error:
        return str(error)
