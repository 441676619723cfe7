"""When math warpgroups do programs by turns, and what says so."""

from __future__ import annotations

import pytest
from test_unscheduled import planned

from tilec.schedule.plan import Schedule


def product(rows: int, columns: int, hint: str = "") -> str:
    return f"""
    #[kernel]
    {hint}
    pub fn f<M: Dim, N: Dim, K: Dim>(
        c: Part<&mut Tensor<f32, M, N>, {rows}, {columns}>,
        a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
    ) {{
        let mut sum = Tile::<f32, {rows}, {columns}>::zeros();
        for k in 0..K.div_ceil(64) {{
            let right = b.load::<64, {columns}>([k, c.id(1)]);
            sum = dot(a.load::<{rows}, 64>([c.id(0), k]), right, sum);
        }}
        c.store(sum);
    }}"""


# Of a product: which hint, how many teams of how many warps, why.
RULE = [
    (128, 192, "", 2, 4, "a warpgroup holds 192 sums a thread"),
    (128, 160, "", 2, 4, "a warpgroup holds 160 sums a thread"),
    (128, 128, "", 2, 4, "a warpgroup holds 128 sums a thread"),
    (64, 256, "", 2, 4, "a warpgroup holds 128 sums a thread"),
    (128, 96, "", 1, 8, ""),
    (128, 256, "", 1, 8, ""),
    (128, 192, "warps = 8", 1, 8, ""),
    (128, 192, "persistent = false", 1, 8, ""),
    (128, 192, "ping_pong = false", 1, 8, "asked for by `ping_pong = false`"),
    (128, 128, "ping_pong", 2, 4, "asked for by `ping_pong`"),
    (64, 256, "ping_pong", 2, 4, "asked for by `ping_pong`"),
    (64, 64, "ping_pong = true", 2, 4, "asked for by `ping_pong`"),
    (192, 128, "ping_pong", 2, 4, "asked for by `ping_pong`"),
    (128, 256, "ping_pong", 1, 8, "a warpgroup would have 256 sums a thread, more than 192"),
    (128, 128, "ping_pong, persistent = false", 1, 8, "a block does one program"),
]


@pytest.mark.parametrize(("rows", "columns", "hint", "teams", "warps", "why"), RULE)
def test_a_warpgroup_that_holds_a_tile_does_it_alone(
    rows: int, columns: int, hint: str, teams: int, warps: int, why: str
) -> None:
    found = planned(product(rows, columns, f"#[hint({hint})]" if hint else ""))
    assert isinstance(found, Schedule)
    assert (found.teams, found.team_warps, found.warps) == (teams, warps, teams * warps + 4)
    reasons = [one.why for one in found.reasons if "turns" in one.what]
    assert [why in one for one in reasons] == ([True] if why else [])


def test_what_is_computed_takes_registers_too() -> None:
    text = product(128, 192).replace("[c.id(0), k])", "[c.id(0), k]).max(0.0)")
    found = planned(text)
    assert isinstance(found, Schedule) and (found.teams, found.team_warps) == (1, 8)
    asked = planned(text.replace("#[kernel]", "#[kernel] #[hint(ping_pong)]"))
    assert isinstance(asked, Schedule) and asked.teams == 1
    # 192 sums, and 128 x 64 elements of 16 bits among 128 threads.
    assert "sums and factors would take 224 registers, more than 192" in [
        one.why for one in asked.reasons
    ]


def test_who_does_more_than_to_multiply_has_others_beside_it() -> None:
    text = product(128, 128).replace("[c.id(0), k])", "[c.id(0), k]).max(0.0)")
    apart = product(128, 128).replace(", sum);", ", Tile::<f32, 128, 128>::zeros()) + sum;")
    for one in (text, apart):
        found = planned(one)
        assert isinstance(found, Schedule) and (found.teams, found.team_warps) == (1, 8)
