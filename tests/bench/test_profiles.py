"""Profiles: what samples of program counters say, and where patterns come from; the report on the
model of costs."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.unit.family_samples import LARGE, SMALL, of_family
from tilec.artifact.tuning_file import Loser, Run, Trial, TunedFamily, TuningFile, to_text
from tilec.target.resolve import resolve

FOLDER = Path(__file__).parents[2] / "benchmarks"
LONG, BARRIER = "long_scoreboard", "barrier"


def script(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = spec_from_file_location(f"script_{name}", FOLDER / f"{name}.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


class Numbers:
    def __init__(self, numbers):
        self._numbers = numbers

    def num_instances(self):
        return len(self._numbers)

    def as_uint64(self, i):
        return self._numbers[i]


class Stalls(Numbers):
    """How often one reason was seen, by program counter."""

    def __init__(self, counts):
        super().__init__(list(counts.values()))
        self._at = Numbers(list(counts))

    def correlation_ids(self):
        return self._at


class Action:
    """A kernel of a report, as the profiler's reader has it."""

    def __init__(self, code, stalls):
        self._code = {16 * i: text for i, text in enumerate(code)}
        self._stalls = {f"smsp__pcsamp_warps_issue_stalled_{k}": v for k, v in stalls.items()}

    def name(self):
        return "k"

    def metric_names(self):
        return [*self._stalls, "launch__grid_size", f"{next(iter(self._stalls))}_not_issued"]

    def metric_by_name(self, name):
        return Stalls(self._stalls[name])

    def sass_by_pc(self, pc):
        return self._code[pc]


def test_samples_are_told_apart_by_role_and_by_where_products_are(monkeypatch):
    samples = script("profile_samples", monkeypatch)
    copies = ["USETMAXREG.DEALLOC.CTAPOOL 0x18", "UTMALDG.2D", "@!P0 BRA 0x10"]
    between = ["NOP"] * 24
    maths = ["USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xf0", *between]
    maths += ["HGMMA.64x256x16.F32.BF16 R24", "WARPGROUP.DEPBAR.LE gsb0, 0x1", *between, "STG.E"]
    code = ["LDC R1", *copies, *maths]
    at = {text: 16 * i for i, text in enumerate(code)}
    found = samples._of_kernel(
        Action(
            code,
            {
                LONG: {0: 3, at["@!P0 BRA 0x10"]: 7, at["STG.E"]: 2},
                BARRIER: {at["WARPGROUP.DEPBAR.LE gsb0, 0x1"]: 5, at[maths[0]]: 1},
            },
        )
    )
    assert {kind: one.samples for kind, one in found.items()} == {
        "all": 3,  # before there are roles
        "copy": 7,
        "compute": 8,
    }
    assert found["copy"].stalls(1) == [(LONG, 7)]
    assert found["copy"].by_phase == {}
    assert found["compute"].by_phase == {"before": 1, "products": 5, "after": 2}
    assert found["compute"].places(1) == [("WARPGROUP.DEPBAR.LE", 5)]


def test_patterns_are_words_or_lines_of_a_file(monkeypatch, tmp_path):
    profile = script("profile", monkeypatch)
    path = tmp_path / "rows.txt"
    path.write_text("# remark\nmatmul bf16 1x2x3  # why\n\nsoftmax\n")
    assert list(profile._patterns(["topk", f"@{path}"])) == ["topk", "matmul bf16 1x2x3", "softmax"]


def test_what_is_profiled_is_in_the_suite(monkeypatch):
    from tilec.bench.loading import benchmarks_of

    found = [b for path in sorted(FOLDER.glob("bench_*.py")) for b in benchmarks_of(path)]
    names = {f"{one.name} {case.name}" for one in found for case in one.cases}
    profile = script("profile", monkeypatch)
    assert set(profile._patterns([f"@{FOLDER / 'profiled_products.txt'}"])) <= names


def test_what_is_tuned_has_kernels(monkeypatch):
    names = script("tune_all", monkeypatch).wanted([])
    assert all((FOLDER.parent / "kernels" / f"{name}.tile").exists() for name in names)


@pytest.mark.parametrize(("us", "slowdown"), [((10.0, 20.0), 1.0), ((30.0, 20.0), 1.5)])
def test_the_report_says_how_much_slower_the_choice_of_the_model_is(monkeypatch, us, slowdown):
    report = script("cost_model", monkeypatch)
    shape = (2048, 2048, 2048)  # one round of the large tile: the model takes it
    timed = dict(zip((LARGE.symbol, SMALL.symbol), us, strict=True))
    best = min(timed, key=timed.get)
    losers = tuple(Loser(name, time, "slower") for name, time in timed.items() if name != best)
    family = TunedFamily(
        "matmul__bf16", ("M", "N", "K"), (Trial(shape, best, timed[best], losers),)
    )
    run = Run("A Card", "sm_90a", "0" * 16, "1", "2026-01-01", (), (family,))
    [pick] = report.picks(of_family(), to_text(TuningFile((run,))), resolve("sm_90a"))
    assert (pick.member, pick.slowdown) == (LARGE.symbol, slowdown)
