"""Nothing is half-declared: what stands in one place stands in the others that go with it."""

from __future__ import annotations

import re
from pathlib import Path

from docs_blocks import PAGES

from tests.programs.coverage import usable, used
from tilec.checks.registry import check_passes
from tilec.cli.entry import COMMANDS
from tilec.diagnostics.pages import codes
from tilec.frontend.attributes import HINTS
from tilec.ir.dialect import declarations
from tilec.ops.operations import all_operations
from tilec.ops.registry import modules, rules
from tilec.rewriting import passes
from tilec.types import ELEMENTS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tilec"
TESTS = ROOT / "tests"
LANGUAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
_CODE = re.compile(r"[\"'`]([EW]\d{4})[\"'`]")


def test_an_operation_of_the_dialect_has_rules_and_rules_have_an_operation() -> None:
    ours = {name for name in rules() if name.startswith("tile.")}
    assert ours == {name for name in declarations() if name.startswith("tile.")}


def test_a_module_with_operations_of_the_language_has_a_page() -> None:
    named = {
        module.__name__.rpartition(".")[2]
        for module in modules()
        if getattr(module, "OPERATIONS", ())
    }
    assert named == {page.stem for page in (TESTS / "ops").glob("*.md")}


def test_a_code_that_is_given_has_a_page_and_a_page_is_given() -> None:
    given = {
        code
        for file in SOURCE.rglob("*.py")
        for code in _CODE.findall(file.read_text(encoding="utf-8"))
    }
    assert given == set(codes())


def test_a_pass_has_its_name_and_its_test() -> None:
    folders = (SOURCE / "transforms", SOURCE / "roles")
    files = {file.stem for folder in folders for file in folder.glob("*.py")}
    # What passes share is no pass.
    assert files - set(passes()) == {
        "__init__", "begin_ahead", "cluster_roles", "computed_factors", "effects", "layout_problem",
        "load_early", "loader_role", "math_role", "of_roles", "promoted_sums", "share_turns",
        "staged_factors", "teams", "turn_products",
    }  # fmt: skip
    tested = {file.stem.removeprefix("test_") for file in (TESTS / "transforms").glob("test_*.py")}
    assert set(passes()) == tested


def test_a_check_has_a_test() -> None:
    checks = {file.stem for file in (SOURCE / "checks").glob("check_*.py")}
    pages = {f"check_{page.stem}" for page in (TESTS / "checks").glob("*.md")}
    tests = {file.stem.removeprefix("test_") for file in (TESTS / "checks").glob("test_*.py")}
    assert checks <= pages | tests


def test_a_check_belongs_to_a_pass_that_is_documented() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    for name, checks in check_passes().items():
        assert re.fullmatch(r"tile-verify-[a-z-]+", name)
        assert f"| `{name}` |" in design
        assert all(isinstance(check.inlined, bool) for check in checks)


def test_a_command_has_a_file_and_is_documented() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for command in COMMANDS:
        assert (SOURCE / "cli" / f"{command.replace('-', '_')}.py").exists()
        assert f"tilec {command}" in text


def test_the_reference_has_every_type_and_hint() -> None:
    for name in (*ELEMENTS, *HINTS):
        assert re.search(rf"(?<!\w){name}(?!\w)", LANGUAGE), name


def test_the_reference_says_what_is_not_in_this_version() -> None:
    section = LANGUAGE.partition("## What is not there")[2]
    for operation in all_operations():
        if "E0103" in operation.summary:
            assert f"`{operation.name}`" in section, operation.name


# Operations without programs that run on GPUs, by the module that has them.
NO_PROGRAMS = {
    "later": "refused by the front end",
}
NO_TYPES = {"tf32": "stands between `to` and `dot` only"}
AS_ANOTHER = {"as": "the front end makes `to` of it"}
WITHOUT_TYPE = ("program_id", "num_programs")


def test_an_operation_is_tried_on_every_type_that_it_takes() -> None:
    """On the CPU against NumPy, thread by thread, and on GPUs (`tests/programs`)."""
    tried = used()
    missing: dict[str, set[str]] = {}
    for operation, types in usable().items():
        wanted = {""} if operation.name in WITHOUT_TYPE else types - set(NO_TYPES)
        module = type(operation).__module__.rpartition(".")[2]
        if operation.name in AS_ANOTHER or (not types and module in NO_PROGRAMS):
            continue
        lacking = {element for element in wanted if (operation, element) not in tried}
        assert types, f"no use of `{operation.name}` is known to be right (tests/programs/coverage)"
        if lacking:
            missing.setdefault(module, set()).add(f"{operation.name}: {sorted(lacking)}")
    assert set(missing) == set(NO_PROGRAMS) - {"later"}, missing


def test_a_kernel_of_the_library_is_tested() -> None:
    from tests.kernels.cases import KERNELS

    assert {file.stem for file in (ROOT / "kernels").glob("*.tile")} == set(KERNELS)
