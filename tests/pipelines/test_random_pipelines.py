"""Random pipelines, as text: what comes out in orders that their plans allow, in the memory that
temporaries share, is what their statements say one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from launched_kernels import BOTH_AND_MORE

from tilec.compilation import Options
from tilec.driver import front_end
from tilec.interpret.pipeline import make_ready
from tilec.interpret.pipeline_run import run_pipeline
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.sources import Sources

KERNELS = (
    BOTH_AND_MORE
    + """
#[kernel]
pub fn half<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, b: &Tensor<i32, N>, c: i32,
) {
    if z.id(0) % 2 == 0 {
        z.store(a.load_like(&z) * b.load_like(&z) + c);
    }
}
"""
)
HEAD = "pub fn {}<N: Dim>(y: &mut Tensor<i32, N>, w: &mut Tensor<i32, N>, x: &Tensor<i32, N>) {{"
Memory = dict[str, np.ndarray]


def launched(kernel: str, z: np.ndarray, a: np.ndarray, b: np.ndarray, c: int) -> None:
    """What a kernel does, by NumPy; i32 wraps."""
    if kernel == "half":
        is_even = np.arange(len(z)) // 16 % 2 == 0
        z[is_even] = (a * b + np.int32(c))[is_even]
    else:
        z[:] = a * 3 + b * 5 + np.int32(c) if kernel == "both" else z * 7 + a - b + np.int32(c)


class Made:
    """A pipeline: its text, and what it does; it may call `others`."""

    def __init__(self, name: str, random: Random, others: Sequence[Made]) -> None:
        self.name, self._random, self._others = name, random, others
        self._lines = ["#[pipeline]", HEAD.format(name)]
        self._steps: list[tuple[object, ...]] = []
        self._temporaries: list[str] = []
        for _ in range(random.randint(8, 20)):
            random.choice((self._declare, self._launch, self._launch, self._swap, self._call))()
        self.text = "\n    ".join(self._lines) + "\n}\n"

    def run(self, memory: Memory) -> None:
        for what, *given in self._steps:
            if what == "swap":
                one, other = given
                memory[one], memory[other] = memory[other], memory[one]
            elif isinstance(what, Made):
                what.run(dict(zip("ywx", (memory[name] for name in given), strict=True)))
            else:
                kernel, z, a, b, c = what, *given
                z = memory.setdefault(z, np.zeros_like(memory["x"]))
                launched(kernel, z, memory[a], memory[b], c)

    def _declare(self) -> None:
        name = f"t{len(self._temporaries)}"
        self._lines.append(f"let mut {name} = Tensor::<i32, N>::uninit();")
        self._add_launch("both", name)
        self._temporaries.append(name)

    def _launch(self) -> None:
        kernel = self._random.choice(("both", "more", "half"))
        self._add_launch(kernel, self._random.choice(["y", "w", *self._temporaries]))

    def _add_launch(self, kernel: str, z: str) -> None:
        read = [name for name in ["y", "w", "x", *self._temporaries] if name != z]
        a, b, c = self._random.choice(read), self._random.choice(read), len(self._lines)
        self._lines.append(f"{kernel}({lent(z, 'mut ')}, {lent(a)}, {lent(b)}, {c});")
        self._steps.append((kernel, z, a, b, c))

    def _swap(self) -> None:
        """Two temporaries change places, in turns of a loop."""
        if len(self._temporaries) < 2:
            return
        one, other = self._random.sample(self._temporaries, 2)
        turns = self._random.randint(0, 3)
        c = len(self._lines)
        more = f"more(&mut {one}, &{other}, x, {c})"
        self._lines.append(
            f"for i in 0..{turns} {{ {more}; ({one}, {other}) = ({other}, {one}); }}"
        )
        self._steps += [("more", one, other, "x", c), ("swap", one, other)] * turns

    def _call(self) -> None:
        if self._others:
            called = self._random.choice(self._others)
            y, w, x = [*self._random.sample(["y", "w", *self._temporaries], 2), "x"]
            self._lines.append(f"{called.name}({lent(y, 'mut ')}, {lent(w, 'mut ')}, {x});")
            self._steps.append((called, y, w, x))


def lent(name: str, how: str = "") -> str:
    return f"&{how}{name}" if name.startswith("t") else name


@pytest.mark.parametrize("seed", range(3))
def test_every_order_in_the_planned_memory_gives_what_the_text_says(seed: int) -> None:
    random = Random(seed)
    made: list[Made] = []
    for number in range(3):
        made.append(Made(f"p{number}", random, tuple(made)))
    text = KERNELS + "".join(one.text for one in made)
    with context():
        front = front_end(Sources(SourceFile("case.tile", text), {}, {}, {}), Options())
        assert not front.compiled.is_refused and front.module is not None
        for one, n in ((one, random.choice((0, 1, 16, 50))) for one in made):
            values = np.random.default_rng(seed).integers(-(2**31), 2**31, (3, n), np.int32)
            given = dict(zip("ywx", values, strict=True))
            expected = {name: value.copy() for name, value in given.items()}
            one.run(expected)
            for order in (None, 1, 2, 3):
                ready = make_ready(front.pipelines, front.module, one.name, given)
                run_pipeline(ready, order)
                for name in "yw":
                    assert np.array_equal(ready.tensors[name], expected[name]), (one.text, order)
