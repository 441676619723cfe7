"""Programs after some of tilec's passes, as `tilec opt` runs them, as text."""

from __future__ import annotations

from tilec.compilation import Options
from tilec.driver import front_end
from tilec.ir.dialect import context
from tilec.rewriting import Passes, run_passes
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve

# What comes before layouts in every build.
FIRST = "inline_helpers,drop_markers,simplify"


def after(passes: str, program: str) -> str:
    """The IR of a program once these passes have run on it."""
    source = SourceFile("case.tile", program)
    with context():
        front = front_end(Sources(source, {}, {}, {}), Options())
        assert not front.compiled.is_refused, front.compiled.diagnostics
        assert front.module is not None
        text = str(front.module)
    chosen = Passes(f"{FIRST},{passes}", resolve("sm_90a"))
    done = run_passes(SourceFile("case.mlir", text), chosen)
    assert not done.errors, done.errors
    return done.text
