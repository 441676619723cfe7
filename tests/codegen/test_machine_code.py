"""PTX and SASS of small kernels: what engineers reason about, by the lines that matter."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from lowered import program

from tests.kernels.twins import some_tiles
from tilec.artifact.manifest import Kernel
from tilec.codegen.cubin import BrokenScheduleError, assemble
from tilec.codegen.spills import FEW_BYTES
from tilec.machine_code import MachineCode, Tools, compile_kernels
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.plan import Planner
from tilec.target.resolve import resolve
from tilec.target.toolchain import libdevice, nvdisasm, ptxas
from tilec.types import ELEMENTS

LIBRARY = Path(__file__).parent.parent.parent / "kernels"


@cache
def compiled(text: str, target: str = "sm_90a") -> MachineCode:
    with program(text) as kernels:
        instances = list(kernels.instances.values())
        return compile_kernels(instances, resolve(target), Tools(ptxas(), libdevice()))


def ptx_of(code: MachineCode, symbol: str) -> list[str]:
    """The lines of one entry."""
    _, _, rest = code.ptx.partition(f".entry {symbol}(")
    assert rest, symbol
    return rest.partition("\n}")[0].splitlines()


def accesses(lines: list[str]) -> list[str]:
    """Every access to global memory, without its operands: `@%p1 ld.global.nc.v4.b32`."""
    found = []
    for line in lines:
        if match := re.search(r"(@%p\d+\s+)?((ld|st)\.global[\w.]*)", line):
            found.append(("@ " if match[1] else "") + match[2])
    return found


@cache
def sass_of(text: str, target: str, folder: Path) -> dict[str, str]:
    """The disassembly of each entry."""
    file = folder / "kernel.cubin"
    file.write_bytes(compiled(text, target).image)
    done = subprocess.run([nvdisasm(), "-c", file], capture_output=True, text=True, check=True)
    parts = re.split(r"\n\.text\.(\w+):\n", done.stdout)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# ---- how memory is accessed ----------------------------------------------------------------------

# What is in memory; tf32 never is, usize has 64 bits.
STORED = [name for name in ELEMENTS if name != "tf32"]
COPIES = "\n".join(
    f"""#[kernel]
    pub fn copy_{name}<N: Dim>(z: Part<&mut Tensor<{name}, N>, 2048>, x: &Tensor<{name}, N>) {{
        z.store(x.load_like(&z));
    }}"""
    for name in STORED
)


def _bytes(access: str) -> int:
    count = re.search(r"\.v(\d)", access)
    bits = re.search(r"\.[bfsu](\d+)$", access)
    assert bits, access
    return int(count[1] if count else 1) * int(bits[1]) // 8


@pytest.mark.parametrize("element", STORED)
def test_aligned_tensors_move_in_pieces_of_sixteen_bytes(element: str) -> None:
    lines = ptx_of(compiled(COPIES), f"copy_{element}__v16")
    wide = [a for a in accesses(lines) if _bytes(a) == 16]
    # Every element once; what is narrower is for a group that the tensor's end cuts.
    size = 1 if element == "bool" else max(1, ELEMENTS[element].bits // 8)
    threads = next(v.threads for v in kernel(COPIES, f"copy_{element}").variants)
    loads, stores = (sum(kind in a for a in wide) for kind in ("ld.", "st."))
    assert loads == 2048 * size // 16 // threads
    # Where a group is cut and where none is, stores may stand apart.
    assert stores in (loads, 2 * loads)
    assert all(a.startswith("@") for a in accesses(lines))


@pytest.mark.parametrize("element", STORED)
def test_others_move_element_by_element(element: str) -> None:
    found = accesses(ptx_of(compiled(COPIES), f"copy_{element}"))
    size = max(1, ELEMENTS[element].bits // 8)
    assert {_bytes(access) for access in found} == {size}


def kernel(text: str, name: str) -> Kernel:
    [found] = [k for k in compiled(text).kernels if k.name == name]
    return found


def test_what_the_wide_variant_asks_for() -> None:
    wide, narrow = kernel(COPIES, "copy_f16").variants
    assert [(p.param, p.base_alignment_bytes) for p in wide.preconditions] == [
        ("x", 16), ("z", 16),
    ]  # fmt: skip
    assert not narrow.preconditions


WHOLE = """
#[kernel]
pub fn proved<N: Dim>(z: Part<&mut Tensor<f32, N>, 1024>, x: &Tensor<f32, N>) {
    requires!(N % 1024 == 0);
    z.store(x.load_like(&z) + x.load::<1024>([z.id(0)]) * 2.0 + z.load());
}

