"""A family as the compiler writes one: products of matrices with tiles of other sizes."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.manifest_samples import manifest
from tilec.artifact.abi import slots_of
from tilec.artifact.families import families_of
from tilec.artifact.family import Cost, Measured, Part, Table
from tilec.artifact.manifest import Kernel, Variant
from tilec.artifact.signature import Coverage, Generic, Parameter


def part(busy_cycles, alone_cycles, turns=1):
    """A part that keeps tensor cores busy."""
    return Part(turns, busy_cycles, 0, 0, 0, alone_cycles)


def product(bm, bn, turn_cycles, element="bf16", blocks=1, **changes):
    """c = a b by tiles of bm x bn, a turn of whose loop takes so many cycles."""
    symbol = f"matmul__{element}_{bm}_{bn}"
    parameters = (
        Parameter("c", "tensor", element, ("M", "N"), "part", (bm, bn)),
        Parameter("a", "tensor", element, ("M", "K"), "shared"),
        Parameter("b", "tensor", element, ("K", "N"), "shared"),
    )
    dims = ("M", "N", "K")
    turn = part(turn_cycles, turn_cycles, ("ceildiv", "K", 64))
    cost = Cost(blocks, 100, (part(10, 20), turn))
    kernel = Kernel(
        name="matmul",
        symbol=symbol,
        generics=(
            Generic("T", "type", element),
            Generic("BM", "const", bm),
            Generic("BN", "const", bn),
        ),
        documentation="c = a b",
        line=4,
        parameters=parameters,
        dims=dims,
        grid=(("ceildiv", "M", bm), ("ceildiv", "N", bn)),
        requires=(),
        unsafe=(),
        accesses=(),
        coverage=(Coverage("c", writes_all=True, reads_first=False),),
        variants=(Variant(symbol, threads=128, slots=slots_of(parameters, dims), cost=cost),),
    )
    return replace(kernel, **changes)


LARGE, SMALL = product(128, 256, 1138), product(64, 64, 256)


def of_family(*kernels, measured=(), card="A Card"):
    """A manifest of one family, with what was measured on a card: (extents, member)."""
    kernels = kernels or (LARGE, SMALL)
    [family] = families_of(kernels)
    table = Table(card, tuple(Measured(extents, member, 1.0) for extents, member in measured))
    families = (replace(family, tables=(table,)) if measured else family,)
    return replace(manifest(*kernels), families=families)
