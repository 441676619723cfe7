"""Inner functions of the support part in Rust, called from Python as those in C are."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from tests.emit.probe import Probe
from tilec.artifact.expression import Expression
from tilec.emit.expressions import Code, code_of
from tilec.emit.rust.expressions import RUST

PROBE = Path(__file__).with_name("probe.rs")


def probe_text(names: Sequence[str], expressions: Sequence[Expression]) -> str:
    """What is put inside the support part: the functions, and some expressions over `names`, which
    are whole numbers, and `real`."""
    codes = {name: Code(f"v[{i}].whole", "whole") for i, name in enumerate(names)}
    codes["real"] = Code(f"v[{len(names)}].real", "real")
    cases = [
        f"        {i} => {RUST.as_whole(code_of(one, codes, RUST))},"
        for i, one in enumerate(expressions)
    ]
    return "\n".join(
        [
            PROBE.read_text(encoding="utf-8"),
            "#[allow(unused)]",
            "fn evaluate(which: u32, v: &[Value], e: &mut Evaluation) -> i128 {",
            "    match which {",
            *cases,
            "        _ => 0,",
            "    }",
            "}",
        ]
    )


class RustProbe(Probe):
    """The functions, in a library that holds them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.library.probe_narrowed.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_int]
        self.library.probe_widened.restype = ctypes.c_double
