"""How Rust writes the expressions of a manifest: as `bool`, `i128` and `f64`, none of which
becomes another by itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.artifact.expression import is_conversion
from tilec.artifact.signature import NumberKind as Kind
from tilec.emit.expressions import COMPARING, Code, Language


def _whole(number: int) -> str:
    """A literal; where nothing else says its type, one of 32 bits."""
    text = str(number) if -(2**31) <= number < 2**31 else f"{number}i128"
    return text if number >= 0 else f"({text})"


def _as_whole(code: Code) -> str:
    if code.kind == "truth":
        return f"i128::from({code.text})"
    return f"({code.text} as i128)" if code.kind == "real" else code.text


def _converted(kind: Kind, code: Code) -> str:
    if code.kind == kind:
        return code.text
    if kind == "real":
        return f"({_as_whole(code)} as f64)"
    return _as_whole(code) if kind == "whole" else RUST.truth(code)


def _call(name: str, kind: Kind, texts: Sequence[str]) -> str:
    if name in COMPARING:
        return f"({texts[0]} {COMPARING[name]} {texts[1]})"
    listed = f"({', '.join(texts)})"
    if kind == "real":
        return f"real_{name}{listed}"
    if name in ("min", "max"):
        return f"std::cmp::{name}{listed}"
    if is_conversion(name):
        return f"to_{name}{listed}"
    return f"{name}{listed}"


RUST = Language(
    truths=("false", "true"),
    truth_value="({} != 0)",
    whole=_whole,
    real="({}f64)",
    zeros=("0", "0.0"),
    select="(if {} {{ {} }} else {{ {} }})",
    kept_real="{{ e.real = {}; 0 }}",
    converted=_converted,
    as_bits=_as_whole,
    as_whole=_as_whole,
    call=_call,
)
