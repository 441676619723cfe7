from __future__ import annotations

from dataclasses import fields

from tilec.frontend.attributes import HINTS
from tilec.hints import Hints


def test_every_hint_of_the_language_is_one_that_the_compiler_has() -> None:
    assert {field.name for field in fields(Hints)} == set(HINTS)


def test_hints_are_read_by_name() -> None:
    assert Hints.of({}) == Hints()
    asked = Hints.of({"stages": 3, "cluster": [2, 1], "ping_pong": False, "split": 4})
    assert asked == Hints(stages=3, cluster=(2, 1), ping_pong=False, split=4)
    assert Hints.of({"cluster": 2}).cluster == 2
