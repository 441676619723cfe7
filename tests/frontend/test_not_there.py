"""What the page of the language says is not in this version is what the front end refuses so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilec.compilation import Options
from tilec.driver import check_sources
from tilec.sources import read_sources

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
FRAME = """
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: usize) {
    let t = x.load_like(&z);
    %s
    z.store(t);
}
"""
# Of each line of the page, a program for each thing that it says.
REFUSED = {
    "`sort`, `topk`, `histogram`": (
        "t.sort::<0>();", "t.topk::<0, 2>();", "t.histogram::<8>();",
    ),
    "random numbers (`philox`, `uniform`, `normal`)": (
        "philox::<64>(1, 2);", "t.uniform();", "t.normal();",
    ),
    "`loop`, `break`, `continue`, `match`, `println!`": (
        "loop { }", "for i in 0..n { break; }", "for i in 0..n { continue; }",
        "match n { _ => 1 };", 'println!("n");',
    ),
    "views and parts that are assigned, declared without a value or chosen by an `if`; "
    "items of arrays assigned at an index that is not constant": (
        "let mut y = x.permute::<0>(); y = x.permute::<0>();", "let y; y = x;",
        "let y = if n == 0 { x } else { x };",
        "let mut a = [1; 4]; a[n] = 2;",
    ),
}  # fmt: skip


def said() -> list[str]:
    """The lines of the list, as one text each."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("not in this version (E0103).**")
    listed = rest.split("\n\n")[1]
    return [" ".join(line.split()).rstrip(";.") for line in listed.removeprefix("- ").split("\n- ")]


def test_the_page_says_all_of_it_and_nothing_else():
    assert said() == list(REFUSED)


@pytest.mark.parametrize("statement", [one for each in REFUSED.values() for one in each])
def test_it_is_e0103(statement, tmp_path):
    path = tmp_path / "case.tile"
    path.write_text(FRAME % statement)
    codes = {found.code for found in check_sources(read_sources(str(path)), Options()).diagnostics}
    assert "E0103" in codes, codes
