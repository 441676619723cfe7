"""Writes a program with a kernel for each mathematical function and float type, and the accuracy
that each states. Needs the compiler; `test_accuracy.py` reads what it writes.

    python -m tests.gpu.accuracy_programs build/gpu-tests
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tilec.ops.elementwise import FUNCTIONS

# Made of the others: 1 / x is one IEEE division; in 1 / (1 + e^-|x|) the exponential has its ulp,
# the sum and the quotient half of one each, counted in steps of a result that may be below 1.
_COMPOSED = {"recip": ((0, 0), 1), "sigmoid": ((3, 3), 1)}

_HEADER = "//! Every mathematical function of every float type.\n"
_KERNEL = """
#[kernel]
#[instance(T = f32)]
#[instance(T = f64)]
#[instance(T = f16)]
#[instance(T = bf16)]
pub fn {name}<T: Float, N: Dim>(y: Part<&mut Tensor<T, N>, 256>, {parameters}) {{
    y.store({body});
}}
"""


def main(folder: Path) -> None:
    stated = {f.name: (f.ulp, f.count) for f in FUNCTIONS} | _COMPOSED
    program = _HEADER + "".join(_kernel(name, count) for name, (_, count) in stated.items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "accuracy.tile").write_text(program, encoding="utf-8")
    table = {name: {"f32": f32, "f64": f64, "count": n} for name, ((f32, f64), n) in stated.items()}
    (folder / "stated-accuracy.json").write_text(json.dumps(table, indent=1), encoding="utf-8")


def _kernel(name: str, count: int) -> str:
    tensors = "xp"[:count]
    loads = [f"{tensor}.load_like(&y)" for tensor in tensors]
    return _KERNEL.format(
        name=f"of_{name}",
        parameters=", ".join(f"{tensor}: &Tensor<T, N>" for tensor in tensors),
        body=f"{loads[0]}.{name}({', '.join(loads[1:])})",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
