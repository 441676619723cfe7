"""From a pipeline's arguments to launches: the contract, the workspace, the instance of each.

Pure: no device. What follows from shapes, strides and the scalars that decide something is worked
out once for each combination (`PlannedPipeline`); what is left for each call is a look-up, the
checks of addresses, and the packing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from tilec.artifact.abi import ADDRESS_END, ELEMENT_BYTES
from tilec.artifact.expression import Value
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.workspace import SLOT_ALIGNMENT_BYTES, Workspace, WorkspaceError, workspace_of
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.borrows import Range, range_at
from tilec.runtime.contract import (
    bound_dims,
    check_address,
    check_device,
    check_form,
    check_overlap,
    check_requires,
    check_type,
    pairs_to_compare,
)
from tilec.runtime.entry import Entry, weight_of
from tilec.runtime.errors import ContractError
from tilec.runtime.fitted import Argument, LaunchPlan, ScalarSlot
from tilec.runtime.frames import Frames
from tilec.runtime.plan import Planner
from tilec.runtime.scalars import scalar_of
from tilec.runtime.step import Place, Step
from tilec.runtime.stream_schedule import Schedule, schedule_of

# Where plans put a workspace of which no address is known: where no tensor is, and no better
# aligned than any other.
SOMEWHERE = 2**62 + SLOT_ALIGNMENT_BYTES

_REMEMBERED_ADDRESSES = 256  # combinations of addresses, after which all are forgotten


class PipelinePlan(NamedTuple):
    """What a call of a pipeline would launch, in order, and the workspace that it needs."""

    pipeline: Pipeline
    device: int | None
    workspace: Workspace
    launches: tuple[LaunchPlan, ...]


class Addressed:
    """The variant of each launch that has programs, and the frames that are made of them."""

    __slots__ = ("entries", "frames")

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.frames: dict[int, list[Frames]] = {}  # by how many streams there may be


class PlannedPipeline:
    """A pipeline whose contract holds for these shapes, but for what addresses decide.

    `steps` are the launches that have programs, `after` which of these each comes after; `grid` is
    that of the first, None if there is none. A caller whose addresses have none of `low_bits` and
    are not null, and do not meet as told by `pairs`, may take `first`.

    Raises:   ContractError, with the pipeline's name
    """

    __slots__ = (
        "_addressed",
        "_all_steps",
        "_arrays",
        "_by_entries",
        "_dims",
        "_good_workspaces",
        "_parameters",
        "_schedules",
        "_tensor_at",
        "after",
        "computes",
        "device",
        "first",
        "grid",
        "kernel",
        "last_address",
        "low_bits",
        "pairs",
        "scalars",
        "steps",
        "weight",
        "workspace",
    )

    def __init__(
        self,
        pipeline: Pipeline,
        planners: Mapping[tuple[str, ...], Planner],
        arguments: Sequence[Argument],
    ) -> None:
        self.kernel = pipeline
        self._tensor_at = [i for i, p in enumerate(pipeline.parameters) if p.is_tensor]
        self._parameters = [pipeline.parameters[i] for i in self._tensor_at]
        self._arrays = [cast(Array, arguments[i]) for i in self._tensor_at]
        self.scalars = [
            ScalarSlot(0, position, p.name, p.element, {})
            for position, p in enumerate(pipeline.parameters)
            if not p.is_tensor
        ]
        try:
            values = self._checked_values(arguments)
            self.workspace = workspace_of(pipeline, values)
        except (ContractError, WorkspaceError) as error:
            raise self.refusal(error) from None
        self.device = self._arrays[0].device if self._arrays else None
        places = self._places()
        self._all_steps = [
            Step(pipeline, launch, planners[launch.instances], places, values)
            for launch in pipeline.launches
        ]
        kept = [n for n, step in enumerate(self._all_steps) if step.has_programs]
        self.steps = [self._all_steps[n] for n in kept]
        self.after = _without_others([one.after for one in pipeline.launches], kept)
        self.computes = any(step.computed for step in self.steps)
        # A workspace of the pool goes back by itself.
        self.weight = weight_of(sum(array.span_bytes for array in self._arrays))
        tensors = list(zip(self._parameters, self._arrays, strict=True))
        self.pairs = [
            (i, j, self._arrays[i].span_bytes, self._arrays[j].span_bytes)
            for i, j in pairs_to_compare(tensors)
        ]
        self._schedules: dict[int, Schedule] = {}
        self._by_entries: dict[tuple[Entry, ...], Addressed] = {}
        self._addressed: dict[tuple[int, ...], Addressed] = {}
        self._good_workspaces: set[object] = set()
        self.low_bits = self._bits_of_alignments()
        spans = [array.span_bytes for array in self._arrays]
        self.last_address = ADDRESS_END - (max(spans, default=1) or 1)
        self.first = self._usual()
        self.grid = None if not self.steps else (1, 1, 1)

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.kernel.symbol

    def touches(self, addresses: Sequence[int]) -> list[Range]:
        """The bytes that all launches together read and write, of tensors at these addresses; and
        of a workspace that the caller brings, whose address is the last, if it is not 0."""
        *tensors, workspace = addresses
        found = [
            range_at(address, array.span_bytes, parameter.own, parameter.name, array)
            for address, parameter, array in zip(
                tensors, self._parameters, self._arrays, strict=True
            )
            if not array.is_empty
        ]
        if workspace:
            size = self.workspace.bytes
            bytes_ = Array(workspace, "u8", (size,), (1,), self.device or 0)
            found.append(range_at(workspace, size, "mut", "workspace", bytes_))
        return found

    def at(self, addresses: Sequence[int]) -> Addressed:
        """The variants for tensors at these addresses; what was found for some is remembered.

        Raises:   ContractError
        """
        known = self._addressed.get(tuple(addresses))
        if known is not None:
            return known
        self._check_addresses(addresses)
        bases = [*addresses, SOMEWHERE]
        found = self._of(tuple(step.entry_at(bases) for step in self.steps))
        if len(self._addressed) >= _REMEMBERED_ADDRESSES:
            self._addressed.clear()
        self._addressed[tuple(addresses)] = found
        return found

    def plan(self, addresses: Sequence[int], workspace: int = SOMEWHERE) -> PipelinePlan:
        """All launches, those without programs too; the scalars are those of the arguments.

        Raises:   ContractError
        """
        self._check_addresses(addresses)
        bases = [*addresses, workspace]
        launches = tuple(step.plan(bases) for step in self._all_steps)
        return PipelinePlan(self.kernel, self.device, self.workspace, launches)

    def schedule(self, most_streams: int) -> Schedule:
        """On which stream each of `steps` goes."""
        known = self._schedules.get(most_streams)
        if known is None:
            known = self._schedules[most_streams] = schedule_of(self.after, most_streams)
        return known

    def bits(self, given: Sequence[object]) -> list[int]:
        """What the caller gives for the scalars, as cells hold it.

        Raises:   ContractError
        """
        try:
            return [scalar.bits(given[scalar.position]) for scalar in self.scalars]
        except ContractError as error:
            raise self.refusal(error) from None

    def values(self, given: Sequence[object]) -> dict[str, Value]:
        """What expressions over `Dim`s and scalars refer to."""
        found: dict[str, Value] = {
            one.name: scalar_of(one.name, one.element, given[one.position]).value
            for one in self.scalars
        }
        found.update(self._dims)
        return found

    def check_workspace(self, given: Array, addresses: Sequence[int]) -> None:
        """That memory which a caller brings will do: on the device, large enough, aligned, apart.

        What was found good is remembered, for the same arguments.

        Raises:   ContractError
        """
        key = (given, *addresses)
        if key in self._good_workspaces:
            return
        self._check_workspace(given, addresses)
        if len(self._good_workspaces) >= _REMEMBERED_ADDRESSES:
            self._good_workspaces.clear()
        self._good_workspaces.add(key)

    def refusal(self, error: Exception) -> ContractError:
        """What went wrong, with the pipeline's name."""
        return ContractError(f"`{self.kernel.symbol}`: {error}")

    def _check_workspace(self, given: Array, addresses: Sequence[int]) -> None:
        needed = self.workspace.bytes
        try:
            if given.device != self.device and self.device is not None:
                raise ContractError(
                    f"the workspace is on device {given.device}, the tensors on {self.device}"
                )
            if not needed:
                return
            if given.read_only:
                raise ContractError("the workspace is written, and what is given is read-only")
            if not _is_dense(given):
                raise ContractError(
                    f"expected a workspace without gaps, got shape {given.shape}, "
                    f"strides {given.strides}"
                )
            if given.span_bytes < needed:
                raise ContractError(
                    f"expected a workspace of {needed} bytes, got {given.span_bytes}"
                )
            if not given.pointer or given.pointer % SLOT_ALIGNMENT_BYTES:
                raise ContractError(
                    f"expected a workspace at a multiple of {SLOT_ALIGNMENT_BYTES} bytes, "
                    f"got {given.pointer:#x}"
                )
            if given.pointer + needed > ADDRESS_END:
                raise ContractError(
                    f"the workspace: {needed} bytes from address {given.pointer:#x} on "
                    "pass the end of the address space"
                )
            self._check_apart(given.pointer, addresses)
        except ContractError as error:
            raise self.refusal(error) from None

    def _checked_values(self, arguments: Sequence[Argument]) -> dict[str, Value]:
        tensors = list(zip(self._parameters, self._arrays, strict=True))
        for parameter, array in tensors:
            check_type(parameter, array)
            check_form(parameter, array)
        check_device(tensors)
        self._dims = bound_dims(tensors)
        values = self.values(arguments)
        check_requires(self.kernel.requires, values)
        return values

    def _places(self) -> dict[str, Place]:
        """Where each tensor lies that launches are given."""
        places = {
            parameter.name: Place(base, 0, array._replace(element=parameter.element))
            for base, (parameter, array) in enumerate(
                zip(self._parameters, self._arrays, strict=True)
            )
        }
        device = 0 if self.device is None else self.device
        for one in self.kernel.temporaries:
            shape, offset = self.workspace.extents[one.name], self.workspace.offsets[one.name]
            array = Array(SOMEWHERE + offset, one.element, shape, contiguous_strides(shape), device)
            places[one.name] = Place(len(self._parameters), offset, array)
        return places

    def _check_addresses(self, addresses: Sequence[int]) -> None:
        arrays = self._at(addresses)
        try:
            for parameter, array in zip(self._parameters, arrays, strict=True):
                check_address(parameter, array)
            for i, j, _, _ in self.pairs:
                check_overlap((self._parameters[i], arrays[i]), (self._parameters[j], arrays[j]))
        except ContractError as error:
            raise self.refusal(error) from None

    def _check_apart(self, workspace: int, addresses: Sequence[int]) -> None:
        end = workspace + self.workspace.bytes
        for parameter, array in zip(self._parameters, self._at(addresses), strict=True):
            first, last = array.pointer, array.pointer + array.span_bytes
            if not array.is_empty and first < end and workspace < last:
                raise ContractError(
                    f"the workspace overlaps `{parameter.name}`: bytes {workspace:#x} to {end:#x} "
                    f"and {first:#x} to {last:#x}"
                )

    def _at(self, addresses: Sequence[int]) -> list[Array]:
        return [
            array._replace(pointer=address)
            for array, address in zip(self._arrays, addresses, strict=True)
        ]

    def _of(self, entries: tuple[Entry, ...]) -> Addressed:
        return self._by_entries.setdefault(entries, Addressed(entries))

    def _bits_of_alignments(self) -> int:
        """The address bits that no launch wants set; all where bits cannot say it."""
        bits = max((ELEMENT_BYTES[array.element] for array in self._arrays), default=1) - 1
        for step in self.steps:
            bits |= step.fitted.low_bits
        return bits if bits < SLOT_ALIGNMENT_BYTES else -1

    def _usual(self) -> Addressed | None:
        """The first variant of each launch."""
        entries = [step.fitted.first for step in self.steps]
        if self.low_bits < 0 or None in entries:
            return None
        return self._of(tuple(entry for entry in entries if entry is not None))


def _is_dense(array: Array) -> bool:
    dense = contiguous_strides(array.shape)
    along = zip(array.shape, array.strides, dense, strict=True)
    return all(extent <= 1 or stride == expected for extent, stride, expected in along)


def _without_others(
    after: Sequence[tuple[int, ...]], kept: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """The order of the launches that are kept, by their numbers among these; without what follows
    from the rest."""
    number = {launch: n for n, launch in enumerate(kept)}
    nearest: list[set[int]] = []  # the kept ones that each comes after, itself if it is kept
    found: list[tuple[int, ...]] = []
    before: list[set[int]] = []  # of those kept, all
    for launch, earlier in enumerate(after):
        direct = set().union(*(nearest[n] for n in earlier))
        if launch not in number:
            nearest.append(direct)
            continue
        implied = set().union(*(before[n] for n in direct))
        found.append(tuple(sorted(direct - implied)))
        before.append(direct | implied)
        nearest.append({number[launch]})
    return tuple(found)
