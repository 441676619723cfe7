"""The machine code of a cubin on the devices of this machine."""

from __future__ import annotations

from threading import RLock

from cuda.bindings import driver as bindings
from cuda.core import Device, Kernel, ObjectCode

from tilec.artifact.architecture import runs_on
from tilec.artifact.manifest import Variant
from tilec.runtime.devices import SUCCESS
from tilec.runtime.errors import ArchitectureError, ArtifactError, LaunchError

# Above this, a kernel must ask for its dynamic shared memory (CUDA C++ Programming Guide,
# "Shared Memory", compute capability 7.x and later).
_SMEM_WITHOUT_ASKING = 48 * 1024


def loaded(cubin: bytes, target: str, name: str) -> Code:
    """The code of a cubin; the driver sees it when a kernel of it is first launched."""
    return Code(cubin, target, name)


class Code:
    """The machine code of one cubin, loaded on each device when it is first launched there."""

    def __init__(self, cubin: bytes, target: str, name: str) -> None:
        self._cubin = cubin
        self._target = target
        self._name = name
        self._object: ObjectCode | None = None
        self._kernels: dict[tuple[str, int], Kernel] = {}
        self._lock = RLock()  # a finalizer may come in the midst, and launch

    def kernel(self, variant: Variant, device: int) -> Kernel:
        """A variant's entry point, ready to launch on a device, which is current.

        Raises:   ArchitectureError, ArtifactError
        """
        known = self._kernels.get((variant.symbol, device))
        if known is not None:
            return known
        with self._lock:
            return self._kernels.setdefault((variant.symbol, device), self._loaded(variant, device))

    def _loaded(self, variant: Variant, device: int) -> Kernel:
        capability = Device(device).compute_capability
        if not runs_on(self._target, capability.major, capability.minor):
            raise ArchitectureError(
                f"{self._name} is built for {self._target}, device {device} "
                f"({Device(device).name}) is sm_{capability.major}{capability.minor}"
            )
        try:
            if self._object is None:
                self._object = ObjectCode.from_cubin(self._cubin, name=self._name)
            kernel = self._object.get_kernel(variant.symbol)
        except Exception as error:
            raise ArtifactError(
                f"{self._name}: the driver does not load `{variant.symbol}`: {error}"
            ) from error
        _allow_dynamic_smem(kernel, variant, device)
        return kernel


def _allow_dynamic_smem(kernel: Kernel, variant: Variant, device: int) -> None:
    smem_bytes = variant.static_smem_bytes + variant.dynamic_smem_bytes
    if not variant.dynamic_smem_bytes or smem_bytes <= _SMEM_WITHOUT_ASKING:
        return
    attribute = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    [status] = bindings.cuKernelSetAttribute(
        attribute, variant.dynamic_smem_bytes, kernel.handle, bindings.CUdevice(device)
    )
    if status != SUCCESS:
        raise LaunchError(
            f"`{variant.symbol}` needs {smem_bytes} bytes of shared memory: {status.name}"
        )
