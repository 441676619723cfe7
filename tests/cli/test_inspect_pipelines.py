"""`tilec inspect` of pipelines: their contract, launches and workspace, and their graph."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from lark import Lark, Token, Tree

from tests.unit.manifest_samples import add_kernel
from tests.unit.pipeline_samples import launch, sums, with_pipelines
from tilec.artifact.embed import embed
from tilec.artifact.manifest import to_json
from tilec.artifact.pipeline import Argument, Pipeline, Temporary
from tilec.artifact.signature import Parameter
from tilec.codegen.cubin import assemble
from tilec.target.toolchain import ptxas

# The language of Graphviz, as far as quoted names need it (graphviz.org/doc/info/lang.html).
_DOT = Lark(
    r"""
    start: graph+
    graph: "digraph" NAME "{" (statement ";")* "}"
    statement: defaults | edge | node
    defaults: DEFAULTS attributes
    node: NAME attributes?
    edge: NAME ("->" NAME)+ attributes?
    attributes: "[" attribute ("," attribute)* "]"
    attribute: WORD "=" (NAME | NUMBER)
    DEFAULTS.2: /(graph|node|edge)(?= )/
    NAME: WORD | STRING
    WORD: /[a-zA-Z_][a-zA-Z_0-9]*/
    STRING: /"(?:[^"\\]|\\.)*"/s
    NUMBER: /-?\d+(\.\d+)?/
    %ignore /\s+/
    """
)


@pytest.fixture(autouse=True)
def sample(workplace: Path) -> None:
    written(sums())


def written(*pipelines: Pipeline) -> None:
    Path("sums.json").write_text(to_json(with_pipelines(*pipelines)))


def graph(tilec, *arguments: str) -> Mapping[str, dict[str, str]]:
    """Nodes, and edges as `a -> b`, with their attributes."""
    ended = tilec("inspect", "sums.json", "--dot", *arguments)
    assert ended.status == 0, ended.err
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=ended.out, text=True, check=True,
                       capture_output=True)  # fmt: skip
    found: dict[str, dict[str, str]] = {}
    for statement in _DOT.parse(ended.out).find_data("statement"):
        [one] = statement.children
        assert isinstance(one, Tree)
        names = [_plain(x) for x in one.children if isinstance(x, Token)]
        found[" -> ".join(names)] = dict(_attributes(one))
    return found


def _attributes(statement: Tree) -> Iterator[tuple[str, str]]:
    for attribute in statement.find_data("attribute"):
        name, value = map(_plain, attribute.children)
        yield name, value


def _plain(token: object) -> str:
    text = str(token)
    if not text.startswith('"'):
        return text
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def test_the_contract_and_the_launches_of_a_pipeline(tilec):
    shown = tilec("inspect", "sums.json", "--kernel", "sums").out
    assert shown.endswith("""\

sums (kernels/add.tile:30), a pipeline of 5 launches
  out = 8 x
  out            &mut Tensor<f32, N>
  x              &Tensor<f32, N>
  scale          f32
  requires       N < 1000000 (line 31)
  writes all of  out
  in a row       4 launches at least

  launch  at            after  kernel             arguments
  0       sums.tile:32         add (2 instances)  z = a, x = x, y = x, scale = scale
  1       sums.tile:33         add (2 instances)  z = b, x = x, y = x, scale = scale
  2       sums.tile:34  0, 1   add (2 instances)  z = c, x = a, y = b, scale = scale
  3       sums.tile:35  2      add (2 instances)  z = d, x = c, y = c, scale = scale
  4       sums.tile:36  3      add (2 instances)  z = out, x = d, y = d, scale = scale

  slot  temporary          bytes  from  to
  0     a: Tensor<f32, N>  4 * N  0     2
        d: Tensor<f32, N>  4 * N  3     4
  1     b: Tensor<f32, N>  4 * N  1     2
  2     c: Tensor<f32, N>  4 * N  2     3

  workspace           3 x (4 * N) bytes, each rounded up to a multiple of 256
  saved by lifetimes  4 * N bytes
