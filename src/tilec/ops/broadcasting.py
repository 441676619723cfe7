"""Operations whose arguments broadcast to one shape before one builder combines them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from tilec.ops import uses
from tilec.ops.build import spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.uses import Domain
from tilec.types import BOOL, Element, TileType, Type

# Combines tiles of one shape and element; `element` says what their numbers are.
Builder = Callable[..., ir.Value]


@dataclass(frozen=True)
class Broadcasting(Operation):
    """`count` tiles or scalars (`scalars`: no tiles) of one element type; shapes broadcast."""

    name: str
    form: Form
    count: int
    domain: Domain
    build: Builder
    signature: str
    summary: str
    receiver: Receiver | None = None
    turbofish: bool | None = None
    to_bool: bool = False
    scalars: bool = False

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, self.count)
        indices = range(self.count)
        for index in indices:
            if self.scalars:
                uses.expect_scalar(call, index)
            uses.expect_domain(call, index, self.domain)
        element = uses.unify(call, indices)
        for index in indices:
            uses.expect_domain(call, index, self.domain)
        shape = uses.broadcast(call, indices)
        return TileType(BOOL if self.to_bool else element, shape)

    def emit(self, emission: Emission) -> ir.Value:
        element, operands = spread_operands(emission)
        return self.build(element, *operands)


def spread_operands(emission: Emission) -> tuple[Element, list[ir.Value]]:
    """The element type and the operands, all of the result's shape."""
    assert isinstance(emission.result, TileType)
    shape = emission.result.shape
    operands = [
        spread(operand, element_in(kind), shape)
        for operand, kind in zip(emission.operands, emission.types, strict=True)
    ]
    return element_in(emission.types[0]), operands


def element_in(kind: Type) -> Element:
    """The element of a tile type, which is known when operations are emitted."""
    assert isinstance(kind, TileType) and isinstance(kind.element, Element), f"{kind} not resolved"
    return kind.element


def operator(
    name: str, count: int, domain: Domain, build: Builder, signature: str, summary: str
) -> Broadcasting:
    return Broadcasting(name, Form.OPERATOR, count, domain, build, signature, summary)


def method(
    name: str,
    count: int,
    domain: Domain,
    build: Builder,
    signature: str,
    summary: str,
    *,
    turbofish: bool | None = None,
    to_bool: bool = False,
    scalars: bool = False,
) -> Broadcasting:
    return Broadcasting(
        name,
        Form.METHOD,
        count,
        domain,
        build,
        signature,
        summary,
        Receiver.TILE,
        turbofish,
        to_bool,
        scalars,
    )
