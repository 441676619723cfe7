"""Tuning without a GPU: members computed by NumPy, and a clock that they set forward themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilec.runtime as rt
from tests.bench.fake_gpu import FakeGpu
from tests.unit.family_samples import of_family, product
from tests.unit.manifest_samples import manifest
from tests.unit.test_embed import cubin
from tilec.artifact.signature import Parameter, Requirement
from tilec.artifact.tuning_file import TuningFile, from_text
from tilec.bench.sampling import Settings
from tilec.diagnostics.setup_error import SetupError
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.plan import Planner
from tilec.tune.arguments import Arguments, Values
from tilec.tune.session import Listener, Request, cubin_of, families_named, output_of, run
from tilec.tune.shapes import extents_of, listed
from tilec.tune.trial import DisagreementError, NoMemberError, tried

NOTHING = Values({}, {})
DIMS = ("M", "N", "K")
QUICK = Settings(rounds=3, sample_us=10.0)


def f32(bm, bn, **changes):
    return product(bm, bn, 100, "f32", **changes)


SLOW, FAST = f32(128, 256), f32(64, 64)


class Machine:
    def sm_count(self, device):
        return 132

    def card(self, device):
        return "A Card"


class FakeModule:
    """Members that take the time that they are told to, and multiply as they are told to."""

    def __init__(self, gpu, told, times, multiply=None):
        self.manifest = told
        self.cubin = cubin()
        self.gpu = gpu
        self.launches = []
        self._times = times
        self._multiply = multiply or {}

    def instance(self, symbol):
        return self[symbol]

    def __getitem__(self, name):
        kernels = [
            k for k in self.manifest.kernels if name == k.symbol or name in self._families(k)
        ]
        planner = Planner(kernels, Machine(), self.manifest.families)
        return _Launcher(self, kernels, planner)

    def _families(self, kernel):
        return [f.name for f in self.manifest.families if kernel.symbol in f.members]

    def start(self, symbol, c, a, b):
        self.launches.append(symbol)
        us = self._times[symbol]
        if isinstance(us, Exception):
            raise us
        self.gpu.spend(us)
        c[...] = self._multiply.get(symbol, np.matmul)(a, b)


class _Launcher:
    def __init__(self, module, kernels, planner):
        self._module, self._symbol, self._planner = module, kernels[0].symbol, planner

    def plan(self, *given):
        return self._planner.plan([_described(one) for one in given])

    def launch(self, *given):
        self._module.start(self._symbol, *given)

    __call__ = launch


def _described(given):
    if not isinstance(given, np.ndarray):
        return given
    return Array(given.ctypes.data, "f32", given.shape, contiguous_strides(given.shape), 0)


@pytest.fixture
def gpu():
    return FakeGpu()


def trial_of(gpu, times, kernels=(SLOW, FAST), extents=(8, 8, 8), multiply=None):
    module = FakeModule(gpu, of_family(*kernels), times, multiply)
    return tried(gpu, module, module.manifest.families[0], extents, NOTHING, QUICK)


# ---- shapes --------------------------------------------------------------------------------------


def test_shapes_are_numbers_in_order_or_by_name():
    assert extents_of("512x64x8", DIMS) == (512, 64, 8)
    assert extents_of("K=8,M=512,N=64", DIMS) == (512, 64, 8)
    assert extents_of("7", ("N",)) == (7,)


@pytest.mark.parametrize(
    "text",
    ["512x64", "M=1,N=2", "M=1,N=2,K=x", "M=1,M=2,K=3", "M=1,N=2,Q=3", "axbxc", "1x2x-3", ""],
)
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(SetupError, match="expected `M=…,N=…,K=…` or `…x…x…`"):
        extents_of(text, DIMS)


def test_shapes_come_from_files_too(tmp_path):
    (tmp_path / "shapes").write_text("# cubes\n1x1x1 2x2x2\n\n3x3x3  # the last\n")
    assert listed([f"0x0x0 @{tmp_path}/shapes", "2x2x2"]) == ["0x0x0", "1x1x1", "2x2x2", "3x3x3"]
    with pytest.raises(SetupError, match="cannot read the shapes"):
        listed(["@nowhere"])


# ---- one shape -----------------------------------------------------------------------------------


def test_the_fastest_is_chosen_and_the_others_say_why_not(gpu):
    found = trial_of(gpu, {SLOW.symbol: 3.0, FAST.symbol: 2.0})
    assert (found.trial.member, found.trial.us) == (FAST.symbol, 2.0)
    [loser] = found.trial.losers
    assert (loser.member, loser.us, loser.why) == (SLOW.symbol, 3.0, "slower: 1.500 times")


def test_what_would_have_been_launched_is_compared(gpu):
    # The model takes the first of two that cost the same.
    found = trial_of(gpu, {SLOW.symbol: 3.0, FAST.symbol: 2.0})
    assert found.guess == SLOW.symbol
    assert found.guess_slowdown == 1.5


def test_members_that_cannot_are_named_with_the_reason(gpu):
    picky = replace(SLOW, requires=(Requirement("K > 64", ("gt", "K", 64), 9),))
    found = trial_of(gpu, {SLOW.symbol: 1.0, FAST.symbol: 2.0}, (picky, FAST))
    [loser] = found.trial.losers
    assert loser.us is None
    assert loser.why.startswith("not applicable: `requires!(K > 64)`")


def test_a_member_that_fails_is_a_loser(gpu):
    found = trial_of(gpu, {SLOW.symbol: rt.LaunchError("too much"), FAST.symbol: 2.0})
    assert found.trial.losers[0].why == "failed: too much"


def test_nobody_who_can_is_an_error(gpu):
    with pytest.raises(NoMemberError, match="failed: too much"):
        trial_of(gpu, dict.fromkeys((SLOW.symbol, FAST.symbol), rt.LaunchError("too much")))


def test_members_that_differ_are_an_error(gpu):
    times = {SLOW.symbol: 1.0, FAST.symbol: 2.0}
    with pytest.raises(DisagreementError, match="differ by"):
        trial_of(gpu, times, multiply={FAST.symbol: lambda a, b: np.matmul(a, b) * 1.1})


def test_rounding_is_no_difference(gpu):
    times = {SLOW.symbol: 1.0, FAST.symbol: 2.0}
    multiply = {FAST.symbol: lambda a, b: np.matmul(a, b) * np.float32(1 + 1e-6)}
    assert trial_of(gpu, times, multiply=multiply).trial.member == SLOW.symbol


def test_what_is_not_written_is_a_difference(gpu):
    def half(a, b):
        c = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)
        c[: a.shape[0] // 2] = np.matmul(a, b)[: a.shape[0] // 2]
        return c

    with pytest.raises(DisagreementError):
        trial_of(gpu, {SLOW.symbol: 1.0, FAST.symbol: 2.0}, multiply={FAST.symbol: half})


def test_who_is_far_behind_is_launched_a_few_times_only(gpu):
    module = FakeModule(gpu, of_family(SLOW, FAST), {SLOW.symbol: 3000.0, FAST.symbol: 1.0})
    family = module.manifest.families[0]
    found = tried(gpu, module, family, (8, 8, 8), NOTHING, Settings(rounds=9, sample_us=1000.0))
    assert found.trial.losers[0].why == "slower: 3000.000 times"
    assert module.launches.count(SLOW.symbol) < 10 < module.launches.count(FAST.symbol)


# ---- arguments -----------------------------------------------------------------------------------


def arguments(gpu, kernel, values=NOTHING, **dims):
    return Arguments(gpu, kernel, dims, values)


def test_arguments_are_in_the_order_of_parameters(gpu):
    made = arguments(gpu, FAST, M=4, N=5, K=6)
    assert [one.shape for one in made.of(made.sets[0])] == [(4, 5), (4, 6), (6, 5)]
    assert not made.changes_inputs


def test_what_is_read_before_it_is_written_is_put_back(gpu):
    [covered] = FAST.coverage
    adding = replace(FAST, coverage=(replace(covered, reads_first=True),))
    made = arguments(gpu, adding, M=4, N=4, K=4)
    [output] = made.sets[0].outputs
    before = output.copy()
    assert made.changes_inputs and before.any()
    output += 1
    made.restore()
    assert np.array_equal(output, before)
    output += 1
    made.poison()
    assert np.array_equal(output, before)


def test_scalars_and_integers_have_values(gpu):
    scale, count = Parameter("scale", "scalar", "f32"), Parameter("count", "scalar", "i32")
    ids = Parameter("ids", "tensor", "i32", ("M",), "shared")
    kernel = replace(FAST, parameters=(*FAST.parameters, scale, count, ids))
    with pytest.raises(SetupError, match="`count` of type `i32` has no value"):
        arguments(gpu, kernel, M=4, N=4, K=4)
    values = Values({"count": 3.0}, {"ids": (5, 6)})
    given = arguments(gpu, kernel, values, M=4, N=4, K=4)
    *_, scale, count, ids = given.of(given.sets[0])
    assert (scale, count, list(ids)) == (1.0, 3, [5] * 4)


def test_an_element_type_without_tensors_is_named(gpu):
    unknown = Parameter("u", "tensor", "u16", ("M",), "shared")
    strange = replace(FAST, parameters=(*FAST.parameters, unknown))
    with pytest.raises(SetupError, match="no tensors of 'u16'"):
        arguments(gpu, strange, M=4, N=4, K=4)


# ---- a whole run ---------------------------------------------------------------------------------


def request(tmp_path, *shapes):
    return Request(Path("x.cubin"), None, shapes, NOTHING, tmp_path / "matmul.tune.json", QUICK)


def listening(log):
    return Listener(
        lambda number, total, family, extents: log.append((number, total, extents)),
        lambda family, outcome: log.append(outcome.trial.member),
        lambda text: log.append(text),
    )


def test_a_run_writes_what_the_next_build_reads(gpu, tmp_path):
    module = FakeModule(gpu, of_family(SLOW, FAST), {SLOW.symbol: 3.0, FAST.symbol: 2.0})
    log = []
    assert run(request(tmp_path, "8x8x8", "16x8x8"), gpu, "A Card", module, listening(log))
    assert log == [(1, 2, (8, 8, 8)), FAST.symbol, (2, 2, (16, 8, 8)), FAST.symbol]
    [made] = from_text((tmp_path / "matmul.tune.json").read_text()).runs
    assert (made.card, made.target) == ("A Card", "sm_90a")
    assert [one.member for one in made.codes] == [SLOW.symbol, FAST.symbol]
    [family] = made.families
    assert [trial.extents for trial in family.trials] == [(8, 8, 8), (16, 8, 8)]


def test_what_fails_at_one_shape_leaves_the_others(gpu, tmp_path):
    def multiply(a, b):
        if a.shape[0] == 8:
            raise MemoryError("out of memory\nby far")
        return np.matmul(a, b)

    times = {SLOW.symbol: 3.0, FAST.symbol: 2.0}
    module = FakeModule(gpu, of_family(SLOW, FAST), times, {FAST.symbol: multiply})
    log = []
    assert not run(request(tmp_path, "8x8x8", "4x4x4"), gpu, "A Card", module, listening(log))
    expected = "matmul__f32 at 8x8x8: MemoryError: out of memory: nothing is recorded"
    assert expected in log
    assert log[-1] == FAST.symbol


def test_a_second_run_adds(gpu, tmp_path):
    module = FakeModule(gpu, of_family(SLOW, FAST), {SLOW.symbol: 3.0, FAST.symbol: 2.0})
    for shape in ("8x8x8", "4x4x4"):
        run(request(tmp_path, shape), gpu, "A Card", module, listening([]))
    file = from_text((tmp_path / "matmul.tune.json").read_text())
    assert [f.trials[0].extents for made in file.runs for f in made.families] == [
        (8, 8, 8),
        (4, 4, 4),
    ]


def test_a_shape_at_which_members_differ_is_not_recorded(gpu, tmp_path):
    module = FakeModule(
        gpu,
        of_family(SLOW, FAST),
        {SLOW.symbol: 3.0, FAST.symbol: 2.0},
        {FAST.symbol: lambda a, b: np.zeros((a.shape[0], b.shape[1]), np.float32)},
    )
    log = []
    assert not run(request(tmp_path, "8x8x8"), gpu, "A Card", module, listening(log))
    assert "matmul__f32 at 8x8x8" in log[-1] and "nothing is recorded" in log[-1]
    assert not (tmp_path / "matmul.tune.json").exists()


def test_what_is_no_tuning_file_is_not_overwritten(gpu, tmp_path):
    (tmp_path / "matmul.tune.json").write_text("mine")
    module = FakeModule(gpu, of_family(SLOW, FAST), {SLOW.symbol: 3.0, FAST.symbol: 2.0})
    with pytest.raises(SetupError, match="cannot add to"):
        run(request(tmp_path, "8x8x8"), gpu, "A Card", module, listening([]))
    assert (tmp_path / "matmul.tune.json").read_text() == "mine"


def test_families_are_found_by_kernel_and_by_types():
    told = of_family(SLOW, FAST)
    assert families_named(told, None) == families_named(told, "matmul") == list(told.families)
    assert families_named(told, "matmul__f32") == list(told.families)
    with pytest.raises(SetupError, match="no kernel `gemm`; there is matmul, matmul__f32"):
        families_named(told, "gemm")
    with pytest.raises(SetupError, match="no two instances of any kernel"):
        families_named(manifest(), None)
    with pytest.raises(SetupError, match="no two instances of `add`"):
        families_named(manifest(), "add")


def test_what_is_no_cubin_is_said_to_be_none(tmp_path):
    program = tmp_path / "add.tile"
    program.write_text("#[kernel]")
    with pytest.raises(SetupError, match="neither a cubin nor a manifest") as refused:
        cubin_of(program)
    assert "tilec build" in refused.value.help


def test_where_the_file_goes(tmp_path):
    told = of_family(SLOW, FAST)
    cubin = Path("build/add.sm_90a.cubin")
    assert output_of(None, cubin, told) == Path("build/add.tune.json")
    assert output_of(tmp_path, cubin, told) == tmp_path / "add.tune.json"
    assert output_of(Path("x.json"), cubin, told) == Path("x.json")


def test_an_empty_file_is_a_file():
    assert from_text('{"tilec_tune": 2, "runs": []}') == TuningFile()
