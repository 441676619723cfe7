"""Whatever the text, the parser answers: it never raises, and it ends soon."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.diagnostics.render import render
from tilec.diagnostics.to_json import to_json
from tilec.frontend.parse import parse
from tilec.source import SourceFile

CASES = Path(__file__).parents[1] / "cases"
PROGRAMS = [path.read_text(encoding="utf-8") for path in sorted(CASES.rglob("*.tile"))]
PIECE = re.compile(r"\s+|\w+|\S")
TOKENS = """
    fn let if else for in match loop struct impl where unsafe return | || & && < > >> ::< :: . ..
    ..= = == => -> ; , : ( ) [ ] { } # ! ? * - ' " /* */ // 0 1.5 0x 'a "s" r#" é \u202e \ufeff"""
WORDS = TOKENS.split()


def codes_of(text: str) -> list[str]:
    """The codes that a text gets; everything about it can be printed."""
    source = SourceFile("case.tile", text)
    _, found = parse(source)
    for diagnostic in found:
        for label in diagnostic.labels:
            assert 0 <= label.span.start <= label.span.end <= len(text)
        render(diagnostic, {source.name: source}).encode()
        to_json(diagnostic, {source.name: source})
    return [diagnostic.code for diagnostic in found]


@pytest.mark.parametrize("seed", range(400))
def test_mutated_programs(seed: int) -> None:
    rng = random.Random(seed)
    pieces = PIECE.findall(rng.choice(PROGRAMS))
    for _ in range(rng.choice([1, 2, 8])):
        place = rng.randrange(len(pieces))
        match rng.randrange(4):
            case 0:
                pieces[place] = ""
            case 1:
                pieces[place] = rng.choice(WORDS)
            case 2:
                pieces.insert(place, rng.choice(WORDS))
            case 3:
                pieces = pieces[:place] or pieces
    codes_of("".join(pieces))


@given(st.text(alphabet=st.characters(), max_size=60))
def test_random_characters(text: str) -> None:
    codes_of(text)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_random_words(words: list[str]) -> None:
    codes_of(" ".join(words))


def value(text: str) -> str:
    return f"fn f() {{ let x = {text}; }}"


DEEP = {
    "parentheses": value("(" * 3000 + "1" + ")" * 3000),
    "brackets": value("[" * 3000 + "1" + "]" * 3000),
    "blocks": "fn f() {" + "{" * 3000 + "}" * 3000 + "}",
    "ifs": "fn f() {" + "if a {" * 3000 + "}" * 3000 + "}",
    "calls": value("f(" * 3000 + ")" * 3000),
    "patterns": "fn f() { let " + "(" * 3000 + ")" * 3000 + " = x; }",
    "attributes": "#[a(" + "b(" * 3000,
    "generic arguments": "fn f(x: " + "A<" * 3000 + "T" + ">" * 3000 + ") {}",
    "a sum": value("+".join(["1"] * 100_000)),
    "methods": value("x" + ".a()" * 100_000),
    "casts": value("x" + " as i32" * 100_000),
    "signs": value("-" * 100_000 + "x"),
    "else ifs": "fn f() { if a {} " + "else if b {} " * 100_000 + "}",
    "closures": value("|a| " * 100_000 + "1"),
}


@pytest.mark.parametrize("name", DEEP)
def test_depth_is_limited(name: str) -> None:
    assert codes_of(DEEP[name]) == ["E0101"]


@pytest.mark.parametrize(
    "text",
    [
        value("(" * 255 + "1" + ")" * 255),
        value("f(" * 255 + ")" * 255),
        "fn f() {" + "if a {" * 255 + "}" * 255 + "}",
        value("+".join(["1"] * 900)),
        "fn f() {" + "let x = a + b * c;\n" * 1000 + "}",
    ],
)
def test_what_is_within_the_limits_is_accepted(text: str) -> None:
    assert codes_of(text) == []