#[kernel]
pub fn fixed<M: Dim>(z: Part<&mut Tensor<f32, M, 64>, 1, 64>, w: &Tensor<f32, 64>) {
    z.store(w.load::<64>([0]).expand::<0>());
}

#[kernel]
pub fn partial<N: Dim, M: Dim>(z: Part<&mut Tensor<f32, N>, 1024>, x: &Tensor<f32, M>) {
    requires!(N % 1024 == 0);
    z.store(x.load::<1024>([z.id(0)]));
}
"""


def test_what_is_proved_inside_has_no_mask() -> None:
    for symbol in ("proved__v16", "proved"):
        found = accesses(ptx_of(compiled(WHOLE), symbol))
        assert found and not any(access.startswith("@") for access in found)
    wide = accesses(ptx_of(compiled(WHOLE), "proved__v16"))
    assert {_bytes(access) for access in wide} == {16}


def test_a_static_extent_needs_no_precondition() -> None:
    found = accesses(ptx_of(compiled(WHOLE), "fixed"))
    assert {access.startswith("@ ") for access in found if "ld." in access} == {False}


def test_what_is_not_proved_has_one() -> None:
    found = accesses(ptx_of(compiled(WHOLE), "partial__v16"))
    assert {access.startswith("@ ") for access in found if "ld." in access} == {True}
    assert {access.startswith("@ ") for access in found if "st." in access} == {False}


def test_only_what_nobody_writes_goes_through_the_read_only_cache() -> None:
    found = accesses(ptx_of(compiled(WHOLE), "proved"))
    loads = [access for access in found if access.startswith("ld")]
    plain = [access for access in loads if ".nc" not in access]
    # The two loads of `x` are one.
    assert len(plain) * 2 == len(loads)


# ---- numbers -------------------------------------------------------------------------------------

SEPARATE = """
#[kernel]
pub fn separate<N: Dim>(z: Part<&mut Tensor<f32, N>, 256>, x: &Tensor<f32, N>) {
    let t = x.load_like(&z);
    z.store(t * t + t);
}
"""


def test_nothing_is_contracted(tmp_path: Path) -> None:
    sass = sass_of(SEPARATE, "sm_90a", tmp_path)["separate"]
    assert "FMUL" in sass and "FADD" in sass and "FFMA" not in sass


# ---- lines ---------------------------------------------------------------------------------------


def test_lines_are_those_of_the_source_and_optimisation_stays_on() -> None:
    code = compiled(SEPARATE)
    [target] = re.findall(r"^\.target (.*)$", code.ptx, re.MULTILINE)
    assert target.strip() == "sm_90a"
    assert 'case.tile"' in code.ptx
    lines = ptx_of(code, "separate")
    line, places = 0, {}
    for text in lines:
        if match := re.match(r"\s*\.loc\s+\d+ (\d+)", text):
            line = int(match[1])
        for name in ("ld.global", "st.global", "mul.rn", "add.rn"):
            if name in text:
                places.setdefault(name, set()).add(line)
    assert places == {"ld.global": {4}, "mul.rn": {5}, "add.rn": {5}, "st.global": {5}}


def test_sass_knows_the_lines(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cubin"
    file.write_bytes(compiled(SEPARATE).image)
    done = subprocess.run(
        [nvdisasm(), "-c", "-g", file], capture_output=True, text=True, check=True
    )
    line, found = 0, set()
    for text in done.stdout.splitlines():
        if match := re.search(r"line (\d+)", text):
            line = int(match[1])
        if "LDG" in text:
            found.add(line)
    assert found == {4}


# ---- targets and resources -----------------------------------------------------------------------


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_90a"])
def test_every_target_is_built(target: str, tmp_path: Path) -> None:
    text = (LIBRARY / "row_sum.tile").read_text(encoding="utf-8")
    sass = sass_of(text, target, tmp_path)
    assert "LDG.E.128" in sass["row_sum__f32_1_8192__v16"]
    assert f".target {target}\n" in compiled(text, target).ptx.replace(" \n", "\n")


# Sums of 128 by 192 or 256 leave few registers to what comes after products, which is when these
# spill, or to elements that are loaded one by one (docs/notes.md, Missing).
KNOWN_BYTES = {
    "matmul_bias_gelu__bf16_128_192_64__tma": 616,
    "matmul_bias_gelu__bf16_128_256_64": 120,
    "matmul_f8__bf16_128_192_128": 56,
    "matmul_grouped__bf16_128_128_64__tma": 84,
    "matmul_grouped__bf16_128_256_64__tma": 84,
    "matmul_grouped__bf16_128_256_64": 40,
    "matmul_residual__bf16_128_128_64__ping_pong__tma": 328,
    "matmul_residual__bf16_128_160_64__tma": 84,
    "matmul_residual__bf16_128_192_64__v16": 36,
    "matmul_residual__bf16_128_192_64__tma": 1306,
    "matmul_residual__bf16_128_256_64": 704,
    "matmul_tf32__256_128_32": 660,
    "matmul_tf32_nt__128_192_32__tma": 252,
    "matmul_tf32_nt__128_256_32": 112,
    "matmul_w4a16__16_64_64": 660,
    "matmul_w4a16__16_64_64__split2": 660,
    "matmul_w4a16__128_128_64__tma": 44,
    "matmul_w4a16__256_128_64": 948,
    "matmul_w8a16__bf16_16_64_128": 1418,
    "matmul_w8a16__bf16_16_64_128__split2": 1418,
    "softmax_long__f16_32768_8__warps32": 980,
    "softmax_long__bf16_32768_8__warps32": 960,
}


@pytest.mark.parametrize("file", sorted(LIBRARY.glob("*.tile")), ids=lambda file: file.stem)
def test_no_kernel_of_the_library_spills(file: Path) -> None:
    for one in compiled(some_tiles(file.read_text(encoding="utf-8"), 2)).kernels:
        for variant in one.variants:
            spilled = variant.spill_store_bytes + variant.spill_load_bytes
            assert spilled <= KNOWN_BYTES.get(variant.symbol, FEW_BYTES), variant.symbol
            assert 0 < variant.registers <= 255


ODD = """
#[kernel]
#[instance(B = 96)]
#[instance(B = 144)]
#[instance(B = 192)]
pub fn odd<M: Dim, const B: usize>(
    z: Part<&mut Tensor<bf16, M, B>, 16, B>,
    x: &Tensor<bf16, M, B>,
) {
    let t = x.load_like(&z).to::<f32>();
    z.store((t - t.sum::<1>()).to::<bf16>());
}
"""


def test_odd_multiples_of_sixteen_are_neither_padded_nor_loaded_twice() -> None:
    for size in (96, 144, 192):
        [made] = [k for k in compiled(ODD).kernels if k.symbol == f"odd__{size}"]
        assert made.variants[0].stack_bytes == 0
        found = accesses(ptx_of(compiled(ODD), f"odd__{size}__v16"))
        moved = sum(_bytes(a) for a in found if "ld" in a) * made.variants[0].threads
        assert moved == 16 * size * 2


PLAIN = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry taken(.param .u64 p) .maxntid 128 {
  .shared .align 16 .b8 buffer[4096];
  .local .align 4 .b8 frame[64];
  .reg .b64 %a; .reg .b32 %r;
  ld.param.u64 %a, [p];
  ld.global.u32 %r, [%a];
  mov.u64 %a, buffer;
  st.shared.u32 [buffer+16], %r;
  st.local.u32 [frame+4], %r;
  ret;
}
"""


