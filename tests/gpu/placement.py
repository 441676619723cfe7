"""Where tensors lie: at aligned addresses and others, with gaps between rows or without."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.artifact.abi import ELEMENT_BYTES


@dataclass(frozen=True)
class Placement:
    """Units: elements; `gap` follows each row of a tensor that has rows."""

    name: str
    output_offset: int = 0
    input_offset: int = 0
    gap: int = 0

    def of(self, shape, element, *, is_output):
        """The arguments of `RedZones` for a tensor."""
        offset = self.output_offset if is_output else self.input_offset
        return {
            "misaligned_bytes": offset * ELEMENT_BYTES[element],
            "strides": strides_with_gap(shape, self.gap),
        }


PLACEMENTS = (
    Placement("aligned"),
    Placement("output one element off", output_offset=1),
    Placement("inputs one element off", input_offset=1),
    Placement("all off", output_offset=3, input_offset=1),
    Placement("gaps of one element", gap=1),
    Placement("gaps of 32 elements", gap=32),
    Placement("gaps and all off", output_offset=1, input_offset=1, gap=5),
)


def strides_with_gap(shape, gap):
    """The strides of a row-major tensor whose rows are `gap` elements apart."""
    strides, stride = [], 1
    for axis in reversed(range(len(shape))):
        strides.append(stride)
        stride *= max(shape[axis], 1)
        if axis == len(shape) - 1:
            stride += gap
    return tuple(reversed(strides))
