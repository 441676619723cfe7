"""Checks as passes: each runs alone on a module in text form, and says what it finds there."""

from __future__ import annotations

import re

import pytest

from tilec.checks.registry import check_passes
from tilec.driver import CHECKS
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules
from tilec.rewriting import Passes, Rewritten, run_passes, run_passes_on_program
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve

TARGET = resolve("sm_90a")

TWICE = """\
fn both<N: Dim>(a: &mut Part<&mut Tensor<f32, N>, 64>, b: &mut Part<&mut Tensor<f32, N>, 64>) {}

#[kernel]
pub fn k<N: Dim>(mut z: Part<&mut Tensor<f32, N>, 64>) {
    both(&mut z, &mut z);
}
"""


def module_of(program: str, *, with_places: bool) -> str:
    """The module of a program as it is emitted, in text form."""
    return opt_program(program, "", with_places=with_places).text


def opt_program(program: str, names: str, *, with_places: bool = False) -> Rewritten:
    sources = Sources(SourceFile("case.tile", program), {}, {}, {})
    return run_passes_on_program(sources, Passes(names, TARGET, with_places))


def opt(module: str, names: str, *texts: SourceFile) -> Rewritten:
    read = {text.name: text for text in texts}.get
    return run_passes(SourceFile("case.mlir", module), Passes(names, TARGET), read)


@pytest.mark.parametrize("name", check_passes())
def test_a_pass_leaves_a_right_module_as_it_is(name: str) -> None:
    program = "fn f() {}\n#[kernel(grid = [N])]\npub fn k<N: Dim>(x: &Tensor<f32, N>) { f(); }"
    module = module_of(program, with_places=False)
    assert opt(module, name) == Rewritten(module)


def test_every_check_of_the_driver_is_in_a_pass() -> None:
    in_passes = {check.function for checks in check_passes().values() for check in checks}
    assert set(CHECKS) <= in_passes


def test_the_ownership_pass_has_moves_borrows_and_writes() -> None:
    names = {check.function.__name__ for check in check_passes()["tile-verify-ownership"]}
    assert names == {"check_moves", "check_borrows", "check_writes"}


def test_places_are_in_the_program_where_locations_were_printed() -> None:
    module = module_of(TWICE, with_places=True)
    found = opt(module, "tile-verify-ownership", SourceFile("case.tile", TWICE))
    assert found.errors == (
        "case.tile:5:18: E0403: `z` is borrowed mutably twice at once: borrowed again\n"
        "case.tile:5:10: note: borrowed mutably",
    )
    assert found.text == ""


@pytest.mark.parametrize("texts", [(), (SourceFile("case.tile", "fn f() {}\n"),)])
def test_a_text_that_is_gone_or_changed_costs_only_the_names(texts: tuple[SourceFile, ...]) -> None:
    module = module_of(TWICE, with_places=True)
    [error] = opt(module, "tile-verify-ownership", *texts).errors
    assert error.startswith("case.tile:5:18: E0403: this is borrowed mutably twice at once")


def test_places_are_in_the_module_where_there_are_no_locations() -> None:
    module = module_of(TWICE, with_places=False)
    lines = [n for n, line in enumerate(module.splitlines(), 1) if '"tile.borrow"' in line]
    [error] = opt(module, "tile-verify-ownership").errors
    assert re.findall(r"^case\.mlir:(\d+):", error, re.MULTILINE)[:2] == [
        str(lines[1]),
        str(lines[0]),
    ]


def test_places_are_found_in_locations_of_any_kind() -> None:
    module = module_of(TWICE, with_places=True)
    again = re.search(r'loc\("case.tile":5:18 to :24\)', module)
    assert again is not None
    for kind in (
        "fused[unknown, {}]",
        "fused<1 : i32>[{}]",
        'callsite({} at "x.tile":1:1)',
        '"name"({})',
        'fused[callsite(unknown at "x.tile":1:1), "name"({})]',
    ):
        changed = module.replace(again[0], f"loc({kind.format(again[0][4:-1])})")
        assert changed != module
        found = opt(changed, "tile-verify-ownership", SourceFile("case.tile", TWICE))
        assert found.errors[0].startswith("case.tile:5:18: E0403: "), kind


