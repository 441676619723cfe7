"""The operations of the language by name."""

from __future__ import annotations

from functools import cache

from tilec.ops.call import Form, Operation, Receiver
from tilec.ops.registry import modules

_Key = tuple[str, Form, Receiver | None]


@cache
def all_operations() -> tuple[Operation, ...]:
    """Every operation, module by module, as docs/ops.md lists them."""
    return tuple(o for module in modules() for o in getattr(module, "OPERATIONS", ()))


@cache
def _table() -> dict[_Key, tuple[Operation, ...]]:
    table: dict[_Key, tuple[Operation, ...]] = {}
    for operation in all_operations():
        key = operation.name, operation.form, operation.receiver
        table[key] = (*table.get(key, ()), operation)
    return table


def lookup(name: str, form: Form, receiver: Receiver | None, turbofish: bool) -> Operation | None:
    """The operation that a use means, or None if there is none of the name.

    `turbofish` (whether one is written) tells `a.max(b)` from `a.max::<1>()`; where it fits none,
    what has the name is given, whose type rule says what is wrong.
    """
    found = _table().get((name, form, receiver), ())
    fitting = [o for o in found if o.turbofish in (None, turbofish)]
    return next(iter(fitting or found), None)


@cache
def names(form: Form, receiver: Receiver | None) -> tuple[str, ...]:
    """Every name of a form, sorted, for suggestions."""
    return tuple(sorted({key[0] for key in _table() if key[1:] == (form, receiver)}))
