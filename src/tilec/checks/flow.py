"""How often what stands in the regions of an operation runs."""

from __future__ import annotations

from mlir import ir

from tilec.ops.registry import rules


def is_repeated(op: ir.Operation) -> bool:
    """Whether its regions may run several times, as a combiner's do; else it runs one of them."""
    rule = rules().get(op.name)
    return rule is None or rule.loop or not rule.control
