"""Random small kernels as source text, for the proofs and the dynamic checker to agree on.

Most accesses to what is written go by a plan under which programs do not meet (`owned_plans`). In
about half of the kernels some are spoilt: by a neighbour's index, a wider tile, an index that
forgets an id, a missing guard. Indices along axes that nobody owns are any expression.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.proofs.owned_plans import (
    Cell,
    GridAxis,
    Plan,
    Tensor,
    ceiling,
    enclosed,
    fitted,
    natural,
)
from tests.proofs.random_expressions import Expressions, Variable

DIMS = ("N", "M", "K")
SCALARS = {"s": "i32", "t": "usize"}
TILES = (1, 2, 4, 8, 16)
HELPER = "fn pick(i: usize, n: usize) -> usize {\n    %s\n}\n"
HELPERS = ("i + n", "i * 2 + n", "i - n % 2", "if i < n { i } else { n }", "i.min(n) + 1")
_EDGES = {"i32": (-(2**31), 2**31 - 1), "usize": (-(2**40), 2**40)}


@dataclass(frozen=True)
class Launch:
    """Extents by `Dim`, and scalars by name."""

    dims: Mapping[str, int]
    scalars: Mapping[str, int]

    def __str__(self) -> str:
        return ", ".join(f"{k} = {v}" for k, v in {**self.dims, **self.scalars}.items())


@dataclass(frozen=True)
class RandomKernel:
    """One kernel `k`; `is_owned` if every access was meant to be free of races."""

    seed: int
    text: str
    is_owned: bool
    dims: tuple[str, ...]
    scalars: Mapping[str, str]  # element type by name

    def launches(self) -> Iterator[Launch]:
        """Launches without end, small ones most often; `requires!` is for the caller to try."""
        source = random.Random(self.seed)
        for number in range(1_000_000):
            yield self._launch(source, number)

    def _launch(self, source: random.Random, number: int) -> Launch:
        if number < 2:
            return Launch(dict.fromkeys(self.dims, 4 + number), dict.fromkeys(self.scalars, number))
        dims = {dim: _extent(source) for dim in self.dims}
        if source.random() < 0.15:
            dims = dict.fromkeys(self.dims, _extent(source))
        return Launch(dims, {name: _scalar(source, kind) for name, kind in self.scalars.items()})


def _extent(source: random.Random) -> int:
    return source.choice((0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, source.randint(9, 20)))


def _scalar(source: random.Random, kind: str) -> int:
    if source.random() < 0.06:
        return source.choice(_EDGES[kind])
    return source.randint(-3, 6)


def random_kernel(seed: int) -> RandomKernel:
    """The kernel of a seed: always the same."""
    return _Builder(seed).kernel()


class _Builder:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.dims = DIMS[: self.random.choice((1, 1, 2, 2, 3))]
        self.scalars = {n: k for n, k in SCALARS.items() if self.chance(0.35)}
        helper = "pick" if self.chance(0.12) else None
        self.said = Expressions(self.random, self.dims, helper)
        self.said.scope += [Variable(n, k, weight=1) for n, k in self.scalars.items()]
        self.spoils = 0 if self.chance(0.4) else self.random.choice((1, 2, 2))
        self.is_owned = self.spoils == 0
        self.count = 0
        self.loops = 0
        self.part: Tensor | None = None
        self.block: tuple[int, ...] = ()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- the kernel -----------------------------------------------------------------------------

    def kernel(self) -> RandomKernel:
        main = Tensor("z", self.extents(self.random.choices((1, 2, 3), (4, 4, 2))[0]))
        if self.chance(0.2):
            grid, start = self.cut(main)
            self.written = []
        else:
            grid, main.plan = natural(self.said, main)
            grid, start = self.grid_axes(grid)
            self.written = [main]
        self.said.scope += [
            Variable(axis.id, "usize", weight=6, below=axis.extent) for axis in grid
        ]
        if self.part is not None or self.chance(0.3):
            other = Tensor("y", self.extents(self.random.choices((1, 2, 3), (4, 4, 2))[0]))
            other.plan = fitted(self.said, other, grid)
            self.written.append(other)
        self.read = [Tensor(n, self.extents(r)) for n, r in self.read_tensors(main)]
        tensors = [main, *self.written[self.part is None :], *self.read]
        bound = {extent for tensor in tensors for extent in tensor.extents}
        if missing := tuple(dim for dim in self.dims if dim not in bound):
            self.read.append(Tensor("w", missing))
            tensors.append(self.read[-1])
        body = [*self.preconditions(), *start, *self.body()]
        return RandomKernel(
            self.seed, self.source(tensors, grid, body), self.is_owned, self.dims, self.scalars
        )

    def extents(self, rank: int) -> tuple[str, ...]:
        constants = ("1", "2", "3", "4", "6", "8", "16")
        return tuple(
            self.said.dim() if self.chance(0.7) else self.random.choice(constants)
            for _ in range(rank)
        )

    def read_tensors(self, main: Tensor) -> list[tuple[str, int]]:
        ranks = [main.rank, self.random.choice((1, 1, 2, 3))]
        return [(name, rank) for name, rank in zip("xv", ranks, strict=True) if self.chance(0.6)]

    def cut(self, main: Tensor) -> tuple[list[GridAxis], list[str]]:
        """The kernel's grid is that of the parts of `main`."""
        self.part = main
        self.block = tuple(self.random.choice((1, 2, 4, 8)) for _ in main.extents)
        grid, start = [], []
        for axis, (name, extent, size) in enumerate(
            zip("pqr", main.extents, self.block, strict=False)
        ):
            count = (
                f"{extent}.div_ceil({size})"
                if not extent.isdigit()
                else str(-(-int(extent) // size))
            )
            grid.append(GridAxis(name, count, count))
            start.append(f"let {name} = z.id({axis});")
        self.said.scope.append(Variable("z.offset(0)", "usize", weight=1))
        return grid, start

    def grid_axes(self, grid: list[GridAxis]) -> tuple[list[GridAxis], list[str]]:
        """The grid in the order that the kernel has it, with an axis more now and then."""
        plan_axes = list(grid)
        if len(grid) < 3 and self.chance(0.12):
            # Nobody owns anything by this axis: races, unless there is one program along it.
            extra = GridAxis("e", self.random.choice(("1", "1", "2", self.said.dim())), "ge")
            plan_axes.append(extra)
        self.random.shuffle(plan_axes)
        self.grid = plan_axes
        ids = ([axis.id for axis in plan_axes] + ["_", "_", "_"])[:3]
        counts = ([axis.count for axis in plan_axes] + ["_", "_", "_"])[:3]
        start = [f"let [{', '.join(ids)}] = program_id();"]
        return plan_axes, [*start, f"let [{', '.join(counts)}] = num_programs();"]

    def preconditions(self) -> list[str]:
        count = self.random.choices((0, 1, 2), (6, 3, 1))[0]
        lines = [f"requires!({self.said.condition_of_launch()});" for _ in range(count)]
        whole = {
            f"requires!({tensor.extents[axis]} % {cell.width} == 0);"
            for tensor in self.written
            if tensor.plan is not None
            for axis, cell in tensor.plan.cells.items()
            if cell.width > 1 and not tensor.extents[axis].isdigit()
        }
        return lines + sorted(whole) if self.chance(0.3) else lines

    def source(self, tensors: list[Tensor], grid: list[GridAxis], body: list[str]) -> str:
        attribute = "" if self.part else f"(grid = [{', '.join(a.extent for a in grid)}])"
        written = {id(tensor) for tensor in self.written}
        parameters = []
        for tensor in tensors:
            if tensor is self.part:
                blocks = ", ".join(map(str, self.block))
                parameters.append(f"z: Part<&mut {tensor.type}, {blocks}>")
            else:
                mutable = "mut " if id(tensor) in written else ""
                parameters.append(f"{tensor.name}: &{mutable}{tensor.type}")
        parameters += [f"{name}: {kind}" for name, kind in self.scalars.items()]
        generics = ", ".join(f"{dim}: Dim" for dim in self.dims)
        lines = "\n".join(f"    {line}" for line in body)
        helper = HELPER % self.random.choice(HELPERS) if self.said.helper else ""
        return (
            f"{helper}#[kernel{attribute}]\n"
            f"pub fn k<{generics}>(\n    {', '.join(parameters)},\n) {{\n{lines}\n}}\n"
        )

    # ---- statements -----------------------------------------------------------------------------

    def body(self) -> list[str]:
        lines: list[str] = []
        if self.chance(0.12):
            lines.append(f"if {self.said.condition()} {{ return; }}")
        lines += self.statements(self.random.randint(2, 4), depth=2)
        lines += self.store()
        while self.spoils:
            lines += self.store(must_spoil=True)
        return lines

    def statements(self, count: int, depth: int) -> list[str]:
        return [line for _ in range(count) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        simple = [
            (6, self.store),
            (3, self.loaded),
            (2, self.declared),
            (2, self.assigned),
            *([(5, self.part_access)] if self.part else []),
        ]
        nested = [(3, self.branch), (3, self.loop), (2, self.stride_loop), (1, self.while_loop)]
        if depth > 0:
            weights, makers = zip(*simple, *((w, m) for w, m in nested), strict=True)
            make = self.random.choices(makers, weights)[0]
            if make in (self.branch, self.loop, self.stride_loop, self.while_loop):
                return make(depth)
            return make()
        weights, makers = zip(*simple, strict=True)
        return self.random.choices(makers, weights)[0]()

    def declared(self) -> list[str]:
        kind = self.random.choices(("usize", "i32"), (4, 1))[0]
        self.count += 1
        name = f"i{self.count}"
        is_mutable = self.chance(0.5)
        value = self.said.of(kind, self.random.choice((0, 1, 1, 2)))
        self.said.scope.append(Variable(name, kind, weight=3, is_mutable=is_mutable))
        return [f"let {'mut ' if is_mutable else ''}{name}: {kind} = {value};"]

    def assigned(self) -> list[str]:
        variable = self.said.assignable()
        if variable is None:
            return self.declared()
        if self.chance(0.5):
            word = self.random.choice(("+=", "+=", "-=", "*="))
            return [f"{variable.name} {word} {self.random.randint(1, 2)};"]
        return [f"{variable.name} = {self.said.of(variable.type, 1)};"]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.said.condition()} {{", *self.block_of(depth - 1)]
        if self.chance(0.4):
            lines += ["} else {", *self.block_of(depth - 1)]
        return [*lines, "}"]

    def block_of(self, depth: int, *variables: Variable) -> list[str]:
        with self.said.block(*variables):
            return _indented(self.statements(self.random.choice((1, 1, 2)), depth))

    def loop(self, depth: int) -> list[str]:
        self.count += 1
        name = f"k{self.count}"
        kind, bounds = self.range()
        adapted = bounds
        if self.chance(0.3):
            adapted = f"({bounds})"
            adapters = [".rev()", f".step_by({self.random.choice(('2', '3', '1'))})"]
            for adapter in self.random.sample(adapters, self.random.choice((1, 1, 2))):
                adapted += adapter
        self.loops += 1
        below = bounds[3:].removesuffix("usize") if bounds.startswith("0..") else None
        lines = self.block_of(depth - 1, Variable(name, kind, weight=5, below=below))
        self.loops -= 1
        return [f"for {name} in {adapted} {{", *lines, "}"]

    def range(self) -> tuple[str, str]:
        """The type and text of a range that is not long."""
        dim = self.said.dim()
        low, few = self.random.randint(0, 2), self.random.randint(1, 4)
        short = [
            ("usize", f"0..{few}usize"),
            ("usize", f"{low}usize..={low + few - 1}"),
            ("usize", f"0..{dim}.min({few})"),
            ("i32", f"-{low}..{few}i32"),
            ("u8", f"0u8..{few}"),
            ("u8", "254u8..=255"),
        ]
        if "s" in self.scalars:
            short.append(("i32", f"0..s.clamp(0, {few})"))
        long = [
            ("usize", f"0..{dim}"),
            ("usize", f"{low}..{dim}"),
            ("usize", f"0..{dim}.div_ceil({few + 1})"),
            ("usize", f"0..={dim} / {few + 1}"),
            ("i32", f"0..({dim} as i32)"),
        ]
        return self.random.choice(short if self.loops else short + long * 2)

    def strided(self) -> Cell | None:
        cells = [c for t in self.written if t.plan for c in t.plan.cells.values() if c.stride]
        return self.random.choice(cells) if cells else None

    def stride_loop(self, depth: int) -> list[str]:
        """A loop whose variable walks over the cells that this program owns by a stride."""
        cell = self.strided()
        if cell is None or self.loops:
            return self.loop(depth)
        self.count += 1
        name, bound = f"k{self.count}", self.random.choice((self.said.dim(), "6", "8"))
        inner = Variable(name, "usize", weight=4)
        self.loops += 1
        cell.aliases.append(name)
        lines = self.block_of(depth - 1, inner)
        cell.aliases.remove(name)
        self.loops -= 1
        if self.chance(0.7):
            return [f"for {name} in ({cell.index}..{bound}).step_by({cell.stride}) {{", *lines, "}"]
        step = f"    {name} += {cell.stride};"
        return [
            f"let mut {name} = {cell.index};",
            f"while {name} < {bound} {{", *lines, step, "}",
        ]  # fmt: skip

    def while_loop(self, depth: int) -> list[str]:
        if self.loops:
            return self.loop(depth)
        self.count += 1
        name, bound = f"k{self.count}", self.random.choice((self.said.dim(), "3", "5"))
        start = self.random.choice(("0usize", self.said.leaf("usize")))
        step = self.random.choice(("1", "2", "3"))
        counter = Variable(name, "usize", weight=5)
        self.loops += 1
        lines = self.block_of(depth - 1, counter)
        self.loops -= 1
        # A start far below zero would count for ages.
        return [
            f"let mut {name} = {enclosed(start)}.max(0);",
            f"while {name} < {bound} {{", *lines, f"    {name} += {step};", "}",
        ]  # fmt: skip

    # ---- accesses -------------------------------------------------------------------------------

    def store(self, must_spoil: bool = False) -> list[str]:
        if not self.written:
            return self.part_access()
        tensor = self.random.choice(self.written)
        assert tensor.plan is not None, "what is written has a plan"
        target, shape, guards = self.access(tensor, "store", must_spoil)
        line = target.replace("VALUE", self.value(shape))
        return [f"if {' && '.join(guards)} {{ {line}; }}"] if guards else [f"{line};"]

    def loaded(self) -> list[str]:
        tensors = [*self.read, *self.written]
        if not tensors:
            return self.declared()
        tensor = self.random.choice(tensors)
        target, _, guards = self.access(tensor, "load")
        self.count += 1
        name = f"t{self.count}"
        if guards:
            return [f"if {' && '.join(guards)} {{ let {name} = {target}; }}"]
        if tensor in self.read and self.chance(0.1):
            # An index that comes from memory: nothing can be proved of it.
            zeros = ", ".join(["0"] * tensor.rank)
            self.said.scope.append(Variable(name, "i32", weight=2))
            return [f"let {name} = {target}.at([{zeros}]);"]
        return [f"let {name} = {target};"]

    def value(self, shape: tuple[int, ...]) -> str:
        """What is stored: a number, or a tile from a tensor of this rank."""
        fits = [t for t in self.read if t.rank == len(shape)]
        if not fits or self.chance(0.5):
            return self.constant()
        tensor = self.random.choice(fits)
        indices = ", ".join(self.said.index() for _ in shape)
        extents = ", ".join(map(str, shape))
        word = self.random.choice(("load", "load_at"))
        return f"{tensor.name}.{word}::<{extents}>([{indices}])"

    def constant(self) -> str:
        return str(self.random.randint(1, 9))

    def access(
        self, tensor: Tensor, word: str, must_spoil: bool = False
    ) -> tuple[str, tuple[int, ...], list[str]]:
        """An access as text (a store with VALUE to be replaced), its shape, and its guards."""
        counts_tiles = self.chance(0.5)
        plan = tensor.plan or Plan({}, [])
        guards = list(plan.guards)
        spoilt = self.spoilt_axis(plan, word == "store", must_spoil)
        indices, shape = [], []
        for axis in range(tensor.rank):
            cell = plan.cells.get(axis)
            if cell is None:
                index, size = self.free(tensor.extents[axis], counts_tiles)
            elif axis == spoilt:
                index, size = self.spoil(cell, counts_tiles)
            else:
                index, size = self.owned(cell, counts_tiles)
            indices.append(index)
            shape.append(size)
        if spoilt is None and self.has_spoilt and guards and self.chance(0.5):
            guards.pop()
        name = tensor.name
        if tensor.rank > 1 and self.chance(0.15):
            name, order = self.viewed(tensor)
            indices, shape = [indices[a] for a in order], [shape[a] for a in order]
        unit = "" if counts_tiles else "_at"
        extents = ", ".join(map(str, shape))
        value = ", VALUE" if word == "store" else ""
        text = f"{name}.{word}{unit}::<{extents}>([{', '.join(indices)}]{value})"
        return text, tuple(shape), guards

    def free(self, extent: str, counts_tiles: bool) -> tuple[str, int]:
        """An index along an axis that nobody owns, half of them inside by construction."""
        if self.chance(0.5):
            return self.said.index(), self.random.choices(TILES, (6, 5, 4, 1, 1))[0]
        if extent.isdigit() and self.chance(0.6):
            size = self.random.choice([size for size in TILES if size <= int(extent)])
            last = int(extent) // size - 1 if counts_tiles else int(extent) - size
            return str(self.random.randint(0, last)), size
        known = [(name, 1) for name in self.said.below(extent)]
        if counts_tiles:
            known += [(n, size) for size in (2, 4) for n in self.said.below(ceiling(extent, size))]
        if known and self.chance(0.7):
            return self.random.choice(known)
        index = enclosed(self.said.of("usize", 1))
        inside = (f"{index}.clamp(0, {extent} - 1)", f"{index}.rem_euclid({extent})", "0")
        return self.random.choice(inside), 1

    def viewed(self, tensor: Tensor) -> tuple[str, list[int]]:
        """A view of a tensor and the order of its axes."""
        order = list(range(tensor.rank))
        if self.chance(0.5):
            order[-2:] = reversed(order[-2:])
            return f"{tensor.name}.t()", order
        self.random.shuffle(order)
        return f"{tensor.name}.permute::<{', '.join(map(str, order))}>()", order

    def owned(self, cell: Cell, counts_tiles: bool) -> tuple[str, int]:
        """An index inside of this program's cells, and the extent of the tile there."""
        index = self.cell_index(cell)
        sizes = [size for size in TILES if size <= cell.width]
        if counts_tiles:
            sizes = [size for size in sizes if cell.width % size == 0]
            size = (
                cell.width
                if cell.width in sizes and self.chance(0.7)
                else self.random.choice(sizes)
            )
            times = cell.width // size
            return self.within(index, times, times - 1), size
        size = self.random.choice(sizes)
        return self.within(index, cell.width, cell.width - size), size

    def cell_index(self, cell: Cell) -> str:
        if cell.stride is None:
            return cell.index
        if cell.aliases and self.chance(0.8):
            return self.random.choice(cell.aliases)
        steps = [v.name for v in self.said.scope if v.name.startswith("k") and v.type == "usize"]
        if steps and self.chance(0.7):
            return f"({cell.index} + {self.random.choice(steps)} * {cell.stride})"
        return f"({cell.index} + {self.random.randint(0, 2)} * {cell.stride})"

    def within(self, index: str, times: int, most: int) -> str:
        """`index * times` plus something from 0 to `most`."""
        index = f"{index} * {times}" if times > 1 else index
        if most <= 0 or self.chance(0.4):
            return index
        if self.chance(0.4):
            any_number = self.said.of("usize", 1)
            return f"({index}) as usize + {enclosed(any_number)}.rem_euclid({most + 1})"
        return f"{index} + {self.random.randint(0, most)}"

    # ---- what is wrong on purpose ---------------------------------------------------------------

    has_spoilt = False

    def spoilt_axis(self, plan: Plan, is_store: bool, must_spoil: bool) -> int | None:
        """The axis along which this access leaves what the program owns."""
        likely = 0.6 if is_store else 0.2
        if not self.spoils or not (must_spoil or self.chance(likely)):
            return None
        self.spoils -= 1
        self.has_spoilt = True
        return self.random.choice(list(plan.cells)) if plan.cells else None

    def spoil(self, cell: Cell, counts_tiles: bool) -> tuple[str, int]:
        index, size = self.owned(cell, counts_tiles)
        index = enclosed(index)
        wider = min(16, size * 2)
        wrong: list[tuple[int, Callable[[], tuple[str, int]]]] = [
            (3, lambda: (self.said.index(), size)),
            (2, lambda: (f"{index} + {self.random.choice((1, 1, 2))}", size)),
            (1, lambda: (f"{index} - 1", size)),
            (2, lambda: (f"{index} / 2", size)),
            (2, lambda: (f"{index} % {self.random.randint(1, 4)}", size)),
            (2, lambda: (f"{index}.min({self.random.randint(0, 3)})", size)),
            (1, lambda: (f"{index}.max({self.random.randint(1, 3)})", size)),
            (1, lambda: (f"{index} * 2 / 3", size)),
            # Wider tiles at the same indices overlap only where these count elements.
            (1 if counts_tiles else 4, lambda: (index, wider)),
            (2, lambda: (str(self.random.randint(0, 3)), size)),
            (1, lambda: (f"{index} * {self.random.choice((0, 0, -1))}", size)),
            (2, lambda: (f"(if {self.said.condition(0)} {{ {index} }} else {{ 1 }})", size)),
        ]
        makers = [make for _, make in wrong]
        return self.random.choices(makers, [weight for weight, _ in wrong])[0]()

    # ---- parts ----------------------------------------------------------------------------------

    def part_access(self) -> list[str]:
        assert self.part is not None, "the kernel has a part"
        blocks = ", ".join(map(str, self.block))
        like = [t for t in self.read if t.rank == self.part.rank]
        match self.random.choice(("store", "load", "sub", "sub", "like")):
            case "load":
                return ["z.store(z.load() + 1);"]
            case "like" if like:
                return [f"z.store({self.random.choice(like).name}.load_like(&z));"]
            case "sub":
                return self.smaller_part()
        shape = tuple(self.block)
        fits = [t for t in like if self.chance(0.5)]
        if fits:
            ids = ", ".join("pqr"[: len(shape)])
            return [f"z.store({fits[0].name}.load::<{blocks}>([{ids}]));"]
        return [f"z.store({self.constant()});"]

    def smaller_part(self) -> list[str]:
        self.count += 1
        name = f"c{self.count}"
        assert self.part is not None, "the kernel has a part"
        block = [self.random.choice([s for s in (1, 2, 4, 8) if s <= b]) for b in self.block]
        indices = ", ".join(self.said.index() for _ in block)
        extents = ", ".join(map(str, block))
        lines = [f"let {name} = z.sub::<{extents}>([{indices}]);"]
        if self.chance(0.3):
            smaller = [max(1, size // 2) for size in block]
            inside = ", ".join(self.said.index() for _ in block)
            lines.append(
                f"let d{self.count} = {name}.sub::<{', '.join(map(str, smaller))}>([{inside}]);"
            )
            name = f"d{self.count}"
        lines.append(f"{name}.store({self.random.choice((f'{name}.load()', self.constant()))});")
        return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
