"""`tilec build --emit header`, with kernels of the library."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from random import Random

import jsonschema
import pytest

from tests.emit.arguments import arguments_of
from tests.emit.expected import launched_by, launched_on, planned, planner_of
from tests.emit.launching import Headers
from tests.emit.toolchain import CXX_STANDARD, STRICT, c_compiler, compiled, cxx_compiler
from tilec.artifact.embed import extract
from tilec.artifact.expression import text_of
from tilec.artifact.manifest import from_json
from tilec.cli.entry import run_command_line
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header

ROOT = Path(__file__).parents[2]
# The instances to build of each file: a family with clusters and a split, and whole small files.
MATMULS = re.compile(r"T = bf16, BM = (64, BN = 32,|64, BN = 128.*split|128, BN = 128.*cluster)")
SOFTMAXES = re.compile(r"T = f32, R = ., B = (256|1024)\)")
PROGRAMS = {"add": None, "transpose": None, "softmax": SOFTMAXES, "matmul": MATMULS}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A folder with the outputs of some kernels of the library."""
    folder = tmp_path_factory.mktemp("library")
    for name, wanted in PROGRAMS.items():
        text = (ROOT / "kernels" / f"{name}.tile").read_text(encoding="utf-8")
        lines = [
            line
            for line in text.splitlines(keepends=True)
            if wanted is None or not line.startswith("#[instance") or wanted.search(line)
        ]
        (folder / f"{name}.tile").write_text("".join(lines), encoding="utf-8")
        tuning = ROOT / "kernels" / f"{name}.tune.json"
        if tuning.exists():
            (folder / tuning.name).write_bytes(tuning.read_bytes())
    files = [str(folder / f"{name}.tile") for name in PROGRAMS]
    assert run_command_line(["build", *files, "-o", str(folder), "--emit", "header", "-q"]) == 0
    return folder


@pytest.fixture(scope="session")
def built(library, tools):
    """The functions of a kernel's header, and its manifest."""
    made = {}

    def functions(name):
        if name not in made:
            cubin = (library / f"{name}.sm_90a.cubin").read_bytes()
            manifest = from_json(extract(cubin))
            made[name] = Headers([manifest], tools / name, tools, cubin), manifest
            assert made[name][0].use_driver() == 0
        return made[name]

    return functions


@pytest.mark.parametrize("name", PROGRAMS)
def test_launches_are_those_of_the_runtime(name, built):
    headers, manifest = built(name)
    random = Random(name)
    variants = set()
    for launched in headers.sets.values():
        planner = planner_of(launched, manifest)
        for number in range(400 if len(launched.kernels) > 1 else 60):
            arguments = arguments_of(random.choice(launched.kernels), random, number % 4 == 0)
            before = headers.fake.launches
            outcome = headers.call(launched.name, arguments)
            wanted = planned(planner, arguments)
            if isinstance(wanted, str):
                assert (outcome.message, headers.fake.launches) == (wanted, before), arguments
                continue
            assert outcome.status == 0, (outcome.message, arguments)
            launch = launched_by(wanted)
            assert headers.fake.launches == before + (launch is not None)
            if launch is not None:
                assert launched_on(headers.fake) == launch, arguments
                variants.add(launch.variant)
    assert len(variants) >= len(manifest.kernels)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_build_writes_what_the_manifest_and_the_cubin_give(name, library):
    cubin = (library / f"{name}.sm_90a.cubin").read_bytes()
    artifact = Artifact(from_json(extract(cubin)), cubin)
    [text] = emit_header([artifact], name, EmitOptions()).values()
    assert (library / f"{name}.h").read_bytes() == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_manifests_meet_the_published_schema(name, library):
    schema = json.loads((files("tilec.artifact") / "manifest.schema.json").read_text())
    jsonschema.validate(json.loads((library / f"{name}.json").read_text()), schema)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_contract_is_printed_from_the_cubin_alone(name, library, tmp_path, capsys):
    cubin = tmp_path / "alone.cubin"
    cubin.write_bytes((library / f"{name}.sm_90a.cubin").read_bytes())
    assert run_command_line(["inspect", str(cubin)]) == 0
    sections = re.split(r"\n(?=\w+ \()", capsys.readouterr().out)
    for kernel in from_json(extract(cubin.read_bytes())).kernels:
        [own] = [one for one in sections if one.startswith(f"{kernel.symbol} (")]
        said = [parameter.name for parameter in kernel.parameters]
        said += [f"{one.text} (line {one.line})" for one in kernel.requires]
        said += [", ".join(map(text_of, kernel.grid)), *(v.symbol for v in kernel.variants)]
        for parameter in kernel.parameters:
            if parameter.is_tensor:
                extents = ", ".join(map(str, parameter.extents))
                said.append(f"Tensor<{parameter.element}, {extents}>")
        assert [text for text in said if text not in own] == []


def test_the_matmuls_have_what_is_to_be_tested(built):
    variants = [v for kernel in built("matmul")[1].kernels for v in kernel.variants]
    assert any(v.split > 1 for v in variants)
    assert any(v.cluster[0] > 2 and v.persistent_blocks_per_sm for v in variants)
    assert any(len(v.tensor_maps) == 3 for v in variants)
    assert [len(family.members) for family in built("matmul")[1].families] == [3]


def test_the_examples_of_the_documentation_compile(library):
    page = (ROOT / "docs" / "launchers.md").read_text(encoding="utf-8")
    plain, _ = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    cxx = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
    source = library / "example.c"
    source.write_text(plain.replace("int add_on", "int add_on_the_gpu(void *, void *, void *, "
                                    "int64_t, tilec_stream);\n\nint add_on"))  # fmt: skip
    compiled(c_compiler(), "-std=c99", *STRICT, "-I", library, "-c", source, "-o",
             library / "example.o")  # fmt: skip
    compiled(c_compiler(), "-std=c99", *STRICT, "-I", library, "-c",
             ROOT / "benchmarks" / "launch_cost.c", "-o", library / "cost.o")  # fmt: skip
    other = library / "example.cpp"
    other.write_text(f"{cxx[0]}\nstruct __nv_bfloat16 {{ short bits; }};\n{cxx[1]}")
    compiled(cxx_compiler(), f"-std={CXX_STANDARD}", *STRICT, "-I", library, "-c", other, "-o",
             library / "example2.o")  # fmt: skip
