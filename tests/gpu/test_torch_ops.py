"""Operations of PyTorch on the kernels of the library: called, compiled, in a graph, checked."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from cubins import CUBINS, FOLDER
from host_driver import DRY_RUN

from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.python import emit_python

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(DRY_RUN, reason="a dry run has no PyTorch on the device"),
    pytest.mark.filterwarnings("ignore"),  # PyTorch's compiler has many of its own
]


@pytest.fixture
def operations(load, target, tmp_path_factory):
    """The operations of a file of the library, defined once."""

    def imported(name):
        stem = f"{Path(name).name}_for_{target}".replace("-", "_")
        if f"{stem}_torch" in sys.modules:
            return sys.modules[f"{stem}_torch"]
        module = load(name)
        folder = tmp_path_factory.mktemp(stem)
        image = (CUBINS / f"{name}.{target}.cubin").read_bytes()
        (folder / f"{stem}.{module.manifest.target}.cubin").write_bytes(image)
        for file, content in emit_python(
            [Artifact(module.manifest, image)], stem, EmitOptions()
        ).items():
            (folder / file).write_bytes(content)
        sys.path.insert(0, str(folder))
        try:
            return importlib.import_module(f"{stem}_torch")
        finally:
            sys.path.remove(str(folder))

    return imported


def numbers(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_sums_are_those_of_pytorch(operations, dtype):
    add = operations("add")
    for n in (0, 1, 1000, 4099):
        x, y = numbers(n, dtype=dtype), numbers(n, dtype=dtype)
        z = torch.empty_like(x)
        add.add_out(z, x, y)
        made = add.add(x, y)
        assert torch.equal(z, x + y) and torch.equal(made, x + y)


def test_compiled_functions_have_no_breaks(operations):
    add = operations("add")

    @torch.compile(fullgraph=True, dynamic=True)
    def function(x, y):
        z = add.add(x * 2, y)
        w = torch.empty_like(z)
        add.add_out(w, z, x)
        return w - 1

    for n in (1000, 1001, 5):
        x, y = numbers(n), numbers(n)
        torch.testing.assert_close(function(x, y), x * 3 + y - 1)


def test_pytorch_finds_no_fault_with_them(operations):
    name = operations("add").__name__.removesuffix("_torch")
    space = getattr(torch.ops, f"tilec_{name}")
    x, y = numbers(100), numbers(100)
    torch.library.opcheck(space.add.default, (x, y))
    torch.library.opcheck(space.add_out.default, (numbers(100), x, y))


def test_they_run_on_the_current_stream_and_in_graphs(operations):
    add = operations("add")
    x, y = numbers(1000), numbers(1000)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        z = add.add(x, y)
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(z, x + y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add.add_out(z, x, x)
    x.copy_(numbers(1000))
    graph.replay()
    assert torch.equal(z, x + x)


def test_products_are_those_of_pytorch(operations):
    matmul = operations("matmul")
    a, b = (numbers(*shape, dtype=torch.bfloat16) for shape in ((200, 128), (128, 264)))
    made = matmul.matmul(a, b)
    assert made.shape == (200, 264) and made.dtype == torch.bfloat16
    expected = a.double() @ b.double()
    np.testing.assert_allclose(made.double().cpu(), expected.cpu(), rtol=2**-7, atol=2**-4)


def test_a_pipeline_is_an_operation_too(operations):
    diamond = operations(f"{FOLDER}/pipelines/diamond")
    x = torch.arange(3000, device="cuda", dtype=torch.float32)
    y = torch.empty_like(x)
    diamond.diamond_out(y, x, 3.0)
    assert torch.equal(y, 30 * x) and torch.equal(diamond.diamond(x, 3.0), y)


def test_a_broken_contract_names_the_argument(operations):
    add = operations("add")
    x = numbers(100)
    for wrong in (x.half(), x[:50], x[None], x.cpu()):
        with pytest.raises(Exception, match="`y`"):
            add.add(x, wrong)
    with pytest.raises(Exception, match="`z` is written and overlaps `x`"):
        add.add_out(x, x, x.clone())
