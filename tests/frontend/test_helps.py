"""The code in the help of the front end's and the operations' errors compiles.

Help texts are read from the sources; those put together at run time are tested where they are made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from front_end import checked

SOURCES = Path(__file__).parents[2] / "src" / "tilec"
_CODE = re.compile(r"`([^`]+)`")

HEAD = """\
const BM: usize = 128;
const axis: i32 = 0;
#[kernel]
pub fn k<M: Dim, N: Dim, L: Dim>(
    y: Part<&mut Tensor<f32, M, N>, 64, 64>,
    x: &Tensor<f32, M, N>,
    z: &Tensor<f32, L>,
    one: &Tensor<f32>,
    n: i32,
    s: f32,
) {
    let t = x.load_like(&y);
    let (a, b) = (t * 2.0, t * 3.0);
    let mut acc = Tile::<f32, 64, 64>::zeros();
    let condition = t.gt(0.0);
    let rows = iota::<i32, 64>();
    let mut i = 1;
    let mut j = 2;
    let v = 0;
    let value = 5;
"""
# How a code may have to be completed: `.exp()` is a method of something, `use …;` an item.
FRAMES = (
    "let r = {};", "let r = t{};", "let r = y{};", "let r = one{};", "{}", "{};",
    "let r = (i == 1) && ({});", "for i in 0..n {{ if i == 2 {} {{ }} }}",
    "let r = z.load::<{}>([0]);",
    "let r = t.reduce::<0>(1.0, {});", "let r = x.{}([i, j]);", "let r = z.{}([i]);",
)  # fmt: skip
# Words and marks that are only named.
_NAMES = re.compile(r"[A-Za-z_]\w*!?|[^\w\s]{1,3}|&mut|#\[.*\]")
# What stands outside of a body, only in a pipeline, or beside what the frame has.
_ELSEWHERE = {
    "[i, j]", "const NAME: f32 = 1.0;", "else if", "for i in a..b", "grid = [e0, e1, e2]",
    "kernel(&mut t, x);", "use other::name;", "&mut t", "&part", "requires!(L == N * 2)",
    "T: Float", "x: f32", "select(iota::<i32, 16>().eq(i), value, t)", "load::<{BM / 2}>",
}  # fmt: skip


def _helps() -> Iterator[str]:
    """Every constant text that is the help of a diagnostic."""
    files = [*SOURCES.glob("frontend/**/*.py"), *SOURCES.glob("ops/*.py")]
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield from (v for v in _help_of(node) if isinstance(v, str) and "`" in v)


def _help_of(node: ast.AST) -> Iterator[object]:
    match node:
        case ast.keyword(arg="help", value=ast.Constant(value=text)):
            yield text
        case ast.Assign(targets=[ast.Name(id="help")], value=ast.Constant(value=text)):
            yield text
        case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple(elts=items)):
            yield from (item.value for item in items if isinstance(item, ast.Constant))
        case ast.Call(func=ast.Name(id="Foreign" | "_not_yet"), args=[_, *rest]):
            yield from (one.value for one in rest if isinstance(one, ast.Constant))
        case ast.Return(value=ast.Constant(value=text)):
            yield text


def _refused(codes: list[str], frame: str) -> list[str]:
    """Those of the codes that do not compile in a frame, all tried in one program."""
    text = HEAD + "".join(f"    {{ {frame.format(code)} }}\n" for code in codes) + "}\n"
    _, found, program = checked(text)
    [source] = program.sources.values()
    first = HEAD.count("\n")
    lines = {source.position(d.span.start)[0] - first for d in found}
    if any(not 0 <= line < len(codes) for line in lines):
        return codes
    return [code for number, code in enumerate(codes) if number in lines]


def test_the_code_in_helps_compiles():
    codes = {code for text in _helps() for code in _CODE.findall(text)}
    assert len(codes) > 60, "the helps were found"
    waiting = sorted(c for c in codes - _ELSEWHERE if "…" not in c and not _NAMES.fullmatch(c))
    assert len(waiting) > 20, waiting
    for frame in FRAMES:
        waiting = _refused(waiting, frame)
    assert waiting == []
