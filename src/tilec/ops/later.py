"""Not in this version yet: E0103 where they are used."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.diagnostics.diagnostic import Label
from tilec.ops import uses
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.types import Type


@dataclass(frozen=True)
class _Later(Operation):
    name: str
    form: Form
    signature: str
    receiver: Receiver | None = None
    summary: str = "Not in this version yet (E0103)."

    def result_type(self, call: Call) -> Type:
        message = f"`{self.name}` is not in this version of tilec yet"
        raise uses.refuse("E0103", message, Label(call.name_span))

    def emit(self, emission: Emission) -> Value:
        raise AssertionError(f"{self.name} was type-checked")


_TILE = (
    "cumsum::<AXIS>()", "cumprod::<AXIS>()", "cummax::<AXIS>()", "scan::<AXIS>(init, |a, b| …)",
    "sort::<AXIS>()", "topk::<AXIS, K>()", "histogram::<BINS>()", "uniform()", "normal()",
)  # fmt: skip
_ATOMIC = (
    "fetch_add", "fetch_min", "fetch_max", "fetch_and", "fetch_or", "fetch_xor", "swap",
    "compare_exchange",
)  # fmt: skip
_TENSOR = (
    "gather::<…>([rows, …])",
    "gather_unchecked::<…>([rows, …])",
    "scatter([rows, …], tile)",
    "scatter_unchecked([rows, …], tile)",
    *(f"{name}{order}([i, …], value)" for name in _ATOMIC for order in ("", "_acq_rel")),
    *(f"{name}_unchecked([i, …], value)" for name in _ATOMIC),
)


def _method(receiver: Receiver, signature: str) -> _Later:
    name = signature.partition("::")[0].partition("(")[0]
    return _Later(name, Form.METHOD, f"x.{signature}", receiver)


OPERATIONS: tuple[Operation, ...] = (
    *(_method(Receiver.TILE, signature) for signature in _TILE),
    *(_method(Receiver.TENSOR, signature) for signature in _TENSOR),
    _Later("philox", Form.FUNCTION, "philox::<N>(seed, offset)"),
)