""")
    assert "grid" not in shown


def test_a_bare_cubin_shows_its_pipelines(tilec):
    bare = assemble(".version 8.0\n.target sm_90\n", "sm_90", ptxas()).image
    Path("sums.cubin").write_bytes(embed(bare, Path("sums.json").read_bytes()))
    shown = tilec("inspect", "sums.cubin").out
    assert "\nsums (kernels/add.tile:30), a pipeline of 5 launches\n" in shown
    assert "\nadd__f32_1024 (kernels/add.tile:" in shown


def test_temporaries_of_different_sizes_share_the_largest(tilec):
    d = Temporary("d", "bf16", (("mul", "N", 4),), 0)
    written(replace(sums(), launches=sums().launches[:3], temporaries=(*sums().temporaries[:3], d)))
    shown = tilec("inspect", "sums.json").out
    assert "  workspace           max(4 * N, 2 * (N * 4)) + 2 x (4 * N) bytes, each" in shown
    assert "  saved by lifetimes  all of 4 * N, 2 * (N * 4) but the largest bytes\n" in shown
    alike = [replace(d, name=f"d{number}") for number in range(300)]
    written(replace(sums(), launches=(), temporaries=(sums().temporaries[0], *alike)))
    shown = tilec("inspect", "sums.json").out
    assert "  saved by lifetimes  all of 4 * N, 300 x (2 * (N * 4)) but the largest b" in shown


def test_the_workspace_at_a_shape(tilec):
    shown = tilec("inspect", "sums.json", "--workspace", "N=1000").out
    # Four vectors of 4000 bytes in three places, each of 16 * 256 = 4096 bytes.
    assert (
        "  N = 1000: 12288 bytes of workspace, 4096 saved by lifetimes\n"
        "    temporary  at byte\n"
        "    a          0\n"
        "    b          4096\n"
        "    c          8192\n"
        "    d          0\n"
    ) in shown
    ended = tilec("inspect", "sums.json", "--workspace", "M=4")
    assert ended.status == 2 and "`M=4` is no shape of N" in ended.err


def test_a_shape_is_of_the_pipelines_whose_extents_it_says(tilec):
    vector = sums()
    parameters = (*vector.parameters, Parameter("w", "tensor", "f32", ("M",), "shared"))
    matrix = replace(vector, name="rows", symbol="rows", dims=("M", "N"), parameters=parameters)
    written(vector, matrix)
    ended = tilec("inspect", "sums.json", "--workspace", "M=10,N=100", "--workspace", "1000")
    assert ended.status == 0, ended.err
    shown = ended.out
    of_vector, of_matrix = shown[shown.index("\nsums (") :].split("\nrows (")
    assert "  N = 1000: 12288 bytes" in of_vector and "M = 10" not in of_vector
    assert "  M = 10, N = 100: 1536 bytes" in of_matrix and "N = 1000" not in of_matrix
    ended = tilec("inspect", "sums.json", "--workspace", "K=4")
    assert ended.status == 2
    assert "`K=4` is a shape of none of `sums` (N=…), `rows` (M=…,N=…)" in ended.err


def test_an_unknown_pipeline_is_named_with_those_there_are(tilec):
    ended = tilec("inspect", "sums.json", "--dot", "sum")
    assert ended.status == 2
    assert "`sums.json` has no pipeline `sum`" in ended.err
    assert "expected one of sums" in ended.err


def test_a_graph_has_launches_as_nodes_and_tensors_on_edges(tilec):
    found = graph(tilec, "sums")
    assert found["launch2"]["label"] == r"2: add\nsums.tile:34\nadd__f32_1024\nadd__f32_256"
    assert found["given x"]["label"] == r"x\n&Tensor<f32, N>"
    carried = {edge: told["label"] for edge, told in found.items() if "->" in edge}
    assert carried == {
        "given x -> launch0": "x",
        "given x -> launch1": "x",
        "launch0 -> launch2": r"a\nTensor<f32, N>\nslot 0",
        "launch1 -> launch2": r"b\nTensor<f32, N>\nslot 1",
        "launch2 -> launch3": r"c\nTensor<f32, N>\nslot 2",
        "launch3 -> launch4": r"d\nTensor<f32, N>\nslot 0",
        "launch4 -> left out": "out",
    }
    assert r"slot 0: a (4 * N bytes), then d (4 * N bytes)\l" in found["workspace"]["label"]


def test_of_many_instances_some_are_shown(tilec):
    """In a family of 6; 4 are shown whole."""
    for count, lines in ((4, 6), (6, 6)):
        kernels = tuple(add_kernel(block=128 * (n + 1)) for n in range(count))
        symbols = tuple(kernel.symbol for kernel in kernels)
        one = replace(launch("out", "x", "x", (), 1), instances=symbols)
        pipeline = replace(sums(), launches=(one,), temporaries=())
        made = replace(with_pipelines(pipeline), kernels=kernels)
        Path("sums.json").write_text(to_json(made))
        label = graph(tilec)["launch0"]["label"].split(r"\n")
        assert len(label) == lines
        assert (label[-1] == "and 3 more") == (count == 6)


def test_order_that_carries_no_tensor_is_dashed(tilec):
    """`a` is written again once launch 1 has read it."""
    launches = launch("a", "x", "x", (), 1), launch("out", "a", "x", (0,), 2)
    again = launch("a", "x", "x", (1,), 3), launch("b", "a", "x", (2,), 4)
    last = launch("out", "b", "x", (3,), 5)
    written(replace(sums(), launches=(*launches, *again, last)))
    found = graph(tilec)
    assert found["launch1 -> launch2"] == {"style": "dashed"}
    assert found["launch0 -> launch1"]["label"].startswith("a")


def test_times_are_shown_and_added_up(tilec):
    Path("times.json").write_text(json.dumps({"0": 2, "1": 3.5, "2": 1, "3": 1, "4": 1}))
    found = graph(tilec, "--times", "times.json")
    assert found["launch1"]["label"].endswith(r"\n3.5 µs")
    assert found["graph"]["label"].endswith(r"\n8.5 µs in all, 6.5 µs one after another")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[1]", "has no times"),
        ('{"0": "1"}', "has the time `0`: '1'"),
        ('{"zero": 1}', "has the time `zero`: 1"),
        ('{"0": NaN}', "has the time `0`: nan"),
        ('{"5": 1}', "has no launch 5"),
        (f'{{"0": {10**400}}}', "has the time `0`: 1000"),
        ("[" * 100000, "is no JSON"),
    ],
)
def test_times_that_are_none_are_refused(tilec, text, said):
    Path("times.json").write_text(text)
    ended = tilec("inspect", "sums.json", "--dot", "--times", "times.json")
    assert ended.status == 2
    assert said in ended.err


def test_names_are_escaped(tilec):
    strange = replace(sums().launches[0], file='a "b" \\n.tile')
    written(replace(sums(), launches=(strange, *sums().launches[1:])))
    assert 'a "b" \\n.tile' in graph(tilec)["launch0"]["label"]


def test_axes_and_numbers_of_arguments_are_written_as_programs_write_them(tilec):
    arguments = (*sums().launches[0].arguments[:3], Argument("scale", value=("mul", "N", 2)))
    written(replace(sums(), launches=(replace(sums().launches[0], arguments=arguments),
                                      *sums().launches[1:])))  # fmt: skip
    assert "scale = N * 2" in tilec("inspect", "sums.json").out


def test_the_name_of_the_pipeline_may_be_left_out_before_the_file(tilec):
    ended = tilec("inspect", "--dot", "sums.json")
    assert ended.out.startswith('digraph "sums" {')
