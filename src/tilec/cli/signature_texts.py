"""Parameters and generics as a `.tile` program writes them."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.artifact.expression import Expression, text_of
from tilec.artifact.signature import Generic, Parameter


def type_of(parameter: Parameter) -> str:
    """The type of a parameter."""
    if not parameter.is_tensor:
        return parameter.element
    tensor = tensor_of(parameter.element, parameter.extents)
    match parameter.own:
        case "part":
            return f"Part<{', '.join([f'&mut {tensor}', *map(str, parameter.block)])}>"
        case "mut":
            return f"&mut {tensor}"
        case "atomic":
            return f"&Atomic<{tensor}>"
        case _:
            return f"&{tensor}"


def tensor_of(element: str, extents: Iterable[Expression]) -> str:
    """The type of a tensor, however it is held."""
    return f"Tensor<{', '.join([element, *map(text_of, extents)])}>"


def generics_of(generics: Iterable[Generic]) -> str:
    """What generics are bound to."""
    return ", ".join(f"{g.name} = {_value(g.value)}" for g in generics)


def _value(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
