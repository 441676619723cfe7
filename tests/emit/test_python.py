"""Python beside a cubin: a module that loads it, a stub with its types, operations of PyTorch."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from mypy import api

import tilec.runtime as rt
from tests.emit.fake_torch import Tensor, fake_torch
from tests.emit.samples import everything
from tests.emit.test_names import KERNELS, everything_called
from tests.unit.family_samples import product
from tests.unit.manifest_samples import add_kernel, copy_kernel, manifest
from tests.unit.pipeline_samples import sums, with_pipelines
from tests.unit.test_embed import cubin
from tilec.artifact.embed import embed
from tilec.artifact.families import families_of
from tilec.artifact.manifest import to_json
from tilec.artifact.signature import Coverage, Parameter
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.python import emit_python
from tilec.emit.python.callables import kernels_by_name, results_of
from tilec.runtime.beside import Beside


def emitted(folder, whole, stem="kernels", prefix="", targets=("sm_90a",)):
    """Writes what `--emit python` gives and the cubins beside it."""
    artifacts = []
    for target in targets:
        one = replace(whole, target=target)
        image = embed(cubin(), to_json(one).encode())
        artifacts.append(Artifact(one, image))
        (folder / f"{stem}.{target}.cubin").write_bytes(image)
    files = emit_python(artifacts, stem, EmitOptions(prefix))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return files


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Imports an emitted file, with a PyTorch that notes."""
    torch = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.syspath_prepend(str(tmp_path))

    def imports(name):
        for one in (name, "tilec.runtime.torch_operations"):
            monkeypatch.delitem(sys.modules, one, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module(name), torch

    yield imports
    sys.modules.pop("tilec.runtime.torch_operations", None)


def launching(ops, whole):
    """What the operations of a file launch from here on, with the result of `sums` for x."""
    launched = []

    def launch(name):
        def note(*arguments):
            launched.append((name, *arguments))

        return SimpleNamespace(launch=note)

    names = {k.name for k in whole.kernels} | {p.name for p in whole.pipelines}
    beside = ops._operations._beside
    beside._manifest, beside.launcher = whole, {name: launch(name) for name in names}.__getitem__
    return launched


# Names


def test_operations_of_one_name_are_refused_with_both_files(tmp_path, imported):
    for folder, prefix in (("one", ""), ("two", ""), ("three", "my_")):
        (tmp_path / folder).mkdir()
        emitted(tmp_path / folder, manifest(), stem="a-b", prefix=prefix)
    first, _ = imported("one.a_b_torch")
    with pytest.raises(ImportError) as refused:
        importlib.import_module("two.a_b_torch")
    said = str(refused.value)
    assert said.startswith(f"`tilec_a_b::add` is defined already, by {first.__file__}")
    assert "`tilec build --prefix`" in said
    assert importlib.import_module("three.a_b_torch").my_add_out
    with pytest.raises(ImportError, match=r"a_b_torch\.py was executed twice in one process"):
        importlib.reload(first)


# The module and its stub


def test_the_module_has_the_kernels_of_the_cubin_beside_it(tmp_path, imported):
    emitted(tmp_path, manifest(), prefix="my_")
    module, _ = imported("kernels")
    assert module.my_add.kernels[0].symbol == "add__f32_1024"
    assert module.module.manifest == manifest()
    assert dir(module) == ["module", "my_add", "my_copy"]
    with pytest.raises(AttributeError, match="has no kernel `add`; it has `my_add`, `my_copy`"):
        module.add  # noqa: B018


def test_without_the_cubin_the_module_says_which_it_expects(tmp_path, imported):
    emitted(tmp_path, manifest())
    (tmp_path / "kernels.sm_90a.cubin").unlink()
    module, _ = imported("kernels")
    with pytest.raises(ImportError, match=r"expected the cubin.*kernels\.sm_90a\.cubin"):
        module.add  # noqa: B018


def test_of_several_cubins_the_one_for_the_device_is_loaded(tmp_path):
    emitted(tmp_path, manifest(), targets=("sm_80", "sm_90a"))
    cubins = {target: f"kernels.{target}.cubin" for target in ("sm_80", "sm_90a")}
    for capability, target in (((9, 0), "sm_90a"), ((8, 6), "sm_80"), ((10, 0), None)):
        driver = SimpleNamespace(capability=lambda device, found=capability: found)
        beside = Beside(str(tmp_path / "kernels.py"), cubins, lambda driver=driver: driver)
        assert beside.manifest().target == "sm_80"  # of any of them, without a device
        if target is None:
            with pytest.raises(rt.ArchitectureError, match="sm_80, sm_90a, the device is sm_100"):
                beside.module()
        else:
            assert beside.module().manifest.target == target


def test_the_stub_is_what_type_checkers_take(tmp_path):
    members = product(64, 64, 9), product(128, 64, 9)
    kernels = (*everything().kernels, *members)
    whole = replace(
        everything(),
        kernels=kernels,
        families=families_of(kernels),
        pipelines=with_pipelines().pipelines,
    )
    emitted(tmp_path, whole, stem="all-of.them", prefix="my_")
    emitted(tmp_path, manifest(add_kernel()), stem="class")
    emitted(tmp_path, everything_called(KERNELS), stem="odd")
    (tmp_path / "use.py").write_text(
        "from typing import cast\n"
        "import all_of_them as k\n"
        "import class_\n"
        "import odd\n"
        "import tilec.runtime as rt\n"
        "x = rt.empty((3,), 'f32')\n"
        "k.my_add(x, x, x, 2)\n"
        "class_.add(x, x, y=x, scale=1.0)\n"
        "handle: rt.Launch = k.module['add__f16_512'].launch(x, x, x, 2.0, stream=3)\n"
        "plan: rt.LaunchPlan = cast(k.Module, rt.load('x')).instance('copy__i8').plan(x, x, 1)\n"
        "k.my_sums(out=x, x=x, scale=1.0)\n"
        "k.my_sums.launch(x, x, 1.0, streams=2, workspace=x).wait()\n"
        "graph: rt.Graph = k.module.sums.graph(x, x, 1.0)\n"
        "k.module['sums'].launch(x, x, 1.0)\n"
        "k.module['add'](x, x, x, 2.0)\n"
        "k.module['matmul__bf16'](x, x, x)\n"
        "k.module.instance('matmul__bf16')  # wrong: a family\n"
        "bytes_: int = k.my_sums.workspace_bytes(x, x, 1.0)\n"
        "k.my_add(x, x, 5, 2.0)  # wrong: no tensor\n"
        "k.my_add(x, x, x)  # wrong: no scale\n"
        "k.my_copy(x, x, 1.5)  # wrong: no integer\n"
        "k.module['mul']  # wrong: no kernel\n"
        "k.add  # wrong: no prefix\n"
        "odd.None__(x, x, x, 2.0)\n"
        "odd.module.__init__  # wrong: Python's\n"
        "odd.module['__init__'](x, x, x, 2.0)\n"
        "odd.module.instance('Literal')(x, x, x, 2.0)\n"
    )
    use = (tmp_path / "use.py").read_text()
    # The configuration and the cache of the project: types of the runtime are known then.
    paths = [tmp_path / name for name in ("use.py", "all_of_them.pyi", "class_.pyi", "odd.pyi")]
    printed, errors, _ = api.run(["--strict", "--no-error-summary", *map(str, paths)])
    assert not errors
    wrong = {int(line.split(":")[1]) for line in printed.splitlines() if ": error:" in line}
    assert wrong == {i for i, line in enumerate(use.splitlines(), 1) if "wrong" in line}, printed


def test_emitted_files_are_python_whatever_kernels_are_called(tmp_path):
    odd = add_kernel()
    parameters = tuple(
        replace(p, name=name)
        for p, name in zip(odd.parameters, ("self", "lambda", "stream", "order"), strict=True)
    )
    odd = replace(
        odd,
        name="def",
        documentation='Ends """ the text\\, and "so"',
        parameters=parameters,
        coverage=(Coverage("self", True, False),),
    )
    files = emitted(tmp_path, manifest(odd), stem="0-odd")
    assert sorted(files) == ["_0_odd.py", "_0_odd.pyi", "_0_odd_torch.py"]
    for content in files.values():
        tree = ast.parse(content)
        assert "def_" in ast.unparse(tree) and ast.get_docstring(tree)
    stub = ast.parse(files["_0_odd.pyi"])
    [kernel] = [one for one in stub.body if isinstance(one, ast.ClassDef)][:1]
    assert ast.get_docstring(kernel).startswith('Ends """ the text\\, and "so"')
    call = kernel.body[1]
    assert [one.arg for one in call.args.args] == ["self", "self_", "lambda_", "stream_", "order_"]


def add_called(name):
    kernel = add_kernel()
    variants = tuple(replace(v, symbol=f"{name}_{i}") for i, v in enumerate(kernel.variants))
    return replace(kernel, name=name, symbol=name, variants=variants)


def test_every_kernel_has_a_name_of_its_own(tmp_path, imported):
    names = (
        "module", "code", "class", "class_", "attributes", "torch", "int", "rt", "__init__",
        "_CUBINS", "_Kernel_rt", "_operations", "_code_operation",
    )  # fmt: skip
    whole = manifest(*map(add_called, names))
    files = emitted(tmp_path, whole, stem="names")
    module, _ = imported("names")
    own = (
        "module_", "code", "class__", "class_", "attributes", "torch", "int_", "rt_", "__init___",
        "_CUBINS_", "_Kernel_rt_", "_operations", "_code_operation",
    )  # fmt: skip
    assert [getattr(module, one).kernels[0].name for one in own] == list(names)
    assert sorted(dir(module)) == sorted([*own, "module"])
    stub = ast.parse(files["names.pyi"])
    typed = [one.target.id for one in stub.body if isinstance(one, ast.AnnAssign)]
    assert typed == [*own, "module"]
    ops, _ = imported("names_torch")
    launched = launching(ops, whole)
    tensors = [Tensor(np.zeros(4, np.float32)) for _ in range(3)]
    operations = (
        "module", *own[1:5], "torch_", "int_", "rt", *own[8:10], "_Kernel_rt", "_operations_",
        "_code_operation_",
    )  # fmt: skip
    for one, name in zip(operations, names, strict=True):
        getattr(ops, one)(*tensors[1:], 1.0)
        assert launched[-1][0] == name


def test_a_file_of_any_name_has_its_cubin(tmp_path):
    files = emitted(tmp_path, manifest(add_kernel()), stem='a"b\\c')
    for name in ("a_b_c.py", "a_b_c_torch.py"):
        [cubins] = [
            one.value
            for one in ast.parse(files[name]).body
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "_CUBINS"
        ]
        assert ast.literal_eval(cubins) == {"sm_90a": 'a"b\\c.sm_90a.cubin'}


def test_the_contract_is_in_every_docstring(tmp_path):
    files = emitted(tmp_path, manifest())
    for name in ("kernels.pyi", "kernels_torch.py"):
        text = files[name].decode()
        assert "target  i8 [M, 64], written" in text
        assert "requires `M % 2 == 0`" in text
        assert "kernels/add.tile:4" in text


# Which tensors an operation may make


def only(*kernels):
    [called] = kernels_by_name(manifest(*kernels))
    return results_of(called)


def test_what_is_written_in_full_and_fits_other_tensors_may_be_made():
    assert only(add_kernel(), add_kernel("bf16", 512)) == (0,)


@pytest.mark.parametrize(
    "change",
    [
        {"coverage": (Coverage("z", True, True),)},
        {"coverage": (Coverage("z", False, False),)},
        {"coverage": ()},
        {"own": "atomic"},
        {"extents": ("M",)},
    ],
)
def test_what_is_not_so_is_given_by_the_caller(change):
    kernel = add_kernel()
    coverage = change.pop("coverage", kernel.coverage)
    z = replace(kernel.parameters[0], **change)
    assert only(replace(kernel, coverage=coverage, parameters=(z, *kernel.parameters[1:]))) == ()


def test_nothing_is_made_where_its_type_does_not_follow():
    cast = add_kernel()
    z = replace(cast.parameters[0], element="f16")
    other = replace(cast, symbol="add__f16_f32", parameters=(z, *cast.parameters[1:]))
    assert only(cast) == only(other) == (0,)
    assert only(cast, other) == ()


def test_nothing_is_made_without_a_tensor_that_says_where():
    kernel = add_kernel()
    fill = replace(kernel.parameters[0], extents=(64,))
    assert only(replace(kernel, parameters=(fill, kernel.parameters[3]))) == ()


# Operations


def test_operations_say_what_they_write_and_make(tmp_path, imported):
    whole = replace(with_pipelines(), kernels=(*with_pipelines().kernels, copy_kernel()))
    emitted(tmp_path, whole)
    ops, torch = imported("kernels_torch")
    assert torch.schemas == {
        "tilec_kernels::add": "(Tensor x, Tensor y, float scale) -> Tensor",
        "tilec_kernels::add_out": "(Tensor(a0!) z, Tensor x, Tensor y, float scale) -> ()",
        "tilec_kernels::copy_out": "(Tensor(a0!) target, Tensor source, SymInt count) -> ()",
        "tilec_kernels::sums": "(Tensor x, float scale) -> Tensor",
        "tilec_kernels::sums_out": "(Tensor(a0!) out, Tensor x, float scale) -> ()",
    }
    assert torch.fakes.keys() == torch.schemas.keys()
    launched = launching(ops, whole)
    z, x, y = (Tensor(np.zeros(5, np.float32)) for _ in range(3))
    ops.add_out(z, x, y, 2.0)
    made = ops.add(x, y, 0.5)
    summed = ops.sums(x, 1.0)
    assert launched == [
        ("add", z, x, y, 2.0), ("add", made, x, y, 0.5), ("sums", summed, x, 1.0)
    ]  # fmt: skip
    assert made.shape == (5,) and made.dtype == "torch.float32"


def test_results_are_in_their_places_among_the_arguments(tmp_path, imported):
    kernel = add_kernel()
    x, y = (Parameter(n, "tensor", "f32", ("M", "N"), "shared") for n in "xy")
    parameters = (
        x,
        Parameter("most", "tensor", "f16", ("N",), "mut"),
        Parameter("n", "scalar", "usize"),
        y,
        Parameter("least", "tensor", "bf16", (3, "M"), "part", (1, 16)),
    )
    covered = tuple(Coverage(name, True, False) for name in ("most", "least"))
    whole = manifest(replace(kernel, parameters=parameters, dims=("M", "N"), coverage=covered))
    emitted(tmp_path, sums_free(whole))
    ops, torch = imported("kernels_torch")
    launched = launching(ops, whole)
    x, y = (Tensor(np.zeros((2, 7), np.float32)) for _ in range(2))
    for _ in range(2):
        most, least = ops.add(x, 4, y)
        assert launched.pop() == ("add", x, most, 4, y, least)
        assert (most.shape, most.dtype) == ((7,), "torch.float16")
        assert (least.shape, least.dtype) == ((3, 2), "torch.bfloat16")
    assert torch.schemas["tilec_kernels::add"].endswith("-> (Tensor, Tensor)")


def sums_free(whole):
    return replace(whole, pipelines=())


def test_a_tensor_on_the_host_is_refused_by_the_name_that_it_was_given_for(tmp_path, imported):
    emitted(tmp_path, manifest(add_kernel()))
    ops, _ = imported("kernels_torch")
    x, y = (Tensor(np.zeros(4, np.float32)) for _ in range(2))
    x.is_cuda = False
    with pytest.raises(rt.ContractError, match="`x` lies in host memory"):
        ops.add(x, y, 1.0)


def test_fake_tensors_are_checked_without_a_device(tmp_path, imported):
    emitted(tmp_path, manifest(add_kernel(), add_kernel("f16", 256), copy_kernel()))
    _, torch = imported("kernels_torch")
    x, y, half, longer = (
        Tensor(np.zeros(n, t)) for n, t in ((5, "f4"), (5, "f4"), (5, "f2"), (6, "f4"))
    )
    fake = torch.fakes["tilec_kernels::add"]
    assert fake(half, half, 1.0).dtype == "torch.float16"
    with pytest.raises(rt.ContractError, match=r"(?s)no instance of `add`.*`y`: expected extent 5"):
        fake(x, longer, 1.0)
    with pytest.raises(rt.ContractError, match="`x`: expected elements of type `f16`, got `f32`"):
        fake(y, half, 1.0)
    into = torch.fakes["tilec_kernels::copy_out"]
    bytes_ = Tensor(np.zeros((4, 64), np.int8))
    assert into(bytes_, bytes_, 1) is None
    with pytest.raises(rt.ContractError, match=r"`copy__i8`: `source`: expected extent 64"):
        into(bytes_, Tensor(np.zeros((4, 63), np.int8)), 1)
    complex_ = Tensor(np.zeros(5, np.complex64))
    with pytest.raises(rt.ContractError, match=r"no element type of kernels is `torch\.complex64`"):
        fake(complex_, y, 1.0)


def test_derivatives_are_refused_rather_than_wrong(tmp_path, imported):
    emitted(tmp_path, manifest(add_kernel()))
    ops, torch = imported("kernels_torch")
    launched = launching(ops, manifest(add_kernel()))
    x, y = (Tensor(np.zeros(5, np.float32)) for _ in range(2))
    y.requires_grad = True
    ops.add(x, y, 1.0)
    torch.gradients = True
    calls = (ops.add, lambda *given: ops.add_out(x, *given), torch.fakes["tilec_kernels::add"])
    for call in calls:
        with pytest.raises(rt.ContractError, match=r"`tilec_kernels::add.*` has no derivative"):
            call(x, y, 1.0)
    assert len(launched) == 1
    torch.derivatives.add("tilec_kernels::add")
    ops.add(x, y, 1.0)
    assert len(launched) == 2


def test_names_do_not_meet(tmp_path, imported):
    other = replace(add_kernel(), name="add_out", symbol="add_out")
    emitted(tmp_path, replace(with_pipelines(sums()), kernels=(add_kernel(), other)))
    _, torch = imported("kernels_torch")
    names = [name.removeprefix("tilec_kernels::") for name in torch.schemas]
    assert names == ["add", "add_out_", "add_out", "add_out_out", "sums", "sums_out"]


@pytest.mark.parametrize(
    ("missing", "message"),
    [("torch", "kernels_torch.py needs PyTorch"), ("tilec.runtime", "needs the package tilec")],
)
def test_without_a_package_the_error_names_it(missing, message, tmp_path, imported, monkeypatch):
    emitted(tmp_path, manifest())
    imported("kernels")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=message):
        imported("kernels_torch")
