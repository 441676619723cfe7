"""Operations in PyTorch itself, where it is installed: what a kernel does is done by PyTorch on
the CPU, so that only the operations are tried."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import pytest

from tests.emit.test_python import emitted
from tests.unit.manifest_samples import add_kernel, manifest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's compiler has many of its own


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch")
    whole = manifest(add_kernel(), add_kernel("bf16", 512))
    emitted(folder, whole, stem="tried")
    sys.path.insert(0, str(folder))
    found = importlib.import_module("tried_torch")
    sys.path.remove(str(folder))
    launch = SimpleNamespace(launch=lambda z, x, y, scale: torch.add(x, y, alpha=scale, out=z))
    found._operations._beside._module = SimpleNamespace(manifest=whole, add=launch)
    return found


def numbers(n, dtype=torch.float32):
    return torch.arange(n, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pytorch_finds_no_fault_with_the_operations(ops, dtype):
    x, y, z = numbers(20, dtype), numbers(20, dtype), numbers(20, dtype)
    for name, given in (("add", (x, y, 2.0)), ("add_out", (z, x, y, 2.0))):
        torch.library.opcheck(getattr(torch.ops.tilec_tried, name).default, given)


def test_compiled_functions_keep_them_in_one_graph_at_any_extents(ops):
    graphs = []

    def noting(graph, _):
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op != "placeholder"])
        return graph.forward

    @torch.compile(backend=noting, fullgraph=True, dynamic=True)
    def function(x, y):
        z = ops.add(x * 2, y, 1.0)
        ops.add_out(z, y, x, -1.0)
        return z

    for n in (20, 33):
        assert torch.equal(function(numbers(n), numbers(n) + 1), torch.ones(n))
    [graph] = graphs
    assert [one for one in graph if one.startswith("tilec")] == [
        "tilec_tried.add.default",
        "tilec_tried.add_out.default",
    ]


def test_a_derivative_may_be_given_and_is_else_refused(ops):
    x, y = numbers(5).requires_grad_(), numbers(5)
    with pytest.raises(Exception, match="has no derivative"):
        ops.add(x, y, 3.0)
    with torch.no_grad():
        assert torch.equal(ops.add(x, y, 1.0), numbers(5) * 2)

    def backward(context, gradient):
        return gradient, gradient, None

    torch.library.register_autograd("tilec_tried::add", backward)
    ops.add(x, y, 3.0).sum().backward()
    assert torch.equal(x.grad, torch.ones(5))


def test_autograd_notices_that_a_saved_tensor_is_written(ops):
    x = numbers(5).requires_grad_()
    saved = torch.ones(5)
    product = x * saved
    ops.add_out(saved, numbers(5), numbers(5), 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
