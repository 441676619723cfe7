"""How many operations a kernel has once its helpers are inlined, how deep they nest, and that
neither is too much.

Helpers that call others twice double at each level: what a few lines stand for may be larger than
anything can compile. Branches in helpers that are called in branches nest in each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import typed
from tilec.types import ArrayType

MOST_OPERATIONS = 1 << 16
# As deep as what is written may be: later stages recurse this deep.
DEEPEST = 1000

_COUNTED = (
    typed.Literal, typed.Operate, typed.If, typed.ShortCircuit, typed.For, typed.While, typed.Guard,
    typed.Require,
)  # fmt: skip
_NESTING = (typed.If, typed.ShortCircuit, typed.For, typed.While, typed.Guard)


@dataclass(frozen=True)
class _Size:
    """`depth` counts branches and loops inside of each other."""

    operations: int = 0
    depth: int = 0


def check_size(kernel: typed.KernelInstance) -> Iterator[Diagnostic]:
    """Yields E0702 for a kernel that is larger than what is compiled, at the call that makes it so.

    Assumes:  every body is checked, and none calls itself
    """
    sizes: dict[typed.FunctionInstance, _Size] = {}
    for helper in _callees_first(kernel):
        assert helper.body is not None, "every body is checked"
        sizes[helper] = _size(helper.body, sizes)
    whole = _size(kernel.body, sizes)
    if whole.operations > MOST_OPERATIONS:
        message = (
            f"`{kernel.name}` has {whole.operations} operations once its helpers are inlined, and "
            f"at most {MOST_OPERATIONS} are compiled"
        )
        help = "compute what is the same once, or in a loop"
        yield _at_largest(kernel, message, help, lambda call: sizes[call.function].operations)
    elif whole.depth > DEEPEST:
        message = (
            f"`{kernel.name}` nests {whole.depth} branches and loops once its helpers are inlined, "
            f"and at most {DEEPEST} are compiled"
        )
        help = "choose by `select`, or leave by a guard"
        yield _at_largest(kernel, message, help, lambda call: sizes[call.function].depth)


def _at_largest(
    kernel: typed.KernelInstance,
    message: str,
    help: str,
    share: Callable[[typed.CallHelper], int],
) -> Diagnostic:
    labels: tuple[Label, ...] = (Label(kernel.span, "this kernel"),)
    calls = list(typed.below(kernel.body, typed.CallHelper))
    if calls:
        largest = max(calls, key=share)
        labels = (Label(largest.span, f"this call is {share(largest)} of them"), *labels)
    return Diagnostic("E0702", message, labels, help=help)


def _size(body: typed.Node, sizes: dict[typed.FunctionInstance, _Size]) -> _Size:
    operations = depth = 0
    # What follows a guard lies inside of it.
    guards = sum(1 for _ in typed.below(body, typed.Guard))
    waiting = [(body, guards)]
    while waiting:
        node, level = waiting.pop()
        operations += _own_operations(node)
        if isinstance(node, typed.CallHelper):
            operations += sizes[node.function].operations
            depth = max(depth, level + sizes[node.function].depth)
        inside = level + isinstance(node, _NESTING)
        depth = max(depth, inside)
        waiting += [(child, inside) for child in typed.children(node)]
    return _Size(operations, depth)


def _own_operations(node: typed.Node) -> int:
    if isinstance(node, typed.ItemAt):
        # Each item is compared and chosen.
        assert isinstance(node.value.type, ArrayType), "an item is of an array"
        return 2 * node.value.type.length
    return int(isinstance(node, _COUNTED))


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
