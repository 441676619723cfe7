"""The least that a kernel must move: what no way of computing the same can save.

What is read of an input is read once, an output that is written is written once, and is read where
the kernel reads what was there. Of a tensor of which programs touch a part that extents tell, a
layer that a scalar names, it is that part. What indices or the program's path choose has no number
here: it is named instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.expression import Expression
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter


@dataclass(frozen=True)
class Transfer:
    """A tensor that is read or written, or the part of it that is.

    Units:    `bytes` as an expression of the extents
    """

    tensor: str
    direction: Literal["read", "written"]
    bytes: Expression


_Touched = Mapping[tuple[str, str], tuple[Expression, ...]]


@dataclass(frozen=True)
class Floor:
    """`partial` are tensors of which a part is read or written that the manifest cannot tell."""

    transfers: tuple[Transfer, ...]
    partial: tuple[str, ...]


def floor_of(kernel: Kernel) -> Floor:
    transfers: list[Transfer] = []
    partial: list[str] = []
    coverage = {one.tensor: one for one in kernel.coverage}
    touched: _Touched = {(one.tensor, one.direction): one.extents for one in kernel.touched}
    for parameter in kernel.parameters:
        if not parameter.is_tensor:
            continue
        name, known = parameter.name, coverage.get(parameter.name)
        done = {a.what for a in kernel.accesses if a.tensor == name}
        if not parameter.is_written:
            if "load" in done:
                transfers.append(_transfer(parameter, "read", touched))
            elif done:
                partial.append(name)
            continue
        is_known = known is not None and (known.writes_all or (name, "written") in touched)
        if known is None or not is_known:
            partial.append(name)
            continue
        if known.reads_first:
            transfers.append(_transfer(parameter, "read", touched))
        transfers.append(_transfer(parameter, "written", touched))
    return Floor(tuple(transfers), tuple(partial))


def _transfer(
    tensor: Parameter,
    direction: Literal["read", "written"],
    touched: _Touched,
) -> Transfer:
    extents = touched.get((tensor.name, direction), tensor.extents)
    factor = ELEMENT_BYTES[tensor.element]
    others: list[Expression] = []
    for extent in extents:
        if isinstance(extent, int):
            factor *= extent
        else:
            others.append(extent)
    total: Expression = factor
    for one in others:
        total = ("mul", total, one)
    return Transfer(tensor.name, direction, total)
