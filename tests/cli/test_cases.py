"""The programs of `tests/cases`: accepted ones build, refused ones give code and line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "cases"
# What this version of tilec checks; another family is refused as not there yet, or passes.
CHECKED = re.compile(r"E0[1-8]\d\d")
REFUSED = {path.stem: path for path in sorted((CASES / "reject").glob("*.tile"))}
BUILT = (
    *("add", "atomic_histogram", "attention", "even_odd", "in_place", "matmul_nt"),
    *("permute_heads", "pipeline_mlp", "row_loop", "softmax_rows", "two_outputs", "unsafe_scatter"),
)


def expected(path: Path) -> list[tuple[str, int]]:
    """What the first line says: codes, each with its one-based line."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    return [(code, int(line)) for code, line in re.findall(r"(E\d{4}) line (\d+)", first)]


def found(tilec, *arguments) -> list[tuple[str, int]]:
    ended = tilec(*arguments, "--error-format=json")
    objects = [json.loads(line) for line in ended.err.splitlines()]
    return [(o["code"], o["range"]["start"]["line"] + 1) for o in objects]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_program_gives_its_code_at_its_line(tilec, name):
    path, wanted = REFUSED[name], expected(REFUSED[name])
    assert wanted
    answer = found(tilec, "check", path)
    if not CHECKED.fullmatch(wanted[0][0]):
        assert {code for code, _ in answer} <= {"E0103", *(code for code, _ in wanted)}
        return
    assert list(dict.fromkeys(answer)) == wanted  # several tiles of one line may be too large
    ended = tilec("check", path)
    assert ended.status == 1
    for code, line in wanted:
        assert re.search(rf"error\[{code}\]: .*\n +--> {re.escape(str(path))}:{line}:", ended.err)


@pytest.mark.parametrize("name", BUILT)
def test_an_accepted_program_builds(tilec, name):
    ended = tilec("build", CASES / "accept" / f"{name}.tile", "--target", "sm_80,sm_90a")
    assert (ended.status, "error" in ended.err) == (0, False)
    assert sorted(path.name for path in Path("build").iterdir()) == [
        f"{name}.sm_80.cubin", f"{name}.sm_80.json", f"{name}.sm_90a.cubin", f"{name}.sm_90a.json"
    ]  # fmt: skip


def test_every_accepted_program_is_tested():
    assert {path.stem for path in (CASES / "accept").glob("*.tile")} == set(BUILT)
