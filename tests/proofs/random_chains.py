"""Random chains of index arithmetic, and what proofs of them cost.

    python -m tests.proofs.random_chains --seeds 1 200

says for each kernel the steps that its proofs took and the processor time of its check, and for all
of them the worst time by the budget. Chains are as deep as twelve operations, each of what is known
so far: sums, products, quotients and remainders of all kinds, minima, choices, shifts, bits; of
programs, extents, scalars and loop variables, with preconditions that nobody would write.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass

from tilec.compilation import DEFAULT_PROOF_BUDGET, Compiled, Options
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

DEPTH = 12
STEPS_A_SECOND = 1_400_000


@dataclass
class _Chain:
    random: random.Random
    kind: str  # usize or i32

    def leaf(self, names: list[str]) -> str:
        if self.random.random() < 0.3:
            return str(self.random.choice((0, 1, 2, 3, 5, 7, 8, 16, 63, 64, 100, 1000)))
        return self.random.choice(names)

    def step(self, names: list[str]) -> str:
        """One operation on the last value and something else."""
        last, other = names[-1], self.leaf(names)
        number = self.random.choice((1, 2, 3, 4, 7, 16, 60, 97, 128))
        small = self.random.randint(1, 4)
        forms = [
            f"{last} + {other}",
            f"{last} - {other}",
            f"{last} * {other}",
            f"{last} * {number}",
            f"{last} / {other}",
            f"{last} / {number}",
            f"{last} % {other}",
            f"{last} % {number}",
            f"{last}.min({other})",
            f"{last}.max({other})",
            f"{last}.rem_euclid({number})",
            f"{last}.rem_euclid({other})",
            f"({last} << {small})",
            f"({last} >> {small})",
            f"({last} & {self.random.choice((1, 3, 7, 8, 15, 255))})",
            f"({last} | {number})",
            f"({last} ^ {other})",
            f"{last} * {other} / {number}",
            f"{last} * {other} % {number}",
            f"(if {self.condition(names)} {{ {last} }} else {{ {other} }})",
        ]
        return self.random.choice(forms)

    def condition(self, names: list[str]) -> str:
        left, right = self.leaf(names), self.leaf(names)
        if left.isdigit():
            left = names[0]
        word = self.random.choice(("<", "<=", ">", "==", "!="))
        if self.random.random() < 0.3:
            return f"{left} % {self.random.randint(2, 9)} {word} {self.random.randint(0, 3)}"
        return f"{left} {word} {right}"


def kernel(seed: int, depth: int = DEPTH) -> str:
    """The text of a random kernel, which type-checks."""
    choose = random.Random(seed)
    kind = choose.choice(("usize", "usize", "usize", "i32"))
    chain = _Chain(choose, kind)
    extents = ["N", "M"] if kind == "usize" else ["(N as i32)", "(M as i32)"]
    lines = []
    launch = _Chain(choose, "usize")
    for _ in range(choose.choice((0, 0, 1, 2, 4, 8))):
        parts = [launch.condition(["N", "M", "G", "n"]) for _ in range(choose.choice((1, 1, 2)))]
        lines.append(f"requires!({' || '.join(f'({part})' for part in parts)});")
    lines.append("let [p, r, _] = program_id();")
    names = [*extents, "s", "p" if kind == "usize" else "(p as i32)"]
    loops = choose.choice((0, 0, 1, 1, 2))
    for place in range(loops):
        end = choose.choice(["N", "M / 3", "n % 100", "8"])
        lines.append(f"for k{place} in 0..{end} {{")
        names.append(f"k{place}" if kind == "usize" else f"(k{place} as i32)")
    for place in range(choose.randint(1, depth)):
        lines.append(f"let q{place} = {chain.step(names)};")
        names.append(f"q{place}")
    last = names[-1]
    index = last if choose.random() < 0.6 else f"{names[3]} * 4 + {last}"
    touch = [
        f"y.store_at::<4>([{index}], x.load_at::<4>([{last}]));",
        f"let t = x.load::<64>([{index}]); y.store::<64>([p], t);",
        f"y.store_at::<1>([{index}], Tile::<f32, 1>::ones());",
    ]
    lines += [choose.choice(touch), *("}" for _ in range(loops))]
    body = "\n    ".join(lines)
    return (
        "#[kernel(grid = [G])]\n"
        "pub fn k<N: Dim, M: Dim, G: Dim>(\n"
        "    y: &mut Tensor<f32, N>, x: &Tensor<f32, M>, g: &Tensor<f32, G>, "
        f"n: usize, s: {kind},\n) {{\n    {body}\n}}\n"
    )


def checked(text: str, budget: int = DEFAULT_PROOF_BUDGET) -> Compiled:
    """The kernel, after its check with a report."""
    sources = Sources(SourceFile("chain.tile", text), {}, {}, {})
    return check_sources(sources, Options(report=True, proof_budget=budget))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 100), metavar=("FIRST", "END"))
    parser.add_argument("--budget", type=int, default=DEFAULT_PROOF_BUDGET, metavar="STEPS")
    arguments = parser.parse_args()
    checked(kernel(0, 1))  # what is loaded once
    worst = (0.0, 0)
    for seed in range(*arguments.seeds):
        before = time.process_time()
        found = checked(kernel(seed), arguments.budget)
        taken = time.process_time() - before
        worst = max(worst, (taken, seed))
        codes = " ".join(sorted({d.code for d in found.diagnostics}))
        print(f"{seed}: {taken:.2f} s {codes}", flush=True)
    limit = arguments.budget / STEPS_A_SECOND
    print(f"worst: {worst[0]:.2f} s of seed {worst[1]}, {worst[0] / limit:.0%} of the budget")


if __name__ == "__main__":
    main()
