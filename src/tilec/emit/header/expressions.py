"""Expressions of a manifest as C, on 128 bits.

Noted are divisions by zero, and what does not fit in 64 bits where it should.
Values are `v[i]`: those of a kernel's `Dim`s, then those of its parameters. What notes something
takes `e`. Operands are evaluated only where docs/abi.md says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tilec.artifact.expression import WIDEST, Expression, is_conversion, must_fit
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import NumberKind as Kind
from tilec.artifact.signature import number_kind

_NOTING = frozenset({"add", "sub", "mul", "div", "rem", "ceildiv", "shl"})
_COMPARING = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_BITS = {"bitand": "&", "bitor": "|", "bitxor": "^"}


class Code(NamedTuple):
    """An expression of C, which binds tighter than any operator."""

    text: str
    kind: Kind


def names_of(kernel: Kernel) -> dict[str, Code]:
    """The value that each name of a kernel's expressions stands for."""
    found = {dim: Code(f"v[{i}].whole", "whole") for i, dim in enumerate(kernel.dims)}
    for i, parameter in enumerate(kernel.parameters, len(kernel.dims)):
        if parameter.is_tensor:
            continue
        kind = number_kind(parameter.element)
        found[parameter.name] = Code(f"v[{i}].{'real' if kind == 'real' else 'whole'}", kind)
    return found


def c_expression(
    expression: Expression,
    names: Mapping[str, Code],
    *,
    is_exact: bool = False,
    is_converted: bool = False,
) -> Code:
    """The C of an expression; `is_exact`: its numbers may be of any size."""
    if isinstance(expression, str):
        return names[expression]
    if isinstance(expression, bool):
        return Code(str(int(expression)), "truth")
    if isinstance(expression, int):
        return Code(_whole(expression), "whole")
    if isinstance(expression, float):
        return Code(f"({expression!r})", "real")
    name, *operands = expression
    assert isinstance(name, str), "a manifest's expressions are checked when it is read"
    below = is_conversion(name)
    codes = [c_expression(one, names, is_exact=is_exact, is_converted=below) for one in operands]
    if is_converted and not is_exact and name in WIDEST:
        return Code(f"tilec_low_{name}({codes[0].text}, {codes[1].text})", "whole")
    code = _operation(name, codes)
    if is_exact or code.kind != "whole" or not must_fit(name, is_converted=is_converted):
        return code
    return Code(f"tilec_in_64({code.text}, e)", "whole")


def _operation(name: str, operands: list[Code]) -> Code:
    texts = [one.text for one in operands]
    if name in ("and", "or"):
        left, right = map(_truth, operands)
        return Code(f"({left} {'&&' if name == 'and' else '||'} {right})", "truth")
    if name == "not":
        return Code(f"(!{_truth(operands[0])})", "truth")
    if name == "select":
        kind = _common(operands[1:])
        return Code(f"({_truth(operands[0])} ? {texts[1]} : {texts[2]})", kind)
    if name in _BITS:
        left, right = (f"(tilec_wide){text}" for text in texts)
        return Code(f"({left} {_BITS[name]} {right})", "whole")
    kind = _common(operands)
    if name == "neg":
        return Code(f"(-{texts[0]})" if kind == "real" else f"tilec_sub(0, {texts[0]}, e)", kind)
    function = f"tilec_real_{name}" if kind == "real" else f"tilec_{name}"
    if kind != "real" and (name in _NOTING or name == "abs"):
        texts.append("e")
    if name not in _COMPARING and kind == "truth":
        kind = "whole"
    return Code(f"{function}({', '.join(texts)})", "truth" if name in _COMPARING else kind)


def _truth(code: Code) -> str:
    return code.text if code.kind == "truth" else f"({code.text} != 0)"


def _common(operands: list[Code]) -> Kind:
    kinds = {one.kind for one in operands}
    if "real" in kinds:
        return "real"
    return "truth" if kinds == {"truth"} else "whole"


def _whole(number: int) -> str:
    if -(2**63) < number < 2**63:
        return str(number) if number >= 0 else f"({number})"
    if 2**63 <= number < 2**64:
        return f"((tilec_wide){number}u)"
    return f"((tilec_wide){number // 2**62} * ((tilec_wide)1 << 62) + {number % 2**62})"
