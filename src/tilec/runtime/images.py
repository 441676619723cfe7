"""From the bytes of a file to a manifest, and of several cubins in it to the one for a device."""

from __future__ import annotations

from tilec.artifact.architecture import nearest
from tilec.artifact.embed import CubinError, extract
from tilec.artifact.fatbin import cubins_of
from tilec.artifact.manifest import Manifest, ManifestError, from_json
from tilec.artifact.validate import faults_of
from tilec.runtime.cuda_driver import Driver
from tilec.runtime.errors import ArchitectureError, ArtifactError


def manifest_of(cubin: bytes, name: str) -> Manifest:
    """The manifest in a cubin; `name` is what errors call it.

    Raises:   ArtifactError
    """
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


def cubin_for(fatbin: bytes, name: str, device: int | None, driver: Driver) -> bytes:
    """The cubin of a fat binary that is nearest to a device, or to the current one.

    Raises:   ArtifactError, ArchitectureError, NoDevice
    """
    try:
        cubins = cubins_of(fatbin)
    except CubinError as error:
        raise ArtifactError(f"{name}: {error}") from None
    by_target = {manifest_of(cubin, name).target: cubin for cubin in cubins}
    major, minor = driver.capability(device)
    target = nearest(by_target, major, minor)
    if target is None:
        raise ArchitectureError(
            f"{name} is built for {', '.join(by_target)}, the device is sm_{major}{minor}"
        )
    return by_target[target]
