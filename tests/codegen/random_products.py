"""Programs of random loops, branches, loads and products, and what they give, by NumPy.

All tiles of sums are cut to whole numbers that stay exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DEPTH = 16  # of a product
COLUMNS = 32
MOST = 64.0
# One program: names of sums, tiles and numbers to what they are.
Env = dict[str, Any]
Statement = Callable[[Env], None]


@dataclass
class RandomProducts:
    """The source of a kernel `k(z, x, y, w, v, n)`, and `results`, what it gives in `z`.

    `computes`: first factors may be computed.
    """

    seed: int
    computes: bool = False
    rng: np.random.Generator = field(init=False)
    rows: int = field(init=False)
    text: str = field(init=False)
    body: list[Statement] = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.rows = (64, 128)[self.seed % 2]
        self.count = 0
        lines, self.body = self.block(3, ["n"], [], [], must_loop=True)
        names = "".join(
            f"let mut s{i} = Tile::<f32, {self.rows}, {COLUMNS}>::full({i}.0);\n" for i in range(3)
        )
        self.text = f"""#[hint(stages = {self.any_of(2, 3)})]
#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<f32, M, N>, {self.rows}, {COLUMNS}>, x: &Tensor<bf16, M, K>,
    y: &Tensor<bf16, K, N>, w: &Tensor<bf16, K, M>, v: &Tensor<bf16, N, K>, n: usize,
) {{
{names}{lines}z.store(s0 + s1 * 128.0 + s2 * 16384.0);
}}"""

    def any_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    # ---- statements --------------------------------------------------------------------------

    def block(
        self, deep: int, numbers: list[str], lefts: list[str], rights: list[str], *,
        must_loop: bool = False,
    ) -> tuple[str, list[Statement]]:  # fmt: skip
        """Some statements; what they bind is known inside only."""
        lefts, rights = list(lefts), list(rights)
        text, statements = "", []
        count = int(self.rng.integers(2, 5))
        for turn in range(count):
            kinds = [self.product, self.product, self.product, self.load, self.load, self.other]
            if deep:
                kinds += [self.loop, self.loop, self.branch]
            made = self.any_of(*kinds)
            if must_loop and turn == count - 1:
                made = self.loop
            line, statement = made(deep, numbers, lefts, rights)
            text += line
            statements.append(statement)
        return text, statements

    def loop(self, deep: int, numbers: list[str], lefts: list[str], rights: list[str]) -> Any:
        name = f"k{self.count}"
        self.count += 1
        first = self.any_of("0", "0", "1")
        last = self.any_of("n", "2", "3", "4", "z.id(0) + 1", f"K.div_ceil({DEPTH})")
        inner, statements = self.block(deep - 1, [*numbers, name], lefts, rights)

        def run(env: Env) -> None:
            for i in range(int(first), number(last, env)):
                env[name] = i
                for statement in statements:
                    statement(env)

        return f"for {name} in {first}..{last} {{\n{inner}}}\n", run

    def branch(self, deep: int, numbers: list[str], lefts: list[str], rights: list[str]) -> Any:
        name, value = self.any_of(*numbers), self.any_of(0, 1)
        one, ways = self.block(deep - 1, numbers, lefts, rights)
        other, others = self.block(deep - 1, numbers, lefts, rights)
        has_else = self.any_of(True, False)

        def run(env: Env) -> None:
            for statement in ways if env[name] % 2 == value else others if has_else else ():
                statement(env)

        otherwise = f" else {{\n{other}}}" if has_else else ""
        return f"if {name} % 2 == {value} {{\n{one}}}{otherwise}\n", run

    def product(self, deep: int, numbers: list[str], lefts: list[str], rights: list[str]) -> Any:
        target, source = self.any_of(0, 1, 2), self.any_of(0, 1, 2, None)
        left, right = self.first(numbers, lefts), self.factor(numbers, rights, 1)
        zero = f"Tile::<f32, {self.rows}, {COLUMNS}>::zeros()"
        before = zero if source is None else f"s{source}"
        is_cut = source is None or self.any_of(True, False, False)

        def run(env: Env) -> None:
            sums = 0 if source is None else env[f"s{source}"]
            found = left[1](env) @ right[1](env) + sums
            env[f"s{target}"] = np.clip(found, -MOST, MOST) if is_cut else found

        line = f"s{target} = dot({left[0]}, {right[0]}, {before});\n"
        if is_cut:
            line += f"s{target} = s{target}.min({MOST}).max(-{MOST});\n"
        return line, run

    def load(self, deep: int, numbers: list[str], lefts: list[str], rights: list[str]) -> Any:
        side = self.any_of(0, 1)
        name = f"t{self.count}"
        self.count += 1
        text, value = self.loaded(numbers, side)

        def run(env: Env) -> None:
            env[name] = value(env)

        (lefts, rights)[side].append(name)
        return f"let {name} = {text};\n", run

    def other(self, deep: int, numbers: list[str], lefts: list[str], rights: list[str]) -> Any:
        a, b = self.any_of(0, 1, 2), self.any_of(0, 1, 2)
        forms: list[tuple[str, Callable[[Any, Any], Any]]] = [
            ("s{b}", lambda a, b: b),
            ("s{a} * 2.0 - s{b}", lambda a, b: a * 2 - b),
            ("s{a} - s{b}.max::<1>()", lambda a, b: a - b.max(axis=1, keepdims=True)),
        ]
        form, meaning = self.any_of(*forms)

        def run(env: Env) -> None:
            env[f"s{a}"] = np.clip(meaning(env[f"s{a}"], env[f"s{b}"]), -MOST, MOST)

        return f"s{a} = ({form.format(a=a, b=b)}).min({MOST}).max(-{MOST});\n", run

    # ---- factors -----------------------------------------------------------------------------

    def first(self, numbers: list[str], known: list[str]) -> Any:
        text, value = self.factor(numbers, known, 0)
        if not self.computes or self.any_of(True, False, False):
            return text, value
        form, meaning = self.any_of(("{}.abs()", np.abs), ("(-{})", np.negative))
        return form.format(text), lambda env: meaning(value(env))

    def factor(self, numbers: list[str], known: list[str], side: int) -> Any:
        if known and self.any_of(True, True, False):
            name = self.any_of(*known)
            return name, lambda env: env[name]
        return self.loaded(numbers, side)

    def loaded(self, numbers: list[str], side: int) -> Any:
        place = self.any_of("0", "1", *numbers, *numbers, f"{numbers[-1]} + 1")
        turned = self.any_of(True, False)
        rows, at = ((self.rows, 0), (COLUMNS, 1))[side]
        first, then = (rows, DEPTH), (f"z.id({at})", place)
        if turned != bool(side):
            first, then = first[::-1], then[::-1]
        name = "xwyv"[2 * side + turned]
        text = f"{name}.load::<{first[0]}, {first[1]}>([{then[0]}, {then[1]}])"

        def value(env: Env) -> Any:
            tensor = env[name].astype(np.float64)
            tensor = tensor.T if turned else tensor
            tensor = tensor.T if side else tensor  # rows or columns first
            found = np.zeros((rows, DEPTH))
            i, j = rows * env["z"][at], DEPTH * number(place, env)
            inside = tensor[i : i + rows, j : j + DEPTH]
            found[: inside.shape[0], : inside.shape[1]] = inside
            return found.T if side else found

        return (f"{text}.t()" if turned else text), value

    # ---- what it gives -----------------------------------------------------------------------

    def results(self, arguments: Env) -> np.ndarray:
        shape = arguments["z"].shape
        found = np.zeros(shape)
        for i, j in np.ndindex(-(-shape[0] // self.rows), -(-shape[1] // COLUMNS)):
            env = {**arguments, "z": (i, j), "K": arguments["x"].shape[1]}
            env |= {f"s{s}": np.full((self.rows, COLUMNS), float(s)) for s in range(3)}
            for statement in self.body:
                statement(env)
            tile = env["s0"] + env["s1"] * 128 + env["s2"] * 16384
            part = found[i * self.rows :, j * COLUMNS :][: self.rows, :COLUMNS]
            part[...] = tile[: part.shape[0], : part.shape[1]]
        return found


def number(text: str, env: Env) -> int:
    names = {"z.id(0) + 1": lambda: env["z"][0] + 1}
    names[f"K.div_ceil({DEPTH})"] = lambda: -(-env["K"] // DEPTH)
    if text in names:
        return int(names[text]())
    return sum(int(word) if word.isdigit() else int(env[word]) for word in text.split(" + "))
