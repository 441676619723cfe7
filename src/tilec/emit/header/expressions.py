"""How C writes the expressions of a manifest. Numbers convert by themselves, but where bits are
joined: those of the operands, not of what C would make of them."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.artifact.signature import NumberKind as Kind
from tilec.emit.expressions import Code, Language


def _whole(number: int) -> str:
    if -(2**63) < number < 2**63:
        return str(number) if number >= 0 else f"({number})"
    if 2**63 <= number < 2**64:
        return f"((tilec_wide){number}u)"
    return f"((tilec_wide){number // 2**62} * ((tilec_wide)1 << 62) + {number % 2**62})"


def _as_whole(code: Code) -> str:
    return f"(tilec_wide){code.text}" if code.kind == "real" else code.text


def _call(name: str, kind: Kind, texts: Sequence[str]) -> str:
    return f"tilec_{'real_' if kind == 'real' else ''}{name}({', '.join(texts)})"


C = Language(
    truths=("0", "1"),
    truth_value="{}",
    whole=_whole,
    real="({})",
    zeros=("0", "0"),
    select="({} ? {} : {})",
    kept_real="(e->real = {}, 0)",
    converted=lambda kind, code: code.text,
    as_bits=lambda code: f"(tilec_wide){code.text}",
    as_whole=_as_whole,
    call=_call,
)
