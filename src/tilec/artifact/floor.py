"""The least that a kernel must move: what no way of computing the same can save.

An input is read once, an output that is written as a whole once, and once more where the kernel
reads what was there. What is read or written in part, as indices or the program's path say, has no
number here: it is named instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.expression import Expression
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter


@dataclass(frozen=True)
class Transfer:
    """A tensor that is read or written as a whole.

    Units:    `bytes` as an expression of the extents
    """

    tensor: str
    direction: Literal["read", "written"]
    bytes: Expression


@dataclass(frozen=True)
class Floor:
    """`partial` are tensors of which a part is read or written that the manifest cannot tell."""

    transfers: tuple[Transfer, ...]
    partial: tuple[str, ...]


def floor_of(kernel: Kernel) -> Floor:
    transfers: list[Transfer] = []
    partial: list[str] = []
    coverage = {one.tensor: one for one in kernel.coverage}
    for parameter in kernel.parameters:
        if not parameter.is_tensor:
            continue
        size = _bytes_of(parameter)
        name, known = parameter.name, coverage.get(parameter.name)
        done = {a.what for a in kernel.accesses if a.tensor == name}
        if not parameter.is_written:
            if "load" in done:
                transfers.append(Transfer(name, "read", size))
            elif done:
                partial.append(name)
            continue
        if known is None or not known.writes_all:
            partial.append(name)
            continue
        if known.reads_first:
            transfers.append(Transfer(name, "read", size))
        transfers.append(Transfer(name, "written", size))
    return Floor(tuple(transfers), tuple(partial))


def _bytes_of(tensor: Parameter) -> Expression:
    factor = ELEMENT_BYTES[tensor.element]
    names: list[str] = []
    for extent in tensor.extents:
        if isinstance(extent, int):
            factor *= extent
        else:
            names.append(extent)
    total: Expression = factor
    for name in names:
        total = ("mul", total, name)
    return total
