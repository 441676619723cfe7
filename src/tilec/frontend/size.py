"""How many operations a kernel has once its helpers are inlined, and that these are not too many.

Helpers that call others twice double at each level: what a few lines stand for may be larger than
anything can compile.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import typed
from tilec.types import ArrayType

MOST_OPERATIONS = 1 << 16

_COUNTED = (
    typed.Literal, typed.Operate, typed.If, typed.ShortCircuit, typed.For, typed.While, typed.Guard,
    typed.Require,
)  # fmt: skip


def check_size(kernel: typed.KernelInstance) -> Iterator[Diagnostic]:
    """Yields E0702 for a kernel of more operations than are compiled, at the call that makes most.

    Assumes:  every body is checked, and none calls itself
    """
    sizes: dict[typed.FunctionInstance, int] = {}
    for helper in _callees_first(kernel):
        assert helper.body is not None, "every body is checked"
        sizes[helper] = _size(helper.body, sizes)
    total = _size(kernel.body, sizes)
    if total <= MOST_OPERATIONS:
        return
    calls = list(typed.below(kernel.body, typed.CallHelper))
    message = (
        f"`{kernel.name}` has {total} operations once its helpers are inlined, and at most "
        f"{MOST_OPERATIONS} are compiled"
    )
    help = "compute what is the same once, or in a loop"
    labels: tuple[Label, ...] = (Label(kernel.span, "this kernel"),)
    if calls:
        largest = max(calls, key=lambda call: sizes[call.function])
        labels = (Label(largest.span, f"this call is {sizes[largest.function]} of them"), *labels)
    yield Diagnostic("E0702", message, labels, help=help)


def _size(body: typed.Node, sizes: dict[typed.FunctionInstance, int]) -> int:
    total = 0
    for node in typed.below(body, typed.Node):
        if isinstance(node, typed.CallHelper):
            total += sizes[node.function]
        elif isinstance(node, typed.ItemAt):
            # Each item is compared and chosen.
            assert isinstance(node.value.type, ArrayType), "an item is of an array"
            total += 2 * node.value.type.length
        elif isinstance(node, _COUNTED):
            total += 1
    return total


def _callees_first(kernel: typed.KernelInstance) -> Iterator[typed.FunctionInstance]:
    """Every helper that is called, each after those that it calls."""
    # A stack, not a recursion: chains of calls may be of any length.
    seen: set[typed.FunctionInstance] = set()
    waiting = _called(kernel.body)
    while waiting:
        helper = waiting[-1]
        if helper in seen:
            waiting.pop()
            continue
        assert helper.body is not None, "every body is checked"
        missing = [one for one in _called(helper.body) if one not in seen]
        if missing:
            waiting += missing
            continue
        seen.add(waiting.pop())
        yield helper


def _called(body: typed.Node) -> list[typed.FunctionInstance]:
    return [call.function for call in typed.below(body, typed.CallHelper)]
