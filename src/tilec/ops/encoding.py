"""A layout as the encoding of a builtin tensor, and back: a `DictAttr` of lists of integers.

`arith`, `math` and `scf` accept encoded tensors and refuse to mix two encodings, so MLIR's verifier
checks that no layout conversion was forgotten.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mlir import ir

from tilec.layout import Layout


def encode(layout: Layout) -> ir.Attribute:
    """The encoding attribute of a layout, in the current context."""
    return ir.Attribute.parse(_text(layout))


@lru_cache(maxsize=1024)
def _text(layout: Layout) -> str:
    fields = (f"{key} = {_list(value)}" for key, value in layout.to_dict().items())
    return "{" + ", ".join(fields) + "}"


def _list(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    return "[" + ", ".join(map(_list, value)) + "]"


def layout_of(tensor: ir.Type) -> Layout:
    """The layout of an encoded tensor type. Every tensor has one after `place_layouts`."""
    encoding = ir.RankedTensorType(tensor).encoding
    assert encoding is not None, f"{tensor} has no layout"
    return _decode(str(encoding))


@lru_cache(maxsize=1024)
def _decode(text: str) -> Layout:
    # An attribute's text has types after its integers: `[0 : i64]` prints as `[0]` for i64, the
    # default.
    attribute = ir.DictAttr(ir.Attribute.parse(text))
    return Layout.from_dict({named.name: _numbers(named.attr) for named in attribute})


def _numbers(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.ArrayAttr):
        return [_numbers(item) for item in ir.ArrayAttr(attribute)]
    return ir.IntegerAttr(attribute).value


def with_layout(tensor: ir.Type, layout: Layout) -> ir.Type:
    """The same tensor type with this layout."""
    ranked = ir.RankedTensorType(tensor)
    return ir.RankedTensorType.get(ranked.shape, ranked.element_type, encode(layout))


def give_layout(result: ir.Value, layout: Layout) -> None:
    """Make this the layout of a result; and of the number that a constant says it is, since MLIR
    wants both of one type."""
    kind = with_layout(result.type, layout)
    result.set_type(kind)
    attributes = result.owner.attributes
    if "value" not in attributes or not isinstance(attributes["value"], ir.DenseElementsAttr):
        return
    value = attributes["value"]
    if value.is_splat:
        attributes["value"] = ir.DenseElementsAttr.get_splat(kind, value.get_splat_value())