def test_what_has_no_place_stands_where_the_operation_around_it_does() -> None:
    module = module_of(TWICE, with_places=True)
    nowhere = re.sub(r'loc\("case.tile":5:18 to :24\)', "loc(unknown)", module)
    assert nowhere != module
    [error] = opt(nowhere, "tile-verify-ownership", SourceFile("case.tile", TWICE)).errors
    assert error.startswith("case.tile:4:8: E0403: ")
    unplaced = re.sub(r'loc\("case.tile":[^)]*\)', "loc(unknown)", module)
    [error] = opt(unplaced, "tile-verify-ownership").errors
    assert error.startswith("case.mlir:1:1: E0403: ")


def test_a_program_is_taken_as_it_is_emitted_whatever_checks_say_of_it() -> None:
    assert '"tile.borrow"' in opt_program(TWICE, "").text
    [error] = opt_program(TWICE, "tile-verify-ownership").errors
    assert error.startswith("case.tile:5:18: E0403: `z` is borrowed")


def test_a_program_that_the_front_end_refuses_has_no_module() -> None:
    found = opt_program("fn f() { x }", "")
    assert [d.code for d in found.diagnostics] == ["E0201"]
    assert found.text == ""


def test_passes_run_in_the_order_that_is_asked_for() -> None:
    # Without markers and calls there is nothing to see.
    assert not opt_program(TWICE, "inline_helpers,drop_markers,tile-verify-ownership").errors
    assert opt_program(TWICE, "tile-verify-ownership,inline_helpers,drop_markers").errors


class _WithoutCode(OpRules):
    name = "linalg.matmul"


def test_a_check_that_reads_kernels_without_helpers_is_given_a_copy_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(rules(), "linalg.matmul", _WithoutCode())
    program = """\
fn f(t: Tile<f32, 8, 8>) -> Tile<f32, 8, 8> { t.dot(t) }

#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N, N>, 8, 8>) {
    z.store(f(z.load()));
}
"""
    [error] = opt_program(program, "tile-verify-gpu-code").errors
    assert error.startswith("case.tile:1:47: E0103: ")
    assert "call @" in opt_program(program, "").text


def test_a_finding_is_reported_with_its_notes_and_help() -> None:
    program = """\
#[kernel]
pub fn k<N: Dim>(
    a: Part<&mut Tensor<f32, N>, 4>,
    b: Part<&mut Tensor<f32, N>, 2>,
) {}
"""
    assert opt_program(program, "tile-verify-grids").errors == (
        "case.tile:4:5: E0404: `a` and `b` have different grids: cut in 2\n"
        "case.tile:3:5: note: cut in 4\n"
        "note: along axis 0, at N = 3: 1 and 2 tiles\n"
        "help: cut them in as many parts, or state in `requires!` what makes the grids agree",
    )


def test_what_is_found_in_two_instances_is_reported_once() -> None:
    program = TWICE.replace("64", "B").replace("N: Dim", "N: Dim, const B: usize")
    program = program.replace("#[kernel]", "#[kernel]\n#[instance(B = 32)]\n#[instance(B = 64)]")
    assert len(opt_program(program, "tile-verify-ownership").errors) == 1


RACE = """\
fn put<N: Dim>(y: &mut Tensor<f32, N>, i: usize) {
    y.store::<64>([i], Tile::<f32, 64>::zeros());
}

#[kernel(grid = [N, 1, 1])]
pub fn k<N: Dim>(y: &mut Tensor<f32, N>) {
    let [p, _, _] = program_id();
    put(y, p / 2);
}
"""


@pytest.mark.parametrize("before", ["", "inline_helpers,", "inline_helpers,drop_markers,simplify,"])
def test_races_are_found_in_any_form_of_the_module(before: str) -> None:
    [error] = opt_program(RACE, f"{before}tile-verify-races").errors
    assert error.startswith("case.tile:2:5: E0501: two programs may write the same element of `y`")
    assert not opt_program(RACE.replace("p / 2", "p"), f"{before}tile-verify-races").errors
