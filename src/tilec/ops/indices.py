"""Index lists in the IR: each component has its own integer type there and becomes `index`."""

from __future__ import annotations

from mlir import ir

from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.call import Emission
from tilec.ops.convert import converted
from tilec.types import USIZE


def index_values(emission: Emission, position: int) -> list[ir.Value]:
    """The components of an index list as `index` values, signed or not as their types say."""
    types = uses.components_of(emission.types[position])
    values = emission.operands[position]
    assert types is not None and isinstance(values, tuple), "an index list is a tuple of values"
    return [
        converted(value, element_in(kind), USIZE) for value, kind in zip(values, types, strict=True)
    ]
