"""Variables by name, innermost block first, and whether each has a value yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilec.frontend.typed import Local


class Scope:
    """The variables of one function while it is checked.

    `unset` are those that may have no value at this point (`let x;`), `fresh` those that certainly
    have none: only these can be given one without `mut`.
    """

    def __init__(self) -> None:
        self._blocks: list[dict[str, Local]] = [{}]
        self.unset: frozenset[Local] = frozenset()
        self.fresh: frozenset[Local] = frozenset()

    @contextmanager
    def block(self) -> Iterator[None]:
        """A scope inside: what is declared in it ends with it."""
        self._blocks.append({})
        try:
            yield
        finally:
            self._blocks.pop()

    def declare(self, local: Local, *, has_value: bool = True) -> None:
        """Bring a variable into scope; it hides an earlier one of its name."""
        self._blocks[-1][local.name] = local
        if not has_value:
            self.unset |= {local}
            self.fresh |= {local}

    def rebind(self, local: Local) -> None:
        """Let the name of a variable stand for this one, in the block that declares it."""
        for block in reversed(self._blocks):
            if local.name in block:
                block[local.name] = local
                return
        raise AssertionError(f"{local.name} is declared")

    def find(self, name: str) -> Local | None:
        for block in reversed(self._blocks):
            if name in block:
                return block[name]
        return None

    @property
    def depth(self) -> int:
        """How many blocks are open."""
        return len(self._blocks)

    def depth_of(self, name: str) -> int:
        """The depth of the block that declares a variable; 0 if none does."""
        depths = (i + 1 for i, block in enumerate(self._blocks) if name in block)
        return max(depths, default=0)

    def has(self, name: str) -> bool:
        return self.find(name) is not None

    def names(self) -> set[str]:
        return {name for block in self._blocks for name in block}

    def assign(self, local: Local) -> None:
        """Note that a variable has a value from here on."""
        self.unset -= {local}
        self.fresh -= {local}

    def snapshot(self) -> tuple[frozenset[Local], frozenset[Local]]:
        return self.unset, self.fresh

    def restore(self, state: tuple[frozenset[Local], frozenset[Local]]) -> None:
        self.unset, self.fresh = state

    def join(self, *states: tuple[frozenset[Local], frozenset[Local]]) -> None:
        """Go on where several paths meet."""
        self.unset = frozenset().union(*(unset for unset, _ in states))
        self.fresh = frozenset.intersection(*(fresh for _, fresh in states))
