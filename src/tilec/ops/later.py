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


_TILE = ("sort::<AXIS>()", "topk::<AXIS, K>()", "histogram::<BINS>()", "uniform()", "normal()")


def _method(receiver: Receiver, signature: str) -> _Later:
    name = signature.partition("::")[0].partition("(")[0]
    return _Later(name, Form.METHOD, f"x.{signature}", receiver)


OPERATIONS: tuple[Operation, ...] = (
    *(_method(Receiver.TILE, signature) for signature in _TILE),
    _Later("philox", Form.FUNCTION, "philox::<N>(seed, offset)"),
)
