"""docs/ops.md says what the operations say of themselves, and nothing is half-declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilec.ir.dialect import declarations
from tilec.ops.call import Form, Operation
from tilec.ops.operations import all_operations, lookup, names
from tilec.ops.reference import reference
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"


def test_the_page_is_up_to_date(bless: bool) -> None:
    text = reference()
    if bless:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "run `make bless` and read the difference"


@pytest.mark.parametrize("operation", all_operations(), ids=lambda o: f"{o.form.value}-{o.name}")
def test_every_operation_is_found_by_its_name_and_documented(operation: Operation) -> None:
    found = lookup(operation.name, operation.form, operation.receiver, bool(operation.turbofish))
    assert found is operation
    assert operation.name in operation.signature or operation.form is Form.OPERATOR
    assert operation.summary.endswith(".")
    assert operation.name in names(operation.form, operation.receiver)


def test_every_operation_of_the_dialect_has_a_meaning() -> None:
    silent = [
        name
        for name in declarations()
        if name.startswith("tile.")
        and (name not in rules() or type(rules()[name]).interpret is OpRules.interpret)
    ]
    assert not silent


def test_unknown_names_are_not_found() -> None:
    assert lookup("expo", Form.METHOD, None, False) is None
