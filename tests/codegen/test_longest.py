"""Which programs take longest is read off the trip counts of their loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.on_cpu import compiled_text
from tests.warp.specialised import planned
from tilec.ops.order import Longest
from tilec.schedule.longest import longest_programs

LOOPS = {
    "0..((i + 1) * 64).min(K).div_ceil(32)": Longest(1, at_end=True),
    "i..K.div_ceil(64)": Longest(1, at_end=False),
    "0..(K / 8 - h * 2)": Longest(0, at_end=False),
    "h..(h + i + 3)": Longest(1, at_end=True),
    "0..h * 5 + i": Longest(0, at_end=True),
    "(i..i * 9).step_by(4)": Longest(1, at_end=True),
    "0..K.div_ceil(32)": None,  # all are as long
    "i..(i + 7)": None,
    "(i..K.div_ceil(4096)).step_by(M)": None,  # shared: each has one iteration more or less
    "0..i % 3": None,  # neither grows nor shrinks
    "0..n[[0]] as usize": None,  # nobody can say
}


@pytest.mark.parametrize(("turns", "longest"), LOOPS.items(), ids=LOOPS)
def test_the_longest_programs_are_at_one_end_of_an_axis(
    turns: str, longest: Longest | None
) -> None:
    text = f"""
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 1, 64>, n: &Tensor<i32, K>, x: &Tensor<f32, K>,
    ) {{
        let (h, i) = (z.id(0), z.id(1));
        let mut sum = Tile::<f32, 1, 64>::zeros();
        for j in {turns.replace("n[[0]]", "n.load::<1>([0]).item()")} {{
            sum = sum + j as f32;
        }}
        z.store(sum);
    }}"""
    with compiled_text("k.tile", text) as found:
        [function] = found.kernels.values()
        assert longest_programs(function) == longest


@pytest.mark.parametrize("by_turns", [False, True])
def test_teams_that_do_programs_by_turns_keep_the_order_of_the_grid(
    tmp_path: Path, by_turns: bool
) -> None:
    """A block does a long program and then a short one: one team would have all the long ones."""
    (tmp_path / "k.tile").write_text(f"""
    #[kernel]
    #[hint(ping_pong = {str(by_turns).lower()})]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        c: Part<&mut Tensor<f32, M, N>, 128, 128>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
    ) {{
        let mut sum = Tile::<f32, 128, 128>::zeros();
        for k in 0..(c.id(0) + 1) * 2 {{
            sum = dot(a.load::<128, 64>([c.id(0), k]), b.load::<64, 128>([k, c.id(1)]), sum);
        }}
        c.store(sum);
    }}""")
    with planned(tmp_path / "k.tile") as found:
        _, schedule = found["k"]
        assert schedule.teams == 1 + by_turns
        assert schedule.longest == (None if by_turns else Longest(0, at_end=True))
