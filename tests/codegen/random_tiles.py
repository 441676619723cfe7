"""Random programs over tiles of whole numbers: shapes, reductions, broadcasts, loops, branches."""

from __future__ import annotations

import random
from math import prod

MOST_ELEMENTS = 4096


class RandomTiles:
    """A kernel `k(z: Part<…>, x: &Tensor<T, M, K>, n: i32)` of an integer type."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.element = self.random.choice(("i8", "i16", "i32", "i64"))
        self.lines: list[str] = []
        self.count = 0
        rows, columns = self._extent(), self._extent()
        self.shape = (rows, columns)
        start = self._named(f"x.load::<{rows}, {columns}>([z.id(0), 0])", (rows, columns))
        tiles = [start]
        for _ in range(self.random.randint(3, 8)):
            tiles.append(self._step(tiles))
        result = self._sum(tiles)
        self.block = prod(result[1])
        self.lines.append(f"z.store({result[0]}.reshape::<{self.block}>());")

    @property
    def text(self) -> str:
        body = "\n    ".join(self.lines)
        tensor = f"Tensor<{self.element}"
        parameters = f"z: Part<&mut {tensor}, N>, {self.block}>, x: &{tensor}, M, K>, n: i32"
        return f"#[kernel]\npub fn k<N: Dim, M: Dim, K: Dim>({parameters}) {{\n    {body}\n}}\n"

    def _extent(self) -> int:
        return self.random.choice((1, 2, 4, 8, 16, 32, 64, 16 * self.random.choice((3, 5, 6, 9))))

    def _named(self, value: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        self.count += 1
        self.lines.append(f"let mut t{self.count} = {value};")
        return f"t{self.count}", shape

    def _step(self, tiles: list[tuple[str, tuple[int, ...]]]) -> tuple[str, tuple[int, ...]]:
        name, shape = self.random.choice(tiles)
        choices = [self._reshaped, self._permuted, self._reduced, self._stretched, self._argmax]
        choices += [self._at, self._looped, self._branched]
        found = self.random.choice(choices)(name, shape)
        value, shape = found if found is not None else (f"{name} * 3", shape)
        return self._named(value, shape)

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        total = prod(shape)
        low = total & -total
        first = 1 << self.random.randint(0, low.bit_length() - 1)
        second = 1 << self.random.randint(0, (low // first).bit_length() - 1)
        new = [first, second, total // first // second]
        self.random.shuffle(new)
        if any(n & (n - 1) and n % 16 for n in new):
            return None
        return f"{name}.reshape::<{_list(new)}>()", tuple(new)

    def _permuted(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        order = list(range(len(shape)))
        self.random.shuffle(order)
        return f"{name}.permute::<{_list(order)}>()", tuple(shape[a] for a in order)

    def _reduced(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        axis = self.random.randrange(len(shape))
        word = self.random.choice(("sum", "max", "min"))
        return f"{name}.{word}::<{axis}>()", _with(shape, axis, 1)

    def _argmax(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        axis = self.random.randrange(len(shape))
        return f"{name}.argmax::<{axis}>().to::<{self.element}>()", _with(shape, axis, 1)

    def _stretched(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        ones = [axis for axis, extent in enumerate(shape) if extent == 1]
        new = shape
        for axis in ones:
            new = _with(new, axis, self.random.choice((1, 2, 8, 48)))
        if prod(new) > MOST_ELEMENTS:
            return None
        return f"{name}.broadcast::<{_list(new)}>()", new

    def _at(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        place = [self.random.randint(-1, extent) for extent in shape]
        return f"{name} + {name}.at([{', '.join(f'{p}i32' for p in place)}])", shape

    def _looped(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        axis = self.random.randrange(len(shape))
        body = f"{name} = {name} - {name}.max::<{axis}>() + (i as {self.element});"
        self.lines.append(f"for i in 0..n {{ {body} }}")
        return f"{name} + 1", shape

    def _branched(self, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]] | None:
        order = [*range(1, len(shape)), 0]
        turned = f"{name}.permute::<{_list(order)}>().reshape::<{_list(shape)}>()"
        return f"if n > 1 {{ {turned} }} else {{ {name} - 7 }}", shape

    def _sum(self, tiles: list[tuple[str, tuple[int, ...]]]) -> tuple[str, tuple[int, ...]]:
        """All tiles in one: those of another size by the sum of their elements."""
        name, shape = max(tiles, key=lambda tile: prod(tile[1]))
        for other, own in tiles:
            if other == name:
                continue
            if prod(own) == prod(shape):
                joined = f"{name} + {other}.reshape::<{_list(shape)}>()"
            else:
                joined = f"{name} + {other}.sum_all()"
            name, _ = self._named(joined, shape)
        return name, shape


def _list(numbers: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, numbers))


def _with(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])
