"""Kernels for random pipelines: as text, and what they do by NumPy. All is i32, which wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

BOTH_AND_MORE = """
#[kernel]
pub fn both<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, b: &Tensor<i32, N>, c: i32,
) {
    z.store(a.load_like(&z) * 3 + b.load_like(&z) * 5 + c);
}
#[kernel]
pub fn more<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, b: &Tensor<i32, N>, c: i32,
) {
    z.store(z.load() * 7 + a.load_like(&z) - b.load_like(&z) + c);
}
"""
_OTHERS = """
#[kernel]
pub fn half<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, c: i32) {
    if z.id(0) % 2 == 0 {
        z.store(a.load_like(&z) + c);
    }
}
#[kernel]
pub fn maybe<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, c: i32) {
    if c % 2 == 0 {
        return;
    }
    z.store(a.load_like(&z) + c);
}
#[kernel]
pub fn odd<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, c: i32) {
    requires!(c % 2 == 1);
    if c % 2 == 0 {
        return;
    }
    z.store(a.load_like(&z) * 2 + c);
}
#[kernel]
pub fn pair<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 16>, w: Part<&mut Tensor<i32, N>, 16>, a: &Tensor<i32, N>, c: i32,
) {
    z.store(a.load_like(&z) + c);
    w.store(z.load() * 3);
}
#[kernel]
pub fn swapped<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 16>, w: Part<&mut Tensor<i32, N>, 16>, c: i32,
) {
    let t = z.load() + c;
    z.store(w.load());
    w.store(t);
}
#[kernel(grid = [N.div_ceil(16)])]
pub fn added<N: Dim>(z: &Atomic<Tensor<i32, N>>, a: &Tensor<i32, N>, c: i32) {
    let [p, _, _] = program_id();
    let _ = z.fetch_add([iota::<i32, 16>() + (p as i32) * 16], a.load::<16>([p]) * c);
}
#[kernel(grid = [n])]
pub fn first<N: Dim>(z: &mut Tensor<i32, N>, n: usize, c: i32) {
    let [p, _, _] = program_id();
    z.store::<16>([p], Tile::<i32, 16>::full(c));
}
#[kernel(grid = [n])]
pub fn whole<N: Dim>(z: &mut Tensor<i32, N>, n: usize, c: i32) {
    requires!(n == N.div_ceil(16));
    let [p, _, _] = program_id();
    z.store::<16>([p], Tile::<i32, 16>::full(c));
}
#[kernel]
pub fn twice<L: Dim, N: Dim>(z: Part<&mut Tensor<i32, L>, 16>, a: &Tensor<i32, N>, c: i32) {
    requires!(L == N * 2);
    z.store(a.gather::<16>([(iota::<i32, 16>() + z.offset(0) as i32) / 2]) + c);
}
#[kernel]
pub fn longer<L: Dim, N: Dim>(z: Part<&mut Tensor<i32, L>, 16>, a: &Tensor<i32, N>, c: i32) {
    z.store(a.load_or::<16>([z.id(0)], 9) + c);
}
#[kernel]
pub fn total<N: Dim>(z: Part<&mut Tensor<i32>>, a: &Tensor<i32, N>, c: i32) {
    let mut t = Tile::<i32, 16>::zeros();
    for i in 0..N.div_ceil(16) {
        t += a.load::<16>([i]);
    }
    z.store(t.sum_all() + c);
}
#[kernel]
pub fn spread<N: Dim>(z: Part<&mut Tensor<i32, N>, 32>, s: &Tensor<i32>, c: i32) {
    z.store(Tile::<i32, 32>::full(s.load([]) * 2 + c));
}
#[kernel]
pub fn rows<M: Dim, N: Dim>(
    z: Part<&mut Tensor<i32, M, N>, 16, 16>, a: &Tensor<i32, M, N>, v: &Tensor<i32, N>, c: i32,
) {
    z.store(a.load_like(&z) * 3 + v.load::<16>([z.id(1)]).expand::<0>() + c);
}
#[kernel]
pub fn onto<M: Dim, N: Dim>(
    z: Part<&mut Tensor<i32, M, N>, 16, 16>, a: &Tensor<i32, M, N>, c: i32,
) {
    z.store(z.load() * 5 + a.load_like(&z) + c);
}
#[kernel]
pub fn edges<M: Dim, N: Dim>(
    z: Part<&mut Tensor<i32, M, N>, 16, 16>, r: &mut Tensor<i32, M>, a: &Tensor<i32, M, N>, c: i32,
) {
    z.store(a.load_like(&z) * 2 + c);
    if z.id(1) == 0 {
        r.store::<16>([z.id(0)], Tile::<i32, 16>::full(c));
    }
}
#[kernel]
pub fn turned<M: Dim, N: Dim>(
    z: Part<&mut Tensor<i32, M, N>, 16, 16>, a: &Tensor<i32, N, M>, c: i32,
) {
    z.store(a.t().load::<16, 16>([z.id(0), z.id(1)]) + c);
}
#[kernel]
pub fn stack<A: Dim, B: Dim, C: Dim>(
    z: Part<&mut Tensor<i32, A, B, C>, 1, 1, 16>, a: &Tensor<i32, B, C>, c: i32,
) {
    z.store(a.load::<1, 16>([z.id(1), z.id(2)]).expand::<0>() + (z.id(0) as i32) * c);
}
#[kernel]
pub fn cube<A: Dim, B: Dim, C: Dim>(
    z: Part<&mut Tensor<i32, A, B, C>, 1, 1, 16>, a: &Tensor<i32, A, B, C>, c: i32,
) {
    z.store(a.load_like(&z) * 7 + c);
}
#[kernel]
pub fn flat<A: Dim, B: Dim, C: Dim>(
    z: Part<&mut Tensor<i32, B, C>, 1, 16>, a: &Tensor<i32, A, B, C>, c: i32,
) {
    let mut t = Tile::<i32, 1, 16>::full(c);
    for i in 0..A {
        t += a.load::<1, 1, 16>([i, z.id(0), z.id(1)]).squeeze::<0>();
    }
    z.store(t);
}
"""
TEXT = BOTH_AND_MORE + _OTHERS


class Refused(Exception):  # noqa: N818, no fault: the contract of a launch does not hold
    """A launch has extents or numbers that its kernel does not take."""


@dataclass(frozen=True)
class Kernel:
    """One kernel. `tensors` are its parameters as `how:axes`: written, read or updated.

    `run` gets the tensors, `n` and `c`; `allows` says for which extents of the axes, `n` and `c`
    its `requires!` holds. `fills`: it writes all of its first tensor, and does not read it.
    """

    name: str
    tensors: tuple[str, ...]
    run: Callable[..., None]
    fills: bool = True
    has_count: bool = False
    allows: Callable[[Mapping[str, int], int, int], bool] = lambda extents, n, c: True

    def launch(self, tensors: list[Array], n: int, c: int) -> None:
        """Raises Refused, before anything is done."""
        extents: dict[str, int] = {}
        for told, tensor in zip(self.tensors, tensors, strict=True):
            for axis, extent in zip(told[2:], tensor.shape, strict=True):
                if extents.setdefault(axis, extent) != extent:
                    raise Refused
        if not self.allows(extents, n, c):
            raise Refused
        counted = (n,) if self.has_count else ()
        with np.errstate(all="ignore"):
            self.run(*tensors, *counted, np.int32(c))


def _half(z: Array, a: Array, c: np.int32) -> None:
    is_even = np.arange(len(z)) // 16 % 2 == 0
    z[is_even] = (a + c)[is_even]


def _maybe(z: Array, a: Array, c: np.int32) -> None:
    if c % 2:
        z[:] = a + c


def _pair(z: Array, w: Array, a: Array, c: np.int32) -> None:
    z[:] = a + c
    w[:] = z * 3


def _swapped(z: Array, w: Array, c: np.int32) -> None:
    z[:], w[:] = w.copy(), z + c


def _longer(z: Array, a: Array, c: np.int32) -> None:
    count = min(len(z), len(a))
    z[:] = 9 + c
    z[:count] = a[:count] + c


def _edges(z: Array, r: Array, a: Array, c: np.int32) -> None:
    z[:] = a * 2 + c
    if z.shape[1]:  # else there is no program
        r[:] = c


def _stack(z: Array, a: Array, c: np.int32) -> None:
    z[:] = a + np.arange(len(z), dtype=np.int32)[:, None, None] * c


def _into(value: Callable[..., Array]) -> Callable[..., None]:
    """A kernel that writes its first tensor: what it is made of, and what it was."""

    def run(z: Array, *given: object) -> None:
        z[...] = value(z, *given)

    return run


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("both", ("w:N", "r:N", "r:N"), _into(lambda z, a, b, c: a * 3 + b * 5 + c)),
        Kernel("more", ("w:N", "r:N", "r:N"), _into(lambda z, a, b, c: z * 7 + a - b + c), False),
        Kernel("half", ("w:N", "r:N"), _half, False),
        Kernel("maybe", ("w:N", "r:N"), _maybe, False),
        Kernel(
            "odd", ("w:N", "r:N"), _into(lambda z, a, c: a * 2 + c), False,
            allows=lambda extents, n, c: c > 0 and c % 2 == 1,
        ),
        Kernel("pair", ("w:N", "w:N", "r:N"), _pair),
        Kernel("swapped", ("w:N", "w:N"), _swapped, False),
        Kernel("added", ("u:N", "r:N"), _into(lambda z, a, c: z + a * c), False),
        Kernel(
            "first", ("w:N",), lambda z, n, c: z[: 16 * n].fill(c), False, has_count=True,
            allows=lambda extents, n, c: n >= 0,
        ),
        Kernel(
            "whole", ("w:N",), lambda z, n, c: z.fill(c), False, has_count=True,
            allows=lambda extents, n, c: n == -(-extents["N"] // 16),
        ),
        Kernel(
            "twice", ("w:L", "r:N"), _into(lambda z, a, c: a.repeat(2) + c), False,
            allows=lambda extents, n, c: extents["L"] == 2 * extents["N"],
        ),
        Kernel("longer", ("w:L", "r:N"), _longer),
        Kernel("total", ("w:", "r:N"), _into(lambda z, a, c: a.sum(dtype=np.int32) + c)),
        Kernel("spread", ("w:N", "r:"), _into(lambda z, s, c: s * 2 + c)),
        Kernel("rows", ("w:MN", "r:MN", "r:N"), _into(lambda z, a, v, c: a * 3 + v + c)),
        Kernel("onto", ("w:MN", "r:MN"), _into(lambda z, a, c: z * 5 + a + c), False),
        Kernel("edges", ("w:MN", "w:M", "r:MN"), _edges),
        Kernel("turned", ("w:MN", "r:NM"), _into(lambda z, a, c: a.T + c)),
        Kernel("stack", ("w:ABC", "r:BC"), _stack),
        Kernel("cube", ("w:ABC", "r:ABC"), _into(lambda z, a, c: a * 7 + c)),
        Kernel("flat", ("w:BC", "r:ABC"), _into(lambda z, a, c: a.sum(0, dtype=np.int32) + c)),
    )
}  # fmt: skip
