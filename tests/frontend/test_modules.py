"""Programs of several files."""

from __future__ import annotations

from front_end import checked, emitted, refusals, symbols

KERNEL = "#[kernel(grid = [TWO])]\npub fn k() {\n    let a = double(3);\n}\n"


def test_items_of_another_file_are_used_by_name() -> None:
    other = """pub const TWO: usize = 2;
pub fn double(x: i32) -> i32 { twice(x) }
fn twice(x: i32) -> i32 { x + x }
"""
    module = emitted(f"use other::{{double, TWO}};\n{KERNEL}", other=other)
    assert '"tile.grid"' in module and "@k.double" in module and "@k.twice" in module


def test_an_unknown_file_or_item_is_refused_once() -> None:
    assert refusals(f"use other::{{double, TWO}};\n{KERNEL}") == [("E0201", 1)]
    other = "pub const TWO: usize = 2;"
    assert refusals(f"use other::{{double, TWO}};\n{KERNEL}", other=other) == [("E0201", 1)]


def test_files_may_use_each_other() -> None:
    other = (
        "use third::half;\npub const TWO: usize = 2;\npub fn double(x: i32) -> i32 { half(x) * 4 }"
    )
    third = "use other::TWO;\npub fn half(x: i32) -> i32 { x / TWO as i32 }"
    text = f"use other::{{double, TWO}};\n{KERNEL}"
    assert symbols(text, other=other, third=third) == ["k"]


def test_what_is_wrong_in_another_file_is_reported_there() -> None:
    other = "pub const TWO: usize = 2;\npub fn double(x: i32) -> i32 { y }"
    _, found, _ = checked(f"use other::{{double, TWO}};\n{KERNEL}", other=other)
    assert [(d.code, d.span.file) for d in found] == [("E0201", "other.tile")]


def test_kernels_of_other_files_are_not_built() -> None:
    other = "pub const TWO: usize = 2;\npub fn double(x: i32) -> i32 { x }\n" + (
        "#[kernel(grid = [1])]\npub fn q() {}"
    )
    assert symbols(f"use other::{{double, TWO}};\n{KERNEL}", other=other) == ["k"]


def test_a_name_that_is_used_and_defined_is_defined_twice() -> None:
    other = "pub const TWO: usize = 2;"
    assert refusals("use other::TWO;\nconst TWO: usize = 3;", other=other) == [("E0205", 1)]


def test_a_use_of_a_form_that_is_not_in_the_language_is_refused_once() -> None:
    for use in ("use other::a as b;", "use other::*;", "use other::{a as b, TWO};", "use a::b::c;"):
        assert refusals(f"{use}\n{KERNEL}") == [("E0102", 1)], use
        assert refusals(f"{use}\n{KERNEL}", other="pub const TWO: usize = 2;") == [("E0102", 1)]
