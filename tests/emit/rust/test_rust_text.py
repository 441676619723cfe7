"""What emitted files of Rust say, whether or not there is a compiler to read them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.emit.launching import CUBIN
from tests.emit.pipeline_samples import pipelined
from tests.emit.samples import everything
from tests.emit.statuses import STATUS
from tests.unit.manifest_samples import add_kernel
from tilec.artifact import abi
from tilec.artifact.signature import Parameter
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header
from tilec.emit.header.emit import support as c_support
from tilec.emit.rust import emit_rust
from tilec.emit.rust.emit import support
from tilec.emit.rust.functions import SUFFIXES
from tilec.emit.rust.pipeline_functions import SUFFIXES as PIPELINE_SUFFIXES
from tilec.emit.rust.signature import signature_of
from tilec.emit.rust.text import function_names, parameter_names, string
from tilec.emit.sets import LaunchSet, launch_sets, pipeline_sets


@pytest.fixture(scope="module")
def text():
    [made] = emit_rust([Artifact(everything(), CUBIN)], "sample", EmitOptions()).values()
    return made.decode()


def test_statuses_have_the_numbers_of_the_header():
    [listed] = re.findall(r"pub enum Status \{(.*?)\}", support(), re.DOTALL)
    named = re.findall(r"(\w+) = (\d+),", listed)
    found = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(): int(n) for name, n in named}
    wanted = {
        name.removeprefix("TILEC_ERROR_"): number for name, number in STATUS.items() if number
    }
    assert found == wanted


def test_statuses_are_documented_in_the_words_of_the_header():
    [listed] = re.findall(r"pub enum Status \{(.*?)\}", support(), re.DOTALL)
    documented = dict(re.findall(r"/// (.*)\.\n    (\w+) =", listed))
    in_c = dict(re.findall(r'case TILEC_ERROR_(\w+):\s+return "(.*?)";', c_support()))
    assert {text.lower() for text in documented} == {text.lower() for text in in_c.values()}
    assert len(documented) == len(in_c) == len(STATUS) - 1


def test_element_types_have_the_numbers_and_widths_of_the_abi():
    [listed] = re.findall(r"pub enum Dtype \{(.*?)\}", support(), re.DOTALL)
    names = [name.lower() for name in re.findall(r"(\w+)(?: = 1)?,", listed)]
    [in_c] = re.findall(r"typedef enum tilec_dtype \{(.*?)\}", c_support(), re.DOTALL)
    assert names == [name.lower() for name in re.findall(r"TILEC_(\w+)", in_c)]
    [widths] = re.findall(r"pub const fn bytes.*?\n    \}", support(), re.DOTALL)
    arms = re.findall(r"((?:Dtype::\w+(?: \| )?)+) => (\d)", widths)
    found = {n.lower(): int(width) for arm, width in arms for n in re.findall(r"::(\w+)", arm)}
    assert found == abi.ELEMENT_BYTES


def test_limits_are_those_of_the_abi():
    found = dict(re.findall(r"const (\w+_(?:LIMIT|END)): i128 = ([^;]+);", support()))
    for name, number in found.items():
        base, _, shift = number.partition(" << ")
        assert int(base) << int(shift or 0) == getattr(abi, name), name
    assert len(found) == 7


def test_tables_say_what_those_of_the_header_say(text):
    [header] = emit_header([Artifact(everything(), CUBIN)], "sample", EmitOptions()).values()
    data = header.decode().split(c_support())[1].split("_sets[]")[0]
    own = text.split("static LOADED")[1].split("static SETS")[0]
    data = data.split("_entries[")[1]
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    assert set(re.findall(literal, own)) == {
        found.replace("\\?", "?") for found in re.findall(literal, data)
    }


def test_variants_are_those_of_the_manifest(text):
    for kernel in everything().kernels:
        for variant in kernel.variants:
            [found] = re.findall(
                rf'symbol: "{variant.symbol}",\s+asks: "[^"]*",(.*?)starts_early',
                text,
                re.DOTALL,
            )
            assert [int(number) for number in re.findall(r"\b\d+\b", found)] == [
                variant.threads, variant.static_smem_bytes, variant.dynamic_smem_bytes,
                *variant.cluster, variant.persistent_blocks_per_sm or 0, variant.split,
            ]  # fmt: skip


def test_a_cubin_is_its_bytes(text):
    [image] = re.findall(r'Image\(\*b"\\\n(.*?)"\);', text, re.DOTALL)
    plain = image.replace("\\\n", "")
    assert plain.encode().decode("unicode_escape").encode("latin-1") == CUBIN


def test_a_prefix_stands_before_each_function():
    [made] = emit_rust([Artifact(everything(), CUBIN)], "sample", EmitOptions("mine_")).values()
    functions = set(re.findall(r"^pub fn (\w+)", made.decode(), re.MULTILINE))
    [plain] = emit_rust([Artifact(everything(), CUBIN)], "sample", EmitOptions()).values()
    unprefixed = set(re.findall(r"^pub fn (\w+)", plain.decode(), re.MULTILINE))
    assert functions - {"load"} == {f"mine_{name}" for name in unprefixed - {"load"}}
    assert {"mine_add", "mine_add_launch", "mine_matmul__bf16_check"} <= functions


def named(*names):
    return function_names(names, [SUFFIXES] * len(names))


def test_names_are_no_words_of_rust():
    names = ["x", "fn", "type", "stream", "data"]
    assert parameter_names(names) == ["x", "fn_", "type_", "stream_", "data_"]
    assert named("add_launch", "add", "match", "load") == ["add_launch_", "add", "match_", "load_"]
    for name in re.findall(r"^pub struct (\w+)\(|^pub unsafe fn (\w+)", support(), re.MULTILINE):
        [one] = filter(None, name)
        assert named(one) == [f"{one}_"]
    assert named("None", "Some") == ["None_", "Some_"]
    for name in ("F16", "None", "Ok"):  # what no parameter may shadow
        assert parameter_names([name]) == [f"{name}_"]
    assert string('a"b\\\nä') == '"a\\"b\\\\\\n\\u{e4}"'


def test_functions_have_the_names_that_are_kept_for_them():
    [made] = emit_rust([Artifact(pipelined(), CUBIN)], "sample", EmitOptions()).values()
    functions = re.findall(r"^pub fn (\w+)", made.decode(), re.MULTILINE)
    sets = launch_sets(pipelined())
    pipelines = pipeline_sets(pipelined())
    wanted = {one.name + word for one in sets for word in SUFFIXES}
    wanted |= {one.name + word for one in pipelines for word in PIPELINE_SUFFIXES}
    assert set(functions) == wanted | {"load"}
    assert len(functions) == len(set(functions))


@pytest.mark.parametrize(
    ("elements", "wanted"),
    [
        (("usize",), "usize"),
        (("usize", "i64"), "i64"),  # whichever is first
        (("i64", "usize"), "i64"),
        (("i8", "u8"), "i64"),
        (("f16", "f32"), "f32"),
        (("f32", "f64"), "f64"),
        (("bool",), "bool"),
        (("i32", "f32"), "T"),
    ],
)
def test_a_number_has_a_type_that_holds_those_of_all_instances(elements, wanted):
    z = add_kernel().parameters[0]
    kernels = tuple(
        replace(add_kernel(), parameters=(z, Parameter("n", "scalar", element)))
        for element in elements
    )
    signature = signature_of(LaunchSet("add", kernels))
    assert [one.rust_type for one in signature.arguments] == ["f32", wanted]
    assert signature.numbers == (("T",) if wanted == "T" else ())
