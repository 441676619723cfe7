"""Kernels with tensor maps, in clusters and of persistent blocks, by hand: for `test_mapped.py`.

    python -m tests.gpu.mapped_kernels build/gpu-tests

writes `mapped.sm_90a.cubin`. `copy1` to `copy5` copy bf16 tensors of that many axes: through a
swizzled box in shared memory where there are maps, else element by element. `report` writes for
each block how many there are, how many its cluster has, and its number in it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tilec.artifact.abi import slots_of
from tilec.artifact.embed import embed
from tilec.artifact.manifest import Kernel, Manifest, Source, TensorMap, Toolchain, Variant, to_json
from tilec.artifact.signature import Coverage, Parameter
from tilec.target.toolchain import ptxas

TARGET = "sm_90a"
ROWS, COLUMNS = 8, 64  # of a box; with the 128-byte swizzle, which is undone on the way back


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"mapped.{TARGET}.cubin").write_bytes(cubin())


def cubin() -> bytes:
    ranks = range(1, 6)
    entries = [text for rank in ranks for text in (_by_maps(rank), _by_elements(rank))]
    source = "\n".join([f".version 8.3\n.target {TARGET}\n.address_size 64", *entries, _REPORT])
    with tempfile.TemporaryDirectory() as folder:
        ptx, code = Path(folder) / "mapped.ptx", Path(folder) / "mapped.cubin"
        ptx.write_text(source)
        subprocess.run([ptxas(), f"-arch={TARGET}", ptx, "-o", code], check=True)
        return embed(code.read_bytes(), to_json(manifest()).encode())


def manifest() -> Manifest:
    return Manifest(
        Source("mapped.tile", "0" * 64),
        Toolchain("by hand", "none", "any"),
        TARGET,
        checked=False,
        kernels=(*(_copy(rank) for rank in range(1, 6)), _report()),
    )


def box_of(rank: int) -> tuple[int, ...]:
    return (1, 1, 1, ROWS, COLUMNS)[5 - rank :]


def _copy(rank: int) -> Kernel:
    dims = tuple(f"D{axis}" for axis in range(rank))
    parameters = (
        Parameter("y", "tensor", "bf16", dims, "mut"),
        Parameter("x", "tensor", "bf16", dims, "shared"),
    )
    maps = (
        TensorMap("x", box_of(rank), 128, writes=False),
        TensorMap("y", box_of(rank), 128, writes=True),
    )
    by_maps = Variant(
        f"copy{rank}__tma",
        threads=32,
        slots=slots_of(parameters, dims, maps),
        tensor_maps=maps,
        cluster=(2, 1, 1),
        persistent_blocks_per_sm=1,
    )
    by_elements = Variant(f"copy{rank}", threads=128, slots=slots_of(parameters, dims))
    grid = tuple(("ceildiv", dim, n) for dim, n in zip(dims, box_of(rank), strict=True))
    return _kernel(f"copy{rank}", parameters, dims, grid, (by_maps, by_elements))


def _report() -> Kernel:
    parameters = (Parameter("y", "tensor", "i32", ("N", 3), "mut"),)
    slots = slots_of(parameters, ("N",))
    variant = Variant("report", threads=32, slots=slots, cluster=(4, 1, 1))
    return _kernel("report", parameters, ("N",), ("N",), (variant,))


def _kernel(name, parameters, dims, grid, variants) -> Kernel:  # type: ignore[no-untyped-def]
    return Kernel(
        name,
        name,
        generics=(),
        documentation="",
        line=1,
        parameters=parameters,
        dims=dims,
        grid=grid,
        requires=(),
        unsafe=(),
        accesses=(),
        coverage=(Coverage("y", writes_all=True, reads_first=False),),
        variants=variants,
    )


def _parameters(rank: int) -> str:
    names = [n for t in "yx" for n in (t, *(f"{t}s{axis}" for axis in range(rank - 1)))]
    names += [f"d{axis}" for axis in range(rank)]
    return ", ".join(f".param .u64 {name}" for name in names)


def _places(rank: int, box: tuple[int, ...]) -> str:
    """`%place` to `%c0`, `%c1`, …: where the box of this number begins along each axis."""
    lines = ["mov.s64 %rest, %place;"]
    for axis in reversed(range(rank)):
        lines += [
            f"rem.s64 %c{axis}, %rest, %n{axis};",
            f"div.s64 %rest, %rest, %n{axis};",
            f"mul.lo.s64 %c{axis}, %c{axis}, {box[axis]};",
        ]
    return "\n".join(lines)


def _count(rank: int, box: tuple[int, ...]) -> str:
    """`%n0`, …: boxes along each axis; `%count`: their product."""
    lines = ["mov.s64 %count, 1;"]
    for axis in range(rank):
        lines += [
            f"ld.param.u64 %n{axis}, [d{axis}];",
            f"add.s64 %n{axis}, %n{axis}, {box[axis] - 1};",
            f"div.s64 %n{axis}, %n{axis}, {box[axis]};",
            f"mul.lo.s64 %count, %count, %n{axis};",
        ]
    return "\n".join(lines)


def _by_maps(rank: int) -> str:
    box = box_of(rank)
    size = 2 * COLUMNS * (ROWS if rank > 1 else 1)
    narrow = "\n".join(f"cvt.u32.u64 %i{axis}, %c{axis};" for axis in range(rank))
    at = ", ".join(f"%i{axis}" for axis in reversed(range(rank)))
    return f"""
