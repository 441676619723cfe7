"""Kernels that start before the kernel before them is done: all threads wait, and none too late."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lowered import ALIGNED, ANY, program
from mlir import ir
from overlapped import small, wide
from simt import Code
from simt_memory import SimtError

from tilec.artifact.pipeline import Pipeline, PipelineLaunch
from tilec.codegen.start_early import FOLLOWS, PRECEDES, SIGNAL, WAIT
from tilec.codegen.verify_early import problems_of
from tilec.compilation import Options
from tilec.driver import front_end
from tilec.ir.dialect import context
from tilec.ir.walk import operations
from tilec.machine_code import MachineCode, Tools, compile_kernels
from tilec.ops.global_memory import KEEP_TOGETHER
from tilec.pipelines.plan import leaders
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve
from tilec.target.toolchain import libdevice, nvdisasm, ptxas
from tilec.units import units_of

VIEWS = "z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, n: usize"
SUMS = """let mut sum = Tile::<f32, 128, 64>::zeros();
    for k in 0..K.div_ceil(32) {
        sum = dot(x.load::<128, 32>([z.id(0), k]), y.load::<32, 64>([k, z.id(1)]), sum);
    }
    z.store(sum);"""
FACTORS = """z: Part<&mut Tensor<f32, M, N>, 128, 64>, x: &Tensor<bf16, M, K>,
    y: &Tensor<bf16, K, N>"""
TEXT = f"""
#[kernel]
pub fn twice<N: Dim>({VIEWS}) {{ z.store(x.load_like(&z) * 2.0); }}
#[kernel]
pub fn nothing_read<N: Dim>({VIEWS}) {{ z.store(Tile::<f32, 64>::full(n as f32)); }}
#[kernel]
pub fn one_way<N: Dim>({VIEWS}) {{
    if n == 3 {{ z.store(x.load_like(&z)); }}
}}
#[kernel]
pub fn loop_<N: Dim>({VIEWS}) {{
    let mut sum = Tile::<f32, 64>::zeros();
    for k in 0..n {{ sum = sum + x.load::<64>([k]); }}
    z.store(sum);
}}
#[kernel(grid = [N.div_ceil(64)])]
pub fn counts<N: Dim, M: Dim>(z: &Atomic<Tensor<i32, M>>, x: &Tensor<i32, N>) {{
    let [p, _, _] = program_id();
    let end = N - p * 64;
    z.fetch_add([select(iota::<usize, 64>().lt(end), x.load::<64>([p]), -1)], 1);
}}
#[kernel]
pub fn divided<N: Dim>({VIEWS}) {{ z.store(x.load::<64>([z.id(0) / n])); }}
#[hint(stages = 2)]
#[kernel]
pub fn product<M: Dim, N: Dim, K: Dim>({FACTORS}) {{ {SUMS} }}
#[hint(stages = 2, cluster = 2)]
#[kernel]
pub fn shared<M: Dim, N: Dim, K: Dim>({FACTORS}) {{ {SUMS} }}
#[hint(stages = 2, split = 2)]
#[kernel]
pub fn split<M: Dim, N: Dim, K: Dim>({FACTORS}) {{ {SUMS} }}
"""
VECTORS = ("twice", "nothing_read", "one_way", "loop_")
PRODUCTS = ("product", "shared", "split")
ALL = (*VECTORS, "counts", *PRODUCTS)


@cache
def compiled(*symbols: str, target: str = "sm_90a", **how: bool) -> MachineCode:
    """`how`: `follows`, or `checked`."""
    with program(TEXT, target=target, chosen=symbols, **how) as kernels:
        instances = list(kernels.instances.values())
        return compile_kernels(instances, resolve(target), Tools(ptxas(), libdevice()))


@cache
def entries(*symbols: str, checked: bool = False) -> tuple[tuple[str, str], ...]:
    """Each entry that starts early, and the PTX that it is in; all kernels by default."""
    found = []
    with program(TEXT, chosen=symbols or None, follows=True, checked=checked) as kernels:
        target = resolve("sm_90a")
        attribute = f'#nvvm.target<chip = "sm_90a", features = "{target.features}", O = 3>'
        for instance in kernels.instances.values():
            for unit in units_of(instance):
                made = unit.made(target, attribute)
                found += [(point.symbol, made.ptx) for point in made.points]
    return tuple(found)


def lines_of(symbol: str) -> list[str]:
    """The lines of an entry."""
    rest = dict(entries())[symbol].partition(f".entry {symbol}(")[2].splitlines()
    end = next((i for i, line in enumerate(rest) if ".entry" in line), len(rest))
    return [line.strip() for line in rest[:end]]


# ---- pipelines -----------------------------------------------------------------------------------

CHAIN = """
#[kernel]
pub fn first<M: Dim, N: Dim>(z: Part<&mut Tensor<f16, M, N>, 1, 64>, x: &Tensor<f16, M, N>) {
    z.store(x.load_like(&z) + 1.0);
}
#[kernel]
pub fn product<M: Dim, N: Dim>(z: Part<&mut Tensor<f32, M, N>, 64, 64>, x: &Tensor<f16, M, N>) {
    let t = x.load::<64, 64>([z.id(0), 0]);
    z.store(dot(t, t, Tile::<f32, 64, 64>::zeros()));
}
#[kernel]
pub fn last<M: Dim, N: Dim>(z: Part<&mut Tensor<f32, M, N>, 1, 64>, x: &Tensor<f32, M, N>) {
    z.store(x.load_like(&z) + 3.0);
}
#[kernel]
pub fn beside<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>) { z.store(z.load() + 4.0); }
#[pipeline]
pub fn chain<M: Dim, N: Dim>(z: &mut Tensor<f32, M, N>, x: &Tensor<f16, M, N>) {
    let mut a = Tensor::<f16, M, N>::uninit();
    let mut b = Tensor::<f32, M, N>::uninit();
    first(&mut a, x);
    product(&mut b, &a);
    last(z, &b);
}
"""


def test_kernels_are_marked_by_where_pipelines_launch_them() -> None:
    with context():
        front = front_end(Sources(SourceFile("chain.tile", CHAIN), {}, {}, {}), Options())
        marked = {
            ir.StringAttr(proof.function.attributes["sym_name"]).value: {
                name for name in (FOLLOWS, PRECEDES) if name in proof.function.attributes
            }
            for proof in front.proofs
        }
    assert marked == {
        "first": {PRECEDES},
        "product": {FOLLOWS},
        "last": {FOLLOWS},
        "beside": set(),
    }


def test_what_is_right_before_is_so_on_one_stream_and_in_the_order_of_the_plan() -> None:
    names = ("a", "b", "product", "c")
    launches = tuple(
        PipelineLaunch(name, (name,), (), after, "p.tile", 1)
        for name, after in zip(names, ((), (), (0,), (2,)), strict=True)
    )
    pipeline = Pipeline("p", "p", (), "", 1, (), (), (), (), launches, ())
    assert leaders([pipeline], {"product"}) == {"a", "b"}
    assert leaders([pipeline], {"a"}) == leaders([pipeline], set()) == set()


# ---- threads -------------------------------------------------------------------------------------


def expect_right(symbol: str, threads: Any, vector_bytes: int, **how: Any) -> None:
    if symbol in PRODUCTS:
        x, y = small(200, 40), small(40, 72)
        z = np.zeros((200, 72), np.float32)
        threads.run(symbol, {"z": z, "x": x, "y": y}, vector_bytes, **how)
        np.testing.assert_array_equal(wide(z), wide(x) @ wide(y))
        return
    if symbol == "counts":
        x, z = np.arange(200, dtype=np.int32) % 7, np.zeros(7, np.int32)
        threads.run(symbol, {"z": z, "x": x}, vector_bytes, **how)
        np.testing.assert_array_equal(z, np.bincount(x, minlength=7))
        return
    x, z = np.arange(200, dtype=np.float32), np.zeros(200, np.float32)
    threads.run(symbol, {"z": z, "x": x, "n": 3}, vector_bytes, **how)
    turns = np.tile(x[:192].reshape(3, 64).sum(0), 4)[:200]
    wanted = {"twice": x * 2, "nothing_read": 3, "one_way": x, "loop_": turns}[symbol]
    np.testing.assert_array_equal(z, wanted)


@pytest.mark.parametrize("symbol", ALL)
def test_no_thread_touches_memory_before_it_has_waited_and_all_have(symbol: str) -> None:
    with program(TEXT, chosen=[symbol], follows=True) as threads:
        for vector_bytes in (ALIGNED, ANY):
            assert threads.lowered(symbol, vector_bytes)[0].starts_early
            expect_right(symbol, threads, vector_bytes, **how(symbol))


def test_a_branch_that_is_not_taken_and_a_loop_without_turns_wait() -> None:
    with program(TEXT, chosen=["one_way", "loop_"], follows=True) as threads:
        for symbol in ("one_way", "loop_"):
            z = np.zeros(200, np.float32)
            threads.run(symbol, {"z": z, "x": z.copy(), "n": 0})


@pytest.mark.parametrize("symbol", ["twice", "loop_", "product"])
def test_threads_that_do_not_wait_are_found(symbol: str) -> None:
    with program(TEXT, chosen=[symbol], follows=True) as threads:
        point, _ = threads.lowered(symbol, ALIGNED)
        function = list(threads.body.operations)[-1]
        waits = [
            op
            for op in operations(function)
            if op.operation.name == "llvm.inline_asm"
            and ir.StringAttr(op.attributes["asm_string"]).value == WAIT
        ]
        assert waits
        for op in waits:
            op.attributes["asm_string"] = ir.StringAttr.get(KEEP_TOGETHER)
            threads.take(symbol, ALIGNED, point, Code(function))
            with pytest.raises(SimtError, match="without a wait"):
                expect_right(symbol, threads, ALIGNED, **how(symbol))
            op.attributes["asm_string"] = ir.StringAttr.get(WAIT)


def how(symbol: str) -> dict[str, int]:
    """Grids of vectors are folded, so that blocks without a program are there, too."""
    return {} if symbol in PRODUCTS else {"grid_x": 3}


# ---- machine code --------------------------------------------------------------------------------


def test_the_manifest_says_which_variants_start_early() -> None:
    early, other = (compiled("twice", follows=follows) for follows in (True, False))
    assert all(v.starts_early for k in early.kernels for v in k.variants)
    assert not any(v.starts_early for k in other.kernels for v in k.variants)
    assert "griddepcontrol" not in other.ptx


def test_targets_before_hopper_have_no_early_starts() -> None:
    made = compiled("twice", target="sm_80", follows=True)
    assert not any(v.starts_early for k in made.kernels for v in k.variants)
    assert "griddepcontrol" not in made.ptx
    assert "ld.global.nc" in made.ptx


def test_nothing_that_an_earlier_grid_may_write_is_read_as_constant() -> None:
    assert "ld.global.nc" in compiled("twice", follows=False).ptx
    assert not any(".nc" in ptx for _, ptx in entries())


def test_what_is_before_a_product_signals_where_its_blocks_are_few() -> None:
    with program(TEXT, chosen=["twice"]) as kernels:
        [instance] = kernels.instances.values()
        instance.function.attributes[PRECEDES] = ir.UnitAttr.get()
        made = compile_kernels([instance], resolve("sm_90a"), Tools(ptxas(), libdevice()))
        for blocks in (1, 5):
            expect_right("twice", kernels, ALIGNED, grid_x=blocks)
    assert made.ptx.count(SIGNAL) == made.ptx.count(".entry") == 2
    assert re.search(r"setp\.(lt|gt|le)\.u64 \s*%p\d+, %rd\d+, 13[23]", made.ptx)
    assert WAIT not in made.ptx and "ld.global.nc" in made.ptx
    assert not any(v.starts_early for k in made.kernels for v in k.variants)


def test_threads_know_their_program_before_they_wait() -> None:
    lines = lines_of("twice__v16")
    wait, first = lines.index(WAIT), next(i for i, x in enumerate(lines) if "ld.global" in x)
    assert any("%ctaid" in line for line in lines[:wait])
    assert not any("%ctaid" in line for line in lines[wait:first])


def test_barriers_are_made_before_the_wait() -> None:
    lines = lines_of("shared__v16")
    wait = lines.index(WAIT)
    for before in ("mbarrier.init", "barrier.cluster.arrive", "prefetch.tensormap"):
        assert any(before in line for line in lines[:wait]), before
        assert not any(before in line for line in lines[wait:]), before


def test_the_assembler_moves_no_access_before_a_wait(tmp_path: Path) -> None:
    file = tmp_path / "kernel.cubin"
    file.write_bytes(compiled("twice", follows=True).image)
    done = subprocess.run([nvdisasm(), "-c", file], capture_output=True, text=True, check=True)
    for code in re.split(r"\n\.text\.\w+:\n", done.stdout)[1:]:
        found = re.findall(r"\b(ACQBULK|LDG|STG)\b", code)
        assert found[:2] == ["ACQBULK", "LDG"]


def test_checked_builds_wait_before_threads_end() -> None:
    for symbol, ptx in entries("divided", checked=True):
        assert "exit;" in ptx and "__assertfail" in ptx
        assert not list(problems_of(ptx, symbol))


# ---- the verifier --------------------------------------------------------------------------------


def test_what_is_made_has_no_problem() -> None:
    for symbol, ptx in entries():
        assert not list(problems_of(ptx, symbol)), symbol


def test_each_wait_is_missed() -> None:
    for symbol, mutated in mutations(lambda lines, place: [*lines[:place], *lines[place + 1 :]]):
        assert list(problems_of(mutated, symbol)), symbol


def test_a_wait_that_some_threads_skip_is_refused() -> None:
    def guarded(lines: list[str], place: int) -> list[str]:
        return [*lines[:place], f"@%p1 {WAIT}", *lines[place + 1 :]]

    for symbol, mutated in mutations(guarded):
        assert list(problems_of(mutated, symbol)), symbol


def test_a_wait_behind_the_first_access_is_refused() -> None:
    access = re.compile(r"(ld|st|red|atom)\.global|cp\.async\.bulk\.tensor|\bret;")

    def later(lines: list[str], place: int) -> list[str]:
        first = next(i for i in range(place, len(lines)) if access.search(lines[i]))
        return [*lines[:place], *lines[place + 1 : first + 1], WAIT, *lines[first + 1 :]]

    for symbol, mutated in mutations(later):
        assert list(problems_of(mutated, symbol)), symbol


def mutations(change: Any) -> Iterator[tuple[str, str]]:
    """Each entry with one of its waits changed."""
    for symbol, ptx in entries():
        before, entry, rest = ptx.partition(f".entry {symbol}(")
        lines = rest.splitlines()
        places = [i for i, line in enumerate(lines_of(symbol)) if line == WAIT]
        assert places
        for place in places:
            yield symbol, before + entry + "\n".join(change(lines, place))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("griddepcontrol.wait; ld.global.b32 %r1, [%rd1]; ret;", None),
        ("ld.param.b64 %rd1, [k_param_0]; griddepcontrol.wait; ret;", None),
        ("st.shared.b32 [%r1], %r2; griddepcontrol.wait; ret;", None),
        ("prefetch.tensormap [%rd1]; griddepcontrol.wait; ret;", None),
        ("ld.global.b32 %r1, [%rd1]; griddepcontrol.wait; ret;", "an access"),
        ("ld.b32 %r1, [%rd1]; griddepcontrol.wait; ret;", "an access"),
        ("red.relaxed.gpu.global.add.u32 [%rd1], 1; griddepcontrol.wait; ret;", "an access"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier [%r1], [%rd1, {%r2, %r3}], "
            "[%r4]; griddepcontrol.wait; ret;",
            "an access",
        ),
        ("call.uni other, (); griddepcontrol.wait; ret;", "a call"),
        ("ret;", "a thread ends"),
        ("@%p1 exit; griddepcontrol.wait; ret;", "a thread ends"),
        ("@%p1 bra $L; griddepcontrol.wait; $L: ret;", "a thread ends"),
        ("@%p1 bra $L; griddepcontrol.wait; ret; $L: griddepcontrol.wait; ret;", None),
        ("bra.uni $L; st.global.b32 [%rd1], %r1; $L: griddepcontrol.wait; ret;", None),
        ("$L: @%p1 bra $L; griddepcontrol.wait; ret;", None),
        ("$L: griddepcontrol.wait; @%p1 bra $L; ret;", None),
        ("$T: .branchtargets $A, $B; brx.idx %r1, $T; $A: griddepcontrol.wait; $B: ret;", "ends"),
        ("@%p1 bra $L; call.uni __assertfail, (p); exit; $L: griddepcontrol.wait; ret;", None),
        ("@%p1 bra $L; trap; $L: griddepcontrol.wait; ret;", None),
        ("{ .reg .pred p; @p exit; } griddepcontrol.wait; ret;", "a thread ends"),
        ("mov.b32 %r1, {%h1, %h2}; // ret;\n griddepcontrol.wait; ret;", None),
        ("mov.b32 %r1, 0;", "the end"),
    ],
)  # fmt: skip
def test_what_paths_without_a_wait_may_do(body: str, problem: str | None) -> None:
    found = list(
        problems_of(f".visible .entry k(\n.param .b64 k_param_0\n)\n{{\n{body}\n}}\n", "k")
    )
    assert bool(found) == (problem is not None)
    assert problem is None or any(problem in one for one in found), found
