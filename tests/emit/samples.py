"""Manifests that between them have everything a launcher must know."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.family_samples import of_family, product
from tests.unit.manifest_samples import add_kernel, copy_kernel, manifest, mapped_kernel
from tilec.artifact.abi import slots_of
from tilec.artifact.family import Cost
from tilec.artifact.manifest import Kernel, Precondition, TensorMap, Variant
from tilec.artifact.signature import Parameter, Requirement


def scalars_kernel() -> Kernel:
    """Takes a scalar of each type, names that C keeps for itself, and a grid of four axes."""
    elements = (
        "bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize", "f16", "bf16",
        "f32", "f64",
    )  # fmt: skip
    parameters = (
        Parameter("int", "tensor", "u8", ("A", "B", "C", "stream"), "mut"),
        *(Parameter(f"{element}_", "scalar", element) for element in elements),
    )
    dims = ("A", "B", "C", "stream")
    slots = slots_of(parameters, dims)
    return Kernel(
        name="scalars",
        symbol="scalars",
        generics=(),
        documentation="Ends /* comments */ and asks ??/ for trigraphs.",
        line=1,
        parameters=parameters,
        dims=dims,
        grid=("A", "B", "C", "stream"),
        requires=(
            Requirement("u8_ as usize <= A + 250", ("le", "u8_", ("add", "A", 250)), 2),
            Requirement("f32_ < 100.5", ("lt", "f32_", 100.5), 3),
            Requirement(
                "!bool_ || A / i8_ != 3",
                ("or", ("not", "bool_"), ("ne", ("div", "A", "i8_"), 3)),
                4,
            ),
            Requirement("f16_ < 1000.0", ("lt", ("max", "f16_", ("neg", "bf16_")), 1000.0), 5),
        ),
        unsafe=(),
        accesses=(),
        coverage=(),
        variants=(Variant("scalars", 32, slots, dynamic_smem_bytes=1024),),
    )


def total_kernel() -> Kernel:
    """Tensors without axes: one read, and one that is a part, so that the grid has none either."""
    parameters = (
        Parameter("total", "tensor", "f32", (), "part"),
        Parameter("first", "tensor", "f32", (), "shared"),
        Parameter("x", "tensor", "f32", ("N",), "shared"),
    )
    slots = slots_of(parameters, ("N",))
    return Kernel(
        name="total",
        symbol="total",
        generics=(),
        documentation="",
        line=1,
        parameters=parameters,
        dims=("N",),
        grid=(),
        requires=(),
        unsafe=(),
        accesses=(),
        coverage=(),
        variants=(Variant("total", 32, slots),),
    )


def clustered_kernel() -> Kernel:
    """In clusters of 2 x 2, split in four, persistent in clusters of four, then as it comes."""
    base = product(64, 64, 256, symbol="clustered", name="clustered")
    plain = replace(base.variants[0], symbol="clustered")
    aligned = (Precondition("a", 16, 16), Precondition("b", 16, 16, row_multiple=8))
    variants = (
        replace(
            plain,
            symbol="clustered__persistent",
            preconditions=(Precondition("c", 128, 16), *aligned),
            cluster=(4, 1, 1),
            persistent_blocks_per_sm=1,
            dynamic_smem_bytes=200_000,
        ),
        replace(
            plain,
            symbol="clustered__split",
            preconditions=(Precondition("c", 32, 1), *aligned),
            cluster=(4, 1, 1),
            split=4,
            dynamic_smem_bytes=60_000,
        ),
        replace(plain, symbol="clustered__pairs", preconditions=aligned, cluster=(2, 2, 1)),
        plain,
    )
    return replace(base, variants=variants)


def persistent_kernel() -> Kernel:
    """Persistent, two blocks a multiprocessor, in pairs."""
    base = product(128, 128, 500, symbol="persistent", name="persistent")
    walking = replace(
        base.variants[0], symbol="persistent", cluster=(2, 1, 1), persistent_blocks_per_sm=2
    )
    return replace(base, variants=(walking,))


def many_kernel() -> Kernel:
    """Takes 100 parameters, of 97 `Dim`s, and 12 tensor maps: more than 64, 127 and 256 of what
    there is of each, of values in expressions, and of what the machine code is passed."""
    count = 96
    dims = tuple(f"D{number}" for number in range(count + 1))
    parameters = (
        Parameter("t0", "tensor", "bf16", dims[:2], "part", (64, 64)),
        *(
            Parameter(f"t{number}", "tensor", "bf16", dims[number : number + 2], "shared")
            for number in range(1, count)
        ),
        *(Parameter(f"n{number}", "scalar", "i32") for number in range(4)),
    )
    maps = tuple(TensorMap(f"t{number}", (64, 64), 128, number == 0) for number in range(12))
    slots = slots_of(parameters, dims)
    return Kernel(
        name="many",
        symbol="many",
        generics=(),
        documentation="",
        line=1,
        parameters=parameters,
        dims=dims,
        grid=(("ceildiv", "D0", 64), ("ceildiv", "D1", 64)),
        requires=(Requirement("n3 != 5", ("ne", "n3", 5), 2),),
        unsafe=(),
        accesses=(),
        coverage=(),
        variants=(
            Variant("many__tma", 384, slots_of(parameters, dims, maps), tensor_maps=maps),
            Variant("many", 128, slots),
        ),
    )


def everything():
    """One manifest of all of these, and of those that the runtime is tested with."""
    cheap = Cost(2, 50, product(1, 1, 1).variants[0].cost.parts)
    small = product(64, 64, 256)
    small = replace(small, variants=(replace(small.variants[0], cost=cheap),))
    family = of_family(
        product(128, 256, 1138),
        small,
        product(64, 128, 520, requires=(Requirement("N > 64", ("gt", "N", 64), 3),)),
        measured=[((64, 64, 64), "matmul__bf16_128_256"), ((128, 128, 128), "matmul__bf16_64_64")],
    )
    whole = manifest(
        add_kernel(),
        add_kernel("bf16", 2048),
        add_kernel("f16", 512),
        copy_kernel(),
        mapped_kernel(),
        scalars_kernel(),
        total_kernel(),
        clustered_kernel(),
        persistent_kernel(),
        many_kernel(),
        *family.kernels,
    )
    return replace(whole, families=family.families)