.visible .entry copy{rank}__tma({_parameters(rank)},
    .param .align 64 .b8 of_x[128], .param .align 64 .b8 of_y[128]) .maxntid 32
{{
  .shared .align 1024 .b8 box[{size}];
  .shared .align 8 .b64 full;
  .reg .pred %p; .reg .b32 %t, %box, %full, %phase, %i<5>;
  .reg .b64 %from, %to, %place, %step, %count, %rest, %n<5>, %c<5>;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p ret;
  mov.b64 %from, of_x; cvta.param.u64 %from, %from;
  mov.b64 %to, of_y; cvta.param.u64 %to, %to;
  mov.u32 %box, box;
  mov.u32 %full, full;
  mov.u32 %phase, 0;
  mbarrier.init.shared::cta.b64 [%full], 1;
  fence.mbarrier_init.release.cluster;
  mov.u32 %t, %ctaid.x; cvt.u64.u32 %place, %t;
  mov.u32 %t, %nctaid.x; cvt.u64.u32 %step, %t;
  {_count(rank, box)}
next:
  setp.ge.s64 %p, %place, %count;
  @%p ret;
  {_places(rank, box)}
  {narrow}
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {size};
  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%box], [%from, {{{at}}}], [%full];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;
  @!%p bra wait;
  xor.b32 %phase, %phase, 1;
  cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%to, {{{at}}}], [%box];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  add.s64 %place, %place, %step;
  bra next;
}}"""


def _by_elements(rank: int) -> str:
    one = (1,) * rank
    offsets = []
    for tensor in "yx":
        offsets.append(f"mov.s64 %{tensor}, %c{rank - 1};")
        for axis in range(rank - 1):
            offsets += [
                f"ld.param.u64 %s, [{tensor}s{axis}];",
                f"mad.lo.s64 %{tensor}, %c{axis}, %s, %{tensor};",
            ]
        offsets += [
            f"ld.param.u64 %s, [{tensor}];",
            f"shl.b64 %{tensor}, %{tensor}, 1;",
            f"add.s64 %{tensor}, %{tensor}, %s;",
        ]
    line = "\n  "
    return f"""
.visible .entry copy{rank}({_parameters(rank)}) .maxntid 128
{{
  .reg .pred %p; .reg .b32 %t, %g, %u; .reg .b16 %v;
  .reg .b64 %x, %y, %s, %place, %step, %count, %rest, %n<5>, %c<5>;
  mov.u32 %t, %ctaid.z; mov.u32 %g, %nctaid.y; mov.u32 %u, %ctaid.y;
  mad.lo.u32 %t, %t, %g, %u;
  mov.u32 %g, %nctaid.x; mov.u32 %u, %ctaid.x;
  mad.lo.u32 %t, %t, %g, %u;
  mov.u32 %u, %tid.x;
  mad.lo.u32 %t, %t, 128, %u;
  cvt.u64.u32 %place, %t;
  mov.u32 %u, %nctaid.y; mul.lo.u32 %g, %g, %u;
  mov.u32 %u, %nctaid.z; mul.lo.u32 %g, %g, %u;
  mul.lo.u32 %g, %g, 128; cvt.u64.u32 %step, %g;
  {_count(rank, one)}
next:
  setp.ge.s64 %p, %place, %count;
  @%p ret;
  {_places(rank, one)}
  {line.join(offsets)}
  ld.global.b16 %v, [%x];
  st.global.b16 [%y], %v;
  add.s64 %place, %place, %step;
  bra next;
}}"""


_REPORT = """
.visible .entry report(.param .u64 y, .param .u64 s, .param .u64 n) .maxntid 32
{
  .reg .pred %p; .reg .b32 %t; .reg .b64 %y, %s, %n, %place;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p ret;
  mov.u32 %t, %ctaid.x; cvt.u64.u32 %place, %t;
  ld.param.u64 %n, [n];
  setp.ge.s64 %p, %place, %n;
  @%p ret;
  ld.param.u64 %y, [y];
  ld.param.u64 %s, [s];
  mul.lo.s64 %s, %s, %place;
  shl.b64 %s, %s, 2;
  add.s64 %y, %y, %s;
  mov.u32 %t, %nctaid.x; st.global.b32 [%y], %t;
  mov.u32 %t, %cluster_nctaid.x; st.global.b32 [%y + 4], %t;
  mov.u32 %t, %cluster_ctaid.x; st.global.b32 [%y + 8], %t;
}"""


if __name__ == "__main__":
    main()
