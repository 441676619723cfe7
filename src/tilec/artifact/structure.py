"""Frozen dataclasses to and from JSON values, and the JSON schema of a dataclass.

A field's type decides: numbers, text, `X | None` and other unions, `Literal`, tuples, dataclasses,
and `Expression`. Fields that equal their default are written too: a reader in another language
finds every field in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from types import UnionType
from typing import Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tilec.artifact.expression import OPERATIONS, Expression, ExpressionError, names_in

T = TypeVar("T")
Json = Mapping[str, object]

_JSON_TYPES = {
    bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null",
}  # fmt: skip


class StructureError(ValueError):
    """A value does not have the form that the dataclass asks for; the message names the field."""


class _Expression:
    """Stands for `Expression` in field types: the alias is recursive, so nothing can resolve it."""


def parsed(text: str) -> object:
    """What a JSON text says.

    Raises:   ValueError, also for NaN, for numbers of thousands of digits, and for half a
              character, which nobody can print or write again; RecursionError
    """
    document = json.loads(text, parse_constant=_no_number)
    if "\\u" in text:  # there is no other way to write half a character
        json.dumps(document, ensure_ascii=False).encode()
    return document


def _no_number(name: str) -> None:
    raise ValueError(f"`{name}` is no number")


def encoded(value: object) -> dict[str, object]:
    """A dataclass as a JSON object, its fields in order."""
    assert is_dataclass(value), f"{value!r} is no dataclass"
    return {f.name: _encoded(getattr(value, f.name)) for f in fields(value)}


def decoded(kind: type[T], value: object, path: str) -> T:
    """The dataclass that a JSON object gives.

    Raises:   StructureError for what is missing, unknown or of another type, named from `path` on
    """
    return cast(T, _decoded_object(kind, value, path))


def schema_of(kind: type) -> dict[str, object]:
    """The JSON schema (draft 2020-12) of a dataclass; others go under `$defs` by their names."""
    definitions: dict[str, object] = {"Expression": _expression_schema()}
    body = _object_schema(kind, definitions)
    return {**body, "$defs": definitions}


@cache
def _field_types(kind: type) -> dict[str, object]:
    return dict(get_type_hints(kind, localns={"Expression": _Expression}))


def _encoded(value: object) -> object:
    if isinstance(value, tuple):
        return [_encoded(x) for x in value]
    return encoded(value) if is_dataclass(value) else value


def _decoded_object(kind: type, value: object, path: str) -> object:
    if not isinstance(value, dict):
        raise StructureError(f"`{path}`: expected an object, got {_short(value)}")
    types = _field_types(kind)
    for name in types:
        if name not in value:
            raise StructureError(f"`{path}` has no `{name}`")
    for name in value:
        if name not in types:
            raise StructureError(f"`{path}` has an unknown field `{name}`")
    return kind(**{name: _decoded(t, value[name], f"{path}.{name}") for name, t in types.items()})


def _decoded(kind: object, value: object, path: str) -> object:
    if kind is _Expression:
        return _decoded_expression(value, path)
    if isinstance(kind, type) and is_dataclass(kind):
        return _decoded_object(kind, value, path)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _decoded_tuple(arguments, value, path)
    if origin in (Union, UnionType) and _Expression in arguments and value is not None:
        return _decoded_expression(value, path)
    if not _is_plain(kind, value):
        raise StructureError(f"`{path}`: expected {_name(kind)}, got {_short(value)}")
    return value


def _decoded_tuple(arguments: tuple[object, ...], value: object, path: str) -> object:
    if not isinstance(value, list):
        raise StructureError(f"`{path}`: expected a list, got {_short(value)}")
    if arguments[-1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        raise StructureError(f"`{path}`: expected {len(arguments)} items, got {len(value)}")
    return tuple(
        _decoded(kind, item, f"{path}[{i}]")
        for i, (kind, item) in enumerate(zip(arguments, value, strict=True))
    )


def _is_plain(kind: object, value: object) -> bool:
    """Whether a number or text is of the type; `True` is no `int`, and 1 is a `float`."""
    origin = get_origin(kind)
    if origin is Literal:
        return any(value == x and type(value) is type(x) for x in get_args(kind))
    if origin in (Union, UnionType):
        return any(_is_plain(x, value) for x in get_args(kind))
    if type(value) is float and not isfinite(value):
        return False  # as `1e999` is read
    return type(value) is kind or (kind is float and type(value) is int)


def _decoded_expression(value: object, path: str) -> object:
    expression = _frozen(value, path)
    try:
        list(names_in(expression))
    except ExpressionError as error:
        raise StructureError(f"`{path}`: {error}") from None
    return expression


def _frozen(value: object, path: str) -> Expression:
    if isinstance(value, list):
        return tuple(_frozen(x, path) for x in value)
    is_value = isinstance(value, (bool, int, str)) or (isinstance(value, float) and isfinite(value))
    if not is_value:
        raise StructureError(f"`{path}`: expected an expression, got {_short(value)}")
    return cast(Expression, value)


def _object_schema(kind: type, definitions: dict[str, object]) -> dict[str, object]:
    types = _field_types(kind)
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": {name: _schema(t, definitions) for name, t in types.items()},
        "required": list(types),
        "additionalProperties": False,
    }


def _schema(kind: object, definitions: dict[str, object]) -> dict[str, object]:
    if kind is _Expression:
        return {"$ref": "#/$defs/Expression"}
    if isinstance(kind, type) and is_dataclass(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = _object_schema(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is tuple:
        return {"type": "array", "prefixItems": [_schema(x, definitions) for x in arguments],
                "minItems": len(arguments), "maxItems": len(arguments)}  # fmt: skip
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(x, definitions) for x in arguments]}
    assert isinstance(kind, type), f"no schema of {kind!r}"
    return {"type": _JSON_TYPES[kind]}


def _expression_schema() -> dict[str, object]:
    operand = {"$ref": "#/$defs/Expression"}
    by_arity: dict[int, list[str]] = {}
    for name, operation in OPERATIONS.items():
        by_arity.setdefault(operation.arity, []).append(name)
    calls = [
        {"type": "array", "prefixItems": [{"enum": names}, *[operand] * arity],
         "minItems": arity + 1, "maxItems": arity + 1}
        for arity, names in sorted(by_arity.items())
    ]  # fmt: skip
    return {
        "description": "A number, the name of a `Dim` or scalar, or an operation and its operands.",
        "anyOf": [{"type": ["boolean", "number", "string"]}, *calls],
    }


def _name(kind: object) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(f'"{x}"' for x in get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_name(x) for x in get_args(kind))
    return _JSON_TYPES[kind] if isinstance(kind, type) else str(kind)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
