"""Expressions of a manifest as Rust, on `i128`.

Noted are divisions by zero, and what does not fit in 64 bits where it should.
Values are `v[i]`: those of a kernel's `Dim`s, then those of its parameters. What notes something
takes `e`. Operands are evaluated only where docs/abi.md says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilec.artifact.expression import WIDEST, Expression, is_conversion, must_fit
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import NumberKind as Kind
from tilec.emit.header import expressions as in_c
from tilec.emit.header.expressions import Code

_NOTING = frozenset({"add", "sub", "mul", "div", "rem", "ceildiv", "shl"})
_COMPARING = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = {"bitand": "&", "bitor": "|", "bitxor": "^"}


def names_of(kernel: Kernel) -> dict[str, Code]:
    """The value that each name of a kernel's expressions stands for."""
    return {
        name: Code(f"({code.text} != 0)", "truth") if code.kind == "truth" else code
        for name, code in in_c.names_of(kernel).items()
    }


def rust_expression(
    expression: Expression,
    names: Mapping[str, Code],
    *,
    is_exact: bool = False,
    is_converted: bool = False,
) -> Code:
    """The Rust of an expression: a `bool`, an `i128` or an `f64`, as its kind says. `is_exact`: its
    numbers may be of any size."""
    if isinstance(expression, str):
        return names[expression]
    if isinstance(expression, bool):
        return Code("true" if expression else "false", "truth")
    if isinstance(expression, int):
        return Code(_whole(expression), "whole")
    if isinstance(expression, float):
        return Code(f"({expression!r}f64)", "real")
    name, *operands = expression
    assert isinstance(name, str), "a manifest's expressions are checked when it is read"
    below = is_conversion(name)
    codes = [rust_expression(one, names, is_exact=is_exact, is_converted=below) for one in operands]
    if is_converted and not is_exact and name in WIDEST:
        return Code(f"low_{name}({', '.join(map(as_whole, codes))})", "whole")
    code = _operation(name, codes)
    if is_exact or code.kind != "whole" or not must_fit(name, is_converted=is_converted):
        return code
    return Code(f"in_64({code.text}, e)", "whole")


def as_whole(code: Code) -> str:
    """The expression as an `i128`, which is not 0 where it holds."""
    if code.kind == "truth":
        return f"i128::from({code.text})"
    return f"({code.text} as i128)" if code.kind == "real" else code.text


def _operation(name: str, operands: list[Code]) -> Code:
    if name in ("and", "or"):
        left, right = map(_truth, operands)
        return Code(f"({left} {'&&' if name == 'and' else '||'} {right})", "truth")
    if name == "not":
        return Code(f"(!{_truth(operands[0])})", "truth")
    if name == "select":
        kind = _common(operands[1:])
        yes, no = (_as(kind, one) for one in operands[1:])
        return Code(f"(if {_truth(operands[0])} {{ {yes} }} else {{ {no} }})", kind)
    if name in _BITS:
        left, right = map(as_whole, operands)
        return Code(f"({left} {_BITS[name]} {right})", "whole")
    kind = _common(operands)
    if name in _COMPARING:
        left, right = (_as(kind, one) for one in operands)
        return Code(f"({left} {_COMPARING[name]} {right})", "truth")
    if kind == "truth":
        kind = "whole"
    texts = [_as(kind, one) for one in operands]
    if kind == "real":
        return Code(_of_reals(name, texts), kind)
    return Code(_of_wholes(name, texts), kind)


def _of_reals(name: str, texts: list[str]) -> str:
    return f"(-{texts[0]})" if name == "neg" else f"real_{name}({', '.join(texts)})"


def _of_wholes(name: str, texts: list[str]) -> str:
    if name == "neg":
        return f"sub(0, {texts[0]}, e)"
    if name in ("min", "max"):
        return f"std::cmp::{name}({', '.join(texts)})"
    if is_conversion(name):
        return f"to_{name}({texts[0]})"
    if name in _NOTING or name == "abs":
        texts = [*texts, "e"]
    return f"{name}({', '.join(texts)})"


def _as(kind: Kind, code: Code) -> str:
    if code.kind == kind:
        return code.text
    if kind == "real":
        return f"({as_whole(code)} as f64)"
    return as_whole(code) if kind == "whole" else _truth(code)


def _truth(code: Code) -> str:
    if code.kind == "truth":
        return code.text
    return f"({code.text} != {'0.0' if code.kind == 'real' else '0'})"


def _common(operands: list[Code]) -> Kind:
    kinds = {one.kind for one in operands}
    if "real" in kinds:
        return "real"
    return "truth" if kinds == {"truth"} else "whole"


def _whole(number: int) -> str:
    """A literal; where nothing else says its type, one of 32 bits."""
    text = str(number) if -(2**31) <= number < 2**31 else f"{number}i128"
    return text if number >= 0 else f"({text})"
