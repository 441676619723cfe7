"""The figures of the README are those of the results, which a benchmark wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
BEST = ("torch", "compile", "triton")
FIRST = "| kernel | shape | of copy | speed-up over the best rival |"
PRODUCTS = "| kernel | shape (M × N × K) | speed-up over cuBLAS (PyTorch) | over Triton"
ATTENTION = "| mask | head dimension |"
CARD = "nvidia-h200"

# What a row of the first table is of: a benchmark, and its case after the types.
KERNELS = {
    ("add", "2^28"): ("add", "268435456"),
    ("cross_entropy", "4096 × 151936"): ("cross_entropy", "4096x151936"),
    ("cumsum of rows", "4096 × 32768"): ("cumsum_rows", "4096x32768"),
    ("argmax of rows", "4096 × 32768"): ("argmax", "4096x32768"),
    ("topk of rows (8)", "4096 × 32768"): ("topk8", "4096x32768"),
    ("quantise", "8192 × 14336"): ("quantise", "8192x14336"),
    ("rmsnorm", "1024 × 1024"): ("rmsnorm", "small 1024x1024"),
}
# Of a row of products: the benchmark with its case, and the rival, of each of its figures.
FORMS = {
    "tf32": [("matmul_tf32", "f32 4096x4096x4096", "torch"),
             ("matmul_tf32_nt", "f32 4096x4096x4096", "torch")],
    "with bias and gelu": [("matmul_bias_gelu", "bf16 8192x4096x1024", "product")],
    "gated MLP": [("gated_mlp", "bf16 4096x4096x4096", "torch")],
    "batched": [("matmul_batched", "bf16 32x1024x1024x1024", "torch")],
    "f8 e4m3": [("matmul_f8", "f8e4m3 8192x8192x8192", "torch"),
                ("matmul_f8", "f8e4m3 8192x8192x8192", "exact")],
    "weights of 8 bits": [("matmul_w8a16", "bf16 4096x4096x4096", "torch")],
    "weights of 4 bits": [("skinny_w4a16", "bf16 1x14336x4096", "torch"),
                          ("matmul_w4a16", "bf16 16x14336x4096", "torch")],
    "gemv": [("gemv", "bf16 2560x4096", "torch"), ("gemv", "bf16 2560x4096", "triton")],
}  # fmt: skip


def by_ours() -> dict[tuple[str, str], dict[str, float]]:
    """The time of each contender by ours, for each case of each benchmark."""
    found = {}
    for file in RESULTS.glob(f"*-{CARD}.json"):
        cases = json.loads(file.read_text(encoding="utf-8")).get("cases", [])
        for case in cases if isinstance(cases, list) else []:
            if isinstance(case, dict) and "summary" in case:
                times = {
                    name: each["time_by_ours"] for name, each in case["summary"].items() if each
                }
                found[case["benchmark"], case["case"]] = times
    return found


TIMES = by_ours()


def rows(head: str) -> list[list[str]]:
    """The cells of a table of the README."""
    _, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(head)
    assert rest, f"the README has no table that begins {head!r}"
    lines = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def figures(cell: str) -> list[str]:
    return re.findall(r"\d+\.\d+", cell)


def rounded(value: float, like: str) -> str:
    return f"{value:.{len(like.partition('.')[2])}f}"


@pytest.mark.parametrize("row", rows(FIRST), ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_of_the_first_table_is_that_of_its_benchmark(row):
    name, *types = re.split(r", | / ", row[0].removesuffix(", small").removesuffix(" to i8"))
    shape = row[1].removesuffix(" (read twice)")
    benchmark, case = KERNELS.get((name, shape), (name, shape.replace(" × ", "x")))
    in_l2 = row[2] == "(in L2)"
    of_copy, best = [None] if in_l2 else figures(row[2]), figures(row[3])
    assert len(types) == len(of_copy) == len(best)
    for element, said_of_copy, said_best in zip(types, of_copy, best, strict=True):
        times = TIMES[benchmark, f"{element} {case}"]
        assert in_l2 or said_of_copy == rounded(times["copy"], said_of_copy), element
        fastest = min(times[rival] for rival in BEST if rival in times)
        assert said_best == rounded(fastest, said_best), element


@pytest.mark.parametrize("row", rows(PRODUCTS), ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_of_products_is_that_of_its_benchmarks(row):
    form = next((form for form in FORMS if row[0].startswith(form)), None)
    if form:
        asked = FORMS[form]
    else:
        shape = row[1].replace(" × ", "x")
        shape = "x".join([shape[:-1]] * 3) if shape.endswith("³") else shape
        both = ("matmul", "matmul_nt")
        rivals = ("torch", "triton tma") if figures(row[3]) else ("torch",)
        asked = [(one, f"bf16 {shape}", rival) for rival in rivals for one in both]
    said = figures(row[2]) + figures(row[3])
    assert said == [
        rounded(TIMES[benchmark, case][rival], figure)
        for (benchmark, case, rival), figure in zip(asked, said, strict=True)
    ]


@pytest.mark.parametrize("row", rows(ATTENTION), ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_of_attention_is_that_of_its_benchmark(row):
    file = RESULTS / f"attention-{CARD}.json"
    measured = json.loads(file.read_text(encoding="utf-8"))["microseconds"]
    mask = "" if row[0] == "none" else f" {row[0]}"
    for tokens, said in zip(("256x1024", "64x4096", "16x16384"), row[2:], strict=True):
        times = {
            name: each["median"] for name, each in measured[f"{tokens}x{row[1]}{mask}"].items()
        }
        ours = times.pop("tilec")
        assert said == rounded(min(times.values()) / ours, said), tokens


def test_times_of_the_compiler_are_those_that_were_measured():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = json.loads((RESULTS / "compile_times.json").read_text(encoding="utf-8"))["commands"]
    check, cold, product = re.search(
        r"`tilec check kernels/add.tile` takes (\S+) s, a cold build of the whole library "
        r"\(52 files.*?\)\s(\S+) s, of one product \(three variants\) (\S+) s",
        text,
        re.DOTALL,
    ).groups()
    assert check == rounded(measured["tilec check kernels/add.tile"]["median_s"], check)
    whole = measured["tilec build kernels/*.tile (52 files, cold)"]["median_s"]
    assert cold == rounded(whole, cold)
    one = measured["tilec build of one instance of kernels/matmul_nt.tile (cold)"]["median_s"]
    assert product == rounded(one, product)
    assert len(list((ROOT / "kernels").glob("*.tile"))) == 52
