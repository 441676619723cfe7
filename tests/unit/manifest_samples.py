"""Manifests that tests start from, as the compiler would write them."""

from __future__ import annotations

from dataclasses import replace

from tilec.artifact.abi import slots_of
from tilec.artifact.lowering_report import (
    HeldLayout,
    LoweringReport,
    Movement,
    Product,
    SharedBuffer,
    TileAccess,
)
from tilec.artifact.manifest import (
    Access,
    Kernel,
    Manifest,
    Precondition,
    Source,
    TensorMap,
    Toolchain,
    UnsafeUse,
    Variant,
)
from tilec.artifact.schedule_report import (
    ScheduledChannel,
    ScheduledChoice,
    ScheduledPipeline,
    ScheduledProduct,
    ScheduledRole,
    ScheduledTask,
    ScheduledTile,
    ScheduledTurn,
    ScheduleReport,
)
from tilec.artifact.signature import Coverage, Generic, Parameter, Requirement


def with_variants(kernel: Kernel, aligned: bool = True) -> Kernel:
    """The kernel with its general variant, and before it one for 16-byte aligned tensors."""
    slots = slots_of(kernel.parameters, kernel.dims)
    general = Variant(kernel.symbol, threads=128, slots=slots, registers=24)
    wide = replace(
        general,
        symbol=f"{kernel.symbol}__v16",
        preconditions=tuple(Precondition(p.name, 16, 16) for p in kernel.parameters if p.is_tensor),
    )
    told = kernel.parameters[0]
    wide = replace(wide, static_smem_bytes=256, lowering=report(told.name, told.element))
    variants = (wide, general) if aligned else (general,)
    return replace(kernel, variants=variants, layouts=(ROW,))


# A tile of 64 elements held by one warp, two a thread.
ROW = HeldLayout((64,), register=(1,), lane=(2, 4, 8, 16, 32), warp=())


def report(tensor: str, element: str) -> LoweringReport:
    """One of each, with eight bank conflicts."""
    copied = ScheduledTile(tensor, element, (64, 64), 128, 8192)
    task = ScheduledTask("linalg.matmul", "add.tile", 16, 5, "tensor cores", 1, 44, 172)
    return LoweringReport(
        accesses=(
            TileAccess("add.tile", 13, 13, "load", tensor, element, 0, 8, 1, False, 8, 8),
            TileAccess("add.tile", 13, 31, "gather", tensor, element, 0, 4, 2, True, 32, 4),
        ),
        movements=(
            Movement("add.tile", 14, 5, "conversion", (element,), 0, 0, 0, 0, 0, 2, 1, 256, 12, 4),
            Movement("add.tile", 15, 5, "reduction", (element,), 0, 0, 1, 5, 0, 0, 0, 0, 0, 0),
        ),
        products=(Product("add.tile", 16, 5, "fma", 64, 0, 0, 0),),
        buffers=(SharedBuffer("add.tile", 14, 5, 0, 256),),
        block_barriers=1,
        warp_barriers=2,
        schedule=ScheduleReport(
            roles=(ScheduledRole("loader", 4, 40), ScheduledRole("math", 8, 0)),
            channels=(ScheduledChannel("add.tile", 16, 9, "TMA", 4, 8192, (copied,)),),
            products=(ScheduledProduct("add.tile", 16, 5, "wgmma.m64n64k16.f32", 4, "k", "n"),),
            turns=(ScheduledTurn("add.tile", 15, 5, 128, 256, 200),),
            rows_together=16,
            choices=(ScheduledChoice("depth 4", "there is room for no more"),),
            pipelines=(ScheduledPipeline("add.tile", 15, 5, 300, 400, 256, 300, 96, (task,)),),
        ),
    )


def add_kernel(element: str = "f32", block: int = 1024) -> Kernel:
    """`add` of the language's first page, with a scale that scalars are tested on."""
    return with_variants(
        Kernel(
            name="add",
            symbol=f"add__{element}_{block}",
            generics=(Generic("T", "type", element), Generic("B", "const", block)),
            documentation="z = x + y",
            line=4,
            parameters=(
                Parameter("z", "tensor", element, ("N",), "part", (block,)),
                Parameter("x", "tensor", element, ("N",), "shared"),
                Parameter("y", "tensor", element, ("N",), "shared"),
                Parameter("scale", "scalar", "f32"),
            ),
            dims=("N",),
            grid=(("ceildiv", "N", block),),
            requires=(),
            unsafe=(),
            accesses=tuple(
                Access(
                    "add.tile", 13, column, what, tensor, "launch-checked", (f"N % {block} == 0",)
                )
                for column, what, tensor in (
                    (13, "load", "x"),
                    (31, "load", "y"),
                    (5, "store", "z"),
                )
            ),
            coverage=(Coverage("z", writes_all=True, reads_first=False),),
            variants=(),
        )
    )


def copy_kernel() -> Kernel:
    """Copies M × 64 matrices; M is even; an unsafe store is on record."""
    return with_variants(
        Kernel(
            name="copy",
            symbol="copy__i8",
            generics=(Generic("T", "type", "i8"),),
            documentation="",
            line=9,
            parameters=(
                Parameter("target", "tensor", "i8", ("M", 64), "mut"),
                Parameter("source", "tensor", "i8", ("M", 64), "shared"),
                Parameter("count", "scalar", "i8"),
            ),
            dims=("M",),
            grid=(("div", "M", 2), "count"),
            requires=(Requirement("M % 2 == 0", ("eq", ("rem", "M", 2), 0), 11),),
            unsafe=(UnsafeUse("histogram.tile", 14, 5, "scatter"),),
            accesses=(
                Access("add.tile", 13, 9, "load", "source", "proved", facts=("the grid",)),
                Access("add.tile", 14, 9, "scatter", "target", "in-kernel"),
            ),
            coverage=(Coverage("target", writes_all=False, reads_first=True),),
            variants=(),
        )
    )


def manifest(*kernels: Kernel) -> Manifest:
    """A manifest of these kernels, or of `add` and `copy`."""
    return Manifest(
        source=Source("kernels/add.tile", "0" * 64),
        toolchain=Toolchain(tilec="0.1.0", mlir="22.1.8", ptxas="13.0.88"),
        target="sm_90a",
        checked=False,
        kernels=kernels or (add_kernel(), copy_kernel()),
    )


def mapped_kernel(**changes: object) -> Kernel:
    """`scaled` reads rows of M × K and writes them: first by tensor maps, as `changes` say more."""
    kernel = with_variants(
        Kernel(
            name="scaled",
            symbol="scaled__bf16",
            generics=(Generic("T", "type", "bf16"),),
            documentation="",
            line=9,
            parameters=(
                Parameter("y", "tensor", "bf16", ("M", "K"), "part", (64, 64)),
                Parameter("x", "tensor", "bf16", ("M", "K"), "shared"),
                Parameter("scale", "scalar", "f32"),
            ),
            dims=("M", "K"),
            grid=(("ceildiv", "M", 64), ("ceildiv", "K", 64)),
            requires=(),
            unsafe=(),
            accesses=(),
            coverage=(Coverage("y", writes_all=True, reads_first=False),),
            variants=(),
        )
    )
    maps = (TensorMap("x", (64, 64), 128, False), TensorMap("y", (32, 64), 0, True))
    wide, general = kernel.variants
    by_maps = replace(
        general,
        symbol=f"{kernel.symbol}__tma",
        threads=384,
        tensor_maps=maps,
        slots=slots_of(kernel.parameters, kernel.dims, maps),
    )
    return replace(kernel, variants=(replace(by_maps, **changes), wide, general))