def test_what_ptxas_says_of_resources() -> None:
    taken = assemble(PLAIN, "sm_80", ptxas()).resources["taken"]
    assert taken.smem == 4096 and taken.registers > 0 and taken.spill_loads == 0


def test_what_ptxas_refuses_is_a_fault_of_ours() -> None:
    with pytest.raises(Exception, match="ptxas failed"):
        assemble(PLAIN.replace("ret;", "nonsense;"), "sm_80", ptxas())


IGNORED = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry taken(.param .u64 p) {
  setmaxnreg.dec.sync.aligned.u32 24;
  ret;
}
"""


def test_registers_that_are_ignored_fail_a_build() -> None:
    # Nobody says how many threads there are, and so how many registers they begin with.
    with pytest.raises(BrokenScheduleError, match=r"C75\d\d.*setmaxnreg.*ignored"):
        assemble(IGNORED, "sm_90a", ptxas())


def _products_one_by_one() -> str:
    """PTX in which sums are read while a product adds to them."""
    sums = [f"%f{i}" for i in range(4)]
    product = (
        f"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{{', '.join(sums)}}}, "
        "%d, %d, 1, 1, 1, 0, 0;"
    )
    return f"""
.version 8.3
.target sm_90a
.address_size 64
.visible .entry taken(.param .u64 p) .maxntid 128 {{
  .reg .b64 %a, %d; .reg .f32 %f<4>;
  .loc 1 3 7
  ld.param.u64 %a, [p];
  mov.u64 %d, 0;
  {" ".join(f"mov.f32 {one}, 0f00000000;" for one in sums)}
  wgmma.fence.sync.aligned;
  .loc 1 5 12
  {product}
  .loc 1 6 2
  add.f32 %f0, %f0, %f1;
  .loc 1 7 9
  {product}
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.f32 [%a], %f0;
  ret;
}}
.file 1 "sums.tile"
"""


def test_products_that_run_one_by_one_fail_a_build_and_are_named() -> None:
    with pytest.raises(BrokenScheduleError, match=r"made of sums.tile:[567]:\d.*C75\d\d") as found:
        assemble(_products_one_by_one(), "sm_90a", ptxas())
    assert found.value.entry == "taken"


# ---- results of kernels with roles ---------------------------------------------------------------

PRODUCT = """
#[kernel]
pub fn product<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<bf16, M, N>, 128, 256>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, N, K>,
) {
    let mut sum = Tile::<f32, 128, 256>::zeros();
    for k in 0..K.div_ceil(64) {
        sum = dot(x.load::<128, 64>([z.id(0), k]), y.t().load::<64, 256>([k, z.id(1)]), sum);
    }
    z.store(sum.to::<bf16>());
}
"""


class Card:
    """132 multiprocessors."""

    def sm_count(self, device: int | None) -> int:
        return 132

    def card(self, device: int | None) -> str:
        return "a card"


def test_an_unaligned_result_leaves_the_factors_to_the_hardware() -> None:
    code = compiled(PRODUCT)
    planner = Planner(code.kernels, Card())

    def chosen(m: int, n: int, k: int, off: int = 0) -> str:
        shapes = ((m, n), (m, k), (n, k))
        return planner.plan([
            Array(2**40 + 2**32 * i + off * (i == 0), "bf16", s, contiguous_strides(s), 0)
            for i, s in enumerate(shapes)
        ]).variant.symbol  # fmt: skip

    assert chosen(4096, 4096, 4096) == "product__v16"
    assert chosen(4097, 4095, 4104) == chosen(4096, 4096, 4096, off=2) == "product__tma"
    assert chosen(4096, 4096, 4095) == "product"
    entries = code.ptx.split(".visible .entry")[1:]
    copies = [one.count("cp.async.bulk.tensor.2d.global") for one in entries]
    assert copies == [4, 0, 0]  # of 64 columns each


def test_results_leave_room_for_rings_and_registers() -> None:
    aligned, mapped, _ = compiled(PRODUCT).kernels[0].variants
    for variant in (aligned, mapped):
        assert variant.spill_store_bytes == variant.spill_load_bytes == 0
        [channel] = variant.lowering.schedule.channels
        assert channel.depth == 4
    assert [one.param for one in aligned.tensor_maps if one.writes] == ["z"]
    assert mapped.preconditions == () and len(mapped.tensor_maps) == 2
