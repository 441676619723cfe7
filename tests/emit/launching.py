"""The functions of an emitted header with a driver that launches nothing, and what it saw."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Sequence
from copy import copy
from pathlib import Path

from tests.emit.calling import Functions
from tests.emit.toolchain import fake_driver
from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.manifest import Manifest, Slot

CUBIN = b"\x7fELF" + bytes(range(1, 61)) + b"odd"  # what the fake driver takes for one


class Fake(ctypes.Structure):
    """`struct fake` of fake_cuda.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in (
            "major", "minor", "sm_count", "device_count", "clusters_at_once", "fail_init",
            "fail_load", "fail_launch", "fail_map",
        )),
        ("host_from", ctypes.c_uint64),
        ("second_from", ctypes.c_uint64),
        *((name, ctypes.c_int) for name in ("launches", "loads", "unloads", "maps", "retained")),
        ("kernel", ctypes.c_char * 256),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("cluster", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_uint64),
        ("context", ctypes.c_int),
        ("parameter_count", ctypes.c_int),
        ("parameters", (ctypes.c_ubyte * 128) * 320),
        ("shared_limit", ctypes.c_int),
    )  # fmt: skip


class Headers(Functions):
    """A header's functions, with a fake driver."""

    def __init__(
        self,
        manifests: Sequence[Manifest],
        folder: Path,
        tools: Path,
        cubin: bytes = CUBIN,
        prefix: str = "",
    ) -> None:
        self._tools, self._manifests = tools, manifests
        super().__init__(manifests, folder, cubin, prefix)

    def open(self, path: Path) -> None:
        super().open(path)
        self.driver = ctypes.CDLL(str(self.driver_path()))
        self.fake = Fake.in_dll(self.driver, "fake")
        reset(self.fake)
        self.driver.fake_enter(-1)
        self.describe()

    def describe(self) -> None:
        """Tells the driver what the kernels are; others may have had kernels of these names."""
        for manifest in self._manifests:
            describe(self.driver, manifest)

    def driver_path(self) -> Path:
        return fake_driver(self._tools)

    def use_driver(self) -> int:
        """Hands the fake driver in."""
        return int(self.library.shim_set_driver(self.driver._handle))

    def anew(self) -> Headers:
        """The same functions as in a program that was just started, without a driver."""
        again = copy(self)
        again.open(Path(shutil.copy(self.path, tempfile.mkdtemp(dir=self._tools))))
        return again


def reset(fake: Fake) -> None:
    ctypes.memset(ctypes.byref(fake), 0, ctypes.sizeof(fake))
    fake.major, fake.sm_count, fake.device_count, fake.clusters_at_once = 9, 132, 2, 32
    fake.host_from = fake.second_from = 2**64 - 1


def describe(driver: ctypes.CDLL, manifest: Manifest) -> None:
    """Tells the fake driver how wide the parameters of each variant are."""
    for kernel in manifest.kernels:
        for variant in kernel.variants:
            sizes = [slot_bytes(slot) for slot in variant.slots]
            driver.fake_describe(
                variant.symbol.encode(), len(sizes), (ctypes.c_int * len(sizes))(*sizes)
            )


def slot_bytes(slot: Slot) -> int:
    if slot.kind == "tensor_map":
        return 128
    return ELEMENT_BYTES[slot.element] if slot.kind == "scalar" and slot.element else 8
