"""What `tilec.runtime` would launch, in the form in which a fake driver writes it down."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tests.emit.launching import Fake
from tests.emit.noting import CNote
from tilec.artifact.manifest import Manifest
from tilec.emit.sets import LaunchSet
from tilec.runtime.errors import ContractError
from tilec.runtime.fitted import LaunchPlan
from tilec.runtime.plan import Planner
from tilec.runtime.tiled_map import TiledMap

SM_COUNT, CARD, CLUSTERS_AT_ONCE = 132, "A Card", 32

# The numbers of cuda.h.
_DATA_TYPES = {
    "UINT8": 0, "UINT16": 1, "UINT32": 2, "INT32": 3, "UINT64": 4, "INT64": 5, "FLOAT16": 6,
    "FLOAT32": 7, "FLOAT64": 8, "BFLOAT16": 9, "TFLOAT32": 11,
}  # fmt: skip
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {128: 2, 256: 3}


class Machine:
    """The device that the fake driver has."""

    def sm_count(self, device: int | None) -> int:
        return SM_COUNT

    def card(self, device: int | None) -> str:
        return CARD


@dataclass(frozen=True)
class Launched:
    """A launch: `parameters` are the bytes of each, filled up with zeros."""

    variant: str
    grid: tuple[int, int, int]
    threads: int
    cluster: tuple[int, int, int]
    shared_bytes: int
    parameters: tuple[bytes, ...]


def planner_of(launched: LaunchSet, manifest: Manifest) -> Planner:
    return Planner(launched.kernels, Machine(), manifest.families)


def planned(planner: Planner, arguments: Sequence[object]) -> LaunchPlan | str:
    """The runtime's plan, or what it says against it."""
    try:
        return planner.plan(arguments)
    except ContractError as error:
        return str(error)


def launched_by(plan: LaunchPlan) -> Launched | None:
    """What the runtime hands to the driver; None if there is nothing to launch."""
    if plan.grid is None:
        return None
    variant = plan.variant
    x, y, z = plan.grid
    if variant.persistent_blocks_per_sm is not None and variant.cluster[0] > 2:
        x = min(x, CLUSTERS_AT_ONCE * variant.cluster[0])
    parameters = tuple(_bytes_of(given).ljust(128, b"\0") for given in plan.arguments)
    return Launched(
        variant.symbol, (x, y, z), variant.threads, variant.cluster, variant.dynamic_smem_bytes,
        parameters,
    )  # fmt: skip


def launched_on(fake: Fake | CNote) -> Launched:
    """The last launch that the fake driver saw, or one that it wrote down."""
    return Launched(
        fake.kernel.decode(), tuple(fake.grid), fake.block[0], tuple(fake.cluster),
        fake.shared_bytes,
        tuple(bytes(fake.parameters[i]) for i in range(fake.parameter_count)),
    )  # fmt: skip


def _bytes_of(given: object) -> bytes:
    if isinstance(given, TiledMap):
        return _told(given)
    if isinstance(given, int):
        return (given % 2**64).to_bytes(8, "little")
    return given.tobytes()  # type: ignore[attr-defined]


def _told(one: TiledMap) -> bytes:
    """As `struct told` of fake_cuda.c."""
    rank = len(one.extents)

    def padded(numbers: Sequence[int], count: int) -> list[int]:
        return [*numbers, *[0] * (count - len(numbers))]

    return struct.pack(
        "<6B2xQ5I5HH4Q",
        _DATA_TYPES[one.data_type], rank, 0, _SWIZZLES[one.swizzle], _PROMOTIONS[one.promotion], 0,
        one.address, *padded(one.extents, 5), *padded(one.box, 5), rank,
        *padded(one.stride_bytes, 4),
    )  # fmt: skip
