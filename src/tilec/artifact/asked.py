"""What a variant asks of a tensor, in the words of every launcher's messages."""

from __future__ import annotations

from tilec.artifact.manifest import Precondition


def asked(precondition: Precondition) -> str:
    """Multiples, as far as any are asked for: everything is one of 1."""
    p = precondition
    aligned = f" at a multiple of {p.base_alignment_bytes} bytes," * (p.base_alignment_bytes > 1)
    rest = []
    if p.stride_multiple_bytes > 1:
        rest.append(f"strides of a multiple of {p.stride_multiple_bytes} bytes")
    if p.row_multiple > 1:
        rest.append(f"rows of a multiple of {p.row_multiple} elements")
    if not aligned and not rest:
        return f"nothing of `{p.param}`"
    return f"`{p.param}`{aligned}{' with ' * bool(rest)}{' and '.join(rest)}".rstrip(",")
