from __future__ import annotations

import re

from tilec.compilation import Options
from tilec.driver import front_end
from tilec.ir.dialect import context
from tilec.rewriting import Passes, run_passes
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve


def emitted(body: str) -> str:
    """A kernel as the front end emits it."""
    text = f"""#[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 64>, x: &Tensor<i32, N>, n: i32, i: usize) {{
        {body}
    }}"""
    source = SourceFile("case.tile", text)
    with context():
        front = front_end(Sources(source, {}, {}, {}), Options())
        assert not front.compiled.is_refused, front.compiled.diagnostics
        return str(front.module)


def with_traps(ir: str) -> str:
    done = run_passes(SourceFile("case.mlir", ir), Passes("insert_traps", resolve("sm_90a")))
    assert not done.errors, done.errors
    return done.text


def claims(ir: str) -> list[tuple[str, str]]:
    """The text of each trap, and the type of its condition."""
    found = re.findall(r'"tile.trap_unless".*?text = "(.*?)"\} : \((.*?)\)', with_traps(ir))
    return [(text, kind) for text, kind in found]


NOT_ZERO = "the divisor is not 0"
FITS = "the quotient fits its type"


def test_what_cannot_go_wrong_claims_nothing() -> None:
    body = "z.store(x.load::<64>([i]) / 7 % 3 + (n as u32 / 8) as i32);"
    assert "trap" not in with_traps(emitted(body))


def test_a_constant_divisor_claims_what_it_leaves_open() -> None:
    assert claims(emitted("z.store(n / -1);")) == [(FITS, "i1")]


def test_scalars_and_tiles_are_asked_as_they_are() -> None:
    assert claims(emitted("z.store(7 / n);")) == [(NOT_ZERO, "i1"), (FITS, "i1")]
    tile = "tensor<64xi1>"
    assert claims(emitted("z.store(7 % x.load::<64>([i]));")) == [(NOT_ZERO, tile), (FITS, tile)]


def test_an_assertion_is_a_claim_and_a_precondition_is_none() -> None:
    assert claims(emitted("requires!(N > 3); assert!(n > 2);")) == [("assert!(n > 2)", "i1")]


def test_a_trap_stands_at_the_place_of_its_operation() -> None:
    text = with_traps(emitted("if n > 3 {\n assert!(n > 4);\n }"))
    [branch] = re.findall(r"scf.if .*?\{(.*?)\n    \}", text, re.DOTALL)
    assert "tile.trap_unless" in branch


def test_what_an_access_must_hold() -> None:
    inside, meets = ("every element is inside of the tensor", "an element is inside of the tensor")
    assert claims(emitted("unsafe { z.store(x.load_unchecked::<64>([i])); }"))[0] == (inside, "i1")
    assert (meets, "i1") in claims(emitted("let t = unsafe { x.load::<64>([i]) };"))
    for safe in ("let t = x.load::<64>([i]);", "let t = unsafe { x.load_or::<64>([i], 3) };"):
        assert claims(emitted(safe)) == []


def test_a_residual_access_must_meet_its_tensor() -> None:
    ir = emitted("let t = x.load_at::<64>([i]);")
    assert claims(ir.replace('unit = "element"', 'residual, unit = "element"')) == [
        ("an element is inside of the tensor", "i1")
    ]
