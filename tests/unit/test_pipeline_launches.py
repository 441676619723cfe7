"""Pipelines on a driver that notes what it is asked: what is launched, where, with which memory."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
from manifest_samples import add_kernel, manifest
from noting_driver import WORKSPACE, NotingDriver, arrays, module_of
from pipeline_samples import launch, sums, with_pipelines
from test_launching import (
    NO_ADDRESSES,
    OfProtocol,
    TorchTensor,
    f32_bits,
    of_runtime,
    of_torch,
)

import tilec.runtime as rt
from tilec.artifact.pipeline import Argument, Temporary
from tilec.artifact.signature import Parameter, Requirement
from tilec.runtime import graph as graph_module
from tilec.runtime import launch as launch_module
from tilec.runtime import pipeline as pipeline_module
from tilec.runtime.array import Array, Imported

pytestmark = pytest.mark.usefixtures("launch_path")

BASE = 2**40
SLOT = 4096  # of 1000 f32: 4000 bytes, rounded up to 256
A, B, C, D = WORKSPACE, WORKSPACE + SLOT, WORKSPACE + 2 * SLOT, WORKSPACE


@pytest.fixture(autouse=True)
def nothing_under_way(monkeypatch):
    under_way = launch_module.UnderWay()
    for name in ("launch", "launcher", "tensor", "pipeline", "graph"):
        monkeypatch.setattr(f"tilec.runtime.{name}.UNDER_WAY", under_way)


def loaded(driver, *pipelines):
    return module_of(driver, with_pipelines(*pipelines))


def early(kernel):
    return replace(
        kernel, variants=tuple(replace(one, starts_early=True) for one in kernel.variants)
    )


def loaded_early(driver, *pipelines):
    made = with_pipelines(*pipelines)
    return module_of(driver, replace(made, kernels=tuple(map(early, made.kernels))))


def given(n=1000):
    out, x, _ = arrays(n)
    return out, x


def launches(driver):
    """What was started: variant and stream."""
    return [entry[1:] for entry in driver.log if entry[0] == "code"]


# What one call launches


KINDS = pytest.mark.parametrize("kind", [of_torch, of_runtime, OfProtocol, lambda array: array])


@KINDS
def test_a_call_launches_all_in_order_with_one_workspace(kind):
    driver = NotingDriver()
    out, x = given()
    pipeline = loaded(driver).sums
    for _ in range(2):
        driver.log.clear()
        driver.cells.clear()
        pipeline(kind(out), kind(x), 0.5)
        wide = ("add__f32_1024__v16", (1, 1, 1), 0)
        kept = [e for e in driver.log if e[0] not in ("l", "imported") and e != "loaded"]
        assert kept == [
            ("allocated", 3 * SLOT, 0),
            *[("code", *wide)] * 5,
            ("freed", WORKSPACE, 0),
            ("finished", 0),
        ]
        assert [cells[:3] for cells in driver.cells] == [
            [A, x.pointer, x.pointer],
            [B, x.pointer, x.pointer],
            [C, A, B],
            [D, C, C],
            [out.pointer, D, D],
        ]
        assert all(cells[3:] == [f32_bits(0.5), 1000] for cells in driver.cells)


def test_each_call_has_its_own_addresses_and_scalars():
    driver = NotingDriver()
    pipeline = loaded(driver).sums
    out, x = given()
    for offset, scale in ((0, 1.0), (0, 1.0), (16, 2.0), (16, -0.0), (0, 0.0), (0, 0.0)):
        driver.cells.clear()
        pipeline(out._replace(pointer=out.pointer + offset), x, scale)
        assert driver.cells[0][:2] == [A, x.pointer]
        assert driver.cells[-1][0] == out.pointer + offset
        assert {cells[3] for cells in driver.cells} == {f32_bits(scale)}


def test_alignment_chooses_the_variant_of_each_launch():
    driver = NotingDriver()
    pipeline = loaded(driver).sums
    out, x = given()
    for offset in (4, 0, 4):
        driver.log.clear()
        pipeline(out, x._replace(pointer=x.pointer + offset), 1.0)
        wide, narrow = "add__f32_1024__v16", "add__f32_1024"
        of_x = narrow if offset else wide
        assert [one[0] for one in launches(driver)] == [of_x, of_x, wide, wide, wide]


def test_a_workspace_of_the_caller_is_used_and_left_alone():
    driver = NotingDriver()
    pipeline = loaded(driver).sums
    out, x = given()
    assert pipeline.workspace_bytes(out, x, 1.0) == 3 * SLOT
    memory = Array(2**45, "u8", (3 * SLOT,), (1,), 0)
    for kind in (
        of_runtime,
        OfProtocol,
        lambda array: array,
        lambda array: array._replace(shape=(1, 3 * SLOT), strides=(7, 1)),
    ):
        driver.log.clear()
        handle = pipeline.launch(out, x, 1.0, workspace=kind(memory))
        assert driver.cells[-1][1] == 2**45
        assert not [e for e in driver.log if e[0] in ("allocated", "freed")]
        assert not handle.done


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (3 * SLOT - 1,)}, "expected a workspace of 12288 bytes, got 12287"),
        ({"pointer": 2**45 + 128}, "expected a workspace at a multiple of 256 bytes"),
        ({"pointer": 0}, "expected a workspace at a multiple of 256 bytes"),
        ({"device": 1}, "the workspace is on device 1, the tensors on 0"),
        ({"read_only": True}, "read-only"),
        ({"shape": (SLOT, 3), "strides": (4, 1)}, "without gaps"),
        ({"pointer": BASE - 256}, "the workspace overlaps `out`: bytes"),
        ({"pointer": BASE + 2**20 + 3840}, "the workspace overlaps `x`: bytes"),
    ],
)
def test_a_workspace_that_will_not_do_is_refused(change, message):
    driver = NotingDriver()
    memory = Array(2**45, "u8", (3 * SLOT,), (1,), 0)._replace(**change)
    with pytest.raises(rt.ContractError, match=f"`sums`: .*{message}"):
        loaded(driver).sums.launch(*given(), 1.0, workspace=memory)
    assert not driver.cells


def test_a_tensor_without_elements_may_be_anywhere():
    empty = Parameter("e", "tensor", "f32", ("M",), "shared")
    whole = replace(sums(), parameters=(*sums().parameters, empty), dims=("N", "M"))
    driver = NotingDriver()
    memory = Array(2**45, "u8", (3 * SLOT,), (1,), 0)
    nothing = Array(2**45 + SLOT, "f32", (0,), (1,), 0)
    loaded(driver, whole).sums.launch(*given(), 1.0, nothing, workspace=memory)
    assert len(driver.cells) == 5


def test_a_pipeline_without_temporaries_asks_for_no_memory():
    driver = NotingDriver()
    twice = replace(sums(), temporaries=(), launches=(launch("out", "x", "x", (), 5),))
    pipeline = loaded(driver, twice).sums
    pipeline(*given(), 1.0)
    assert [e[0] for e in driver.log if e != "loaded"] == ["code", "finished"]
    assert pipeline.workspace_bytes(*given(), 1.0) == 0


def test_without_elements_nothing_is_launched():
    driver = NotingDriver()
    pipeline = loaded(driver).sums
    out, x = (one._replace(pointer=0) for one in given(0))
    pipeline(out, x, 1.0)
    assert pipeline.launch(out, x, 1.0, streams=3).done
    graph = pipeline.graph(out, x, 1.0)
    assert graph.replay().done
    assert not driver.log


def part_is_empty():
    """`b` has no elements, and so its launch no programs: the order goes through it."""
    base = sums()
    temporaries = (
        Temporary("a", "f32", ("N",), 0),
        Temporary("b", "f32", (("sub", "N", "N"),), 1),
    )
    launches = (
        launch("a", "x", "x", (), 32),
        launch("b", "b", "b", (0,), 33),
        launch("out", "a", "a", (1,), 34),
    )
    # A launch that reads what it writes is unsound; `e` is empty as `b` is.
    e = Temporary("e", "f32", (("sub", "N", "N"),), 2)
    launches = (launches[0], launch("b", "e", "e", (0,), 33), launches[2])
    return replace(base, temporaries=(*temporaries, e), launches=launches)


def test_launches_without_programs_are_left_out_and_keep_the_order():
    driver = NotingDriver()
    pipeline = loaded_early(driver, part_is_empty()).sums
    assert [plan.grid for plan in pipeline.plan(*given(), 1.0).launches] == [
        (1, 1, 1),
        None,
        (1, 1, 1),
    ]
    pipeline.launch(*given(), 1.0, streams=3)
    assert len(driver.cells) == 2 and not [e for e in driver.log if e[0] == "wait"]
    pipeline.graph(*given(), 1.0).replay()
    [(_, nodes, _)] = [e for e in driver.log if e[0] == "replayed"]
    assert [node[2:] for node in nodes] == [((), False), ((0,), True)]


def scaled():
    """`factor` decides nothing but what launches are given; `count` decides extents."""
    base = sums()
    return replace(
        base,
        parameters=(
            *base.parameters[:2],
            Parameter("factor", "scalar", "i32"),
            Parameter("count", "scalar", "usize"),
        ),
        requires=(Requirement("count < N", ("lt", "count", "N"), 31),),
        temporaries=(Temporary("a", "f32", (("add", "N", ("mul", "count", 0)),), 0),),
        launches=(
            launch("a", "x", "x", (), 32, ("mul", "factor", 3)),
            launch("out", "a", "a", (0,), 33, ("mul", "N", 2)),
        ),
    )


def test_scalars_of_launches_follow_from_those_of_the_call():
    driver = NotingDriver()
    pipeline = loaded(driver, scaled()).sums
    for factor, count in ((5, 7), (5, 7), (-4, 7), (-4, 8), (-4, 8)):
        driver.cells.clear()
        pipeline(*given(), factor, count)
        assert [cells[3] for cells in driver.cells] == [f32_bits(3 * factor), f32_bits(2000)]
    plan = pipeline.plan(*given(), 6, 0, workspace=2**45)
    assert [float(one.arguments[3]) for one in plan.launches] == [18.0, 2000.0]
    assert plan.launches[1].arguments[1] == 2**45


# What is refused


@KINDS
def test_a_broken_contract_launches_nothing(kind):
    driver = NotingDriver()
    pipeline = loaded(driver).sums
    out, x = given()
    pipeline(out, x, 1.0)
    before = len(driver.cells)
    for wrong, message in [
        ((out, out), "`out` is written and overlaps `x`"),
        ((out, x._replace(shape=(999,))), "`x`: expected extent 1000 of axis 0"),
        ((out, x._replace(element="f16")), "`x`: expected elements of type `f32`, got `f16`"),
        ((out, x._replace(strides=(2,))), "`x`: expected stride 1"),
        ((out, x._replace(device=1)), "`x` is on device 1, `out` on device 0"),
        ((out, x._replace(pointer=0)), "`x` has no memory"),
        ((out, x._replace(pointer=x.pointer + 2)), "`x`: expected an address"),
        (given(1_000_000), r"`requires!\(N < 1000000\)` does not hold, where N = 1000000"),
    ]:
        if kind is of_torch:
            tensors = [
                TorchTensor(a.pointer, a.shape, a.strides, f"torch.{DTYPES[a.element]}", a.device)
                for a in wrong
            ]
        else:
            tensors = map(kind, wrong)
        tensors = list(tensors)
        for act in (
            pipeline,
            pipeline.launch,
            lambda *a: pipeline.launch(*a, streams=2),
            pipeline.graph,
        ):
            with pytest.raises(rt.ContractError, match=f"^`sums`: {message}"):
                act(*tensors, 1.0)
    for scale in (1e39, "2", None, [1.0], True):
        with pytest.raises(rt.ContractError, match=r"^`sums`: `scale`"):
            pipeline(kind(out), kind(x), scale)
    assert len(driver.cells) == before


DTYPES = {"f32": "float32", "f16": "float16"}


def test_a_launch_that_does_not_fit_is_named_with_line_kernel_and_argument():
    driver = NotingDriver()
    wrong = replace(
        sums(),
        temporaries=(Temporary("a", "f32", (("add", "N", 1),), 0),),
        launches=(launch("a", "x", "x", (), 32), launch("out", "x", "x", (), 33)),
    )
    pipeline = loaded(driver, wrong).sums
    with pytest.raises(rt.ContractError) as raised:
        pipeline(*given(), 1.0)
    assert str(raised.value) == (
        "`sums`: the launch of `add` in sums.tile:32 (z = a, x = x, y = x): "
        "no instance of `add` takes these arguments\n"
        "  `add__f32_1024`: `x`: expected extent 1001 of axis 0 (`N`, as axis 0 of `z`), got 1000\n"
        "  `add__f32_256`: `x`: expected extent 1001 of axis 0 (`N`, as axis 0 of `z`), got 1000"
    )
    assert not driver.cells


def test_a_scalar_that_a_launch_does_not_take_is_refused_before_anything_runs():
    driver = NotingDriver()
    base = scaled()
    huge = launch("out", "a", "a", (0,), 33, ("select", ("ne", "factor", 0), 10**39, 0))
    pipeline = loaded(driver, replace(base, launches=(base.launches[0], huge))).sums
    for factor in (1, 0, 2):
        driver.cells.clear()
        if factor == 0:
            pipeline(*given(), factor, 1)
            assert len(driver.cells) == 2
            continue
        message = r"`sums`: the launch of `add` in sums.tile:33 .*: .*`scale`: .* out of the range"
        with pytest.raises(rt.ContractError, match=message):
            pipeline(*given(), factor, 1)
        assert not driver.cells
        assert [e[0] for e in driver.log].count("allocated") == [e[0] for e in driver.log].count(
            "freed"
        )


def test_an_extent_that_no_temporary_can_have_is_refused():
    negative = replace(sums(), temporaries=(Temporary("a", "f32", (("sub", 5, "N"),), 0),))
    only = replace(negative, launches=(launch("out", "x", "x", (), 3),))
    with pytest.raises(rt.ContractError, match="`sums`: the temporary `a` has the extent -995"):
        loaded(NotingDriver(), only).sums(*given(), 1.0)


def test_arguments_are_counted_and_named():
    pipeline = loaded(NotingDriver()).sums
    out, x = given()
    pipeline(scale=1.0, x=x, out=out)
    expected = r"`sums`: expected 3 arguments \(out, x, scale\)"
    with pytest.raises(rt.ContractError, match=f"{expected}, got 4"):
        pipeline(out, x, 1.0, 2.0)
    with pytest.raises(rt.ContractError, match=f"{expected}; `scale` is missing"):
        pipeline.launch(out, x)
    for streams in (0, -1, 2.0, True, None):
        with pytest.raises(rt.ContractError, match="`sums`: expected a number of streams"):
            pipeline.launch(out, x, 1.0, streams=streams)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            rt.LaunchError("`add` was not launched: no"),
            r"`sums`: the launch of `add` in sums.tile:33 .*: `add` was not launched: no",
        ),
        (KeyboardInterrupt(), None),
    ],
)
def test_a_run_that_ends_early_names_the_launch_and_keeps_what_runs(error, message):
    class Refusing(NotingDriver):
        def prepared(self, code, entry, cells, early=False):
            start = super().prepared(code, entry, cells, early)

            def refuse(stream):
                if len(self.cells) == 1:
                    raise error
                start(stream)

            return refuse

    for streams in (1, 3):
        driver = Refusing()
        pipeline = loaded(driver).sums
        with pytest.raises(type(error), match=message):
            pipeline.launch(*given(), 1.0, streams=streams, stream=SimpleNamespace(address=5))
        assert driver.log[-1] == ("freed", WORKSPACE, 5)
        assert len(driver.cells) == 1
        if streams > 1:  # what was started elsewhere comes before what the stream is given next
            assert driver.log[-3][0] == "record" and driver.log[-2][::2] == ("wait", 5)
        assert not driver.events
        pipeline_module.UNDER_WAY.settle()
        assert len(driver.events) == 1  # what was launched is held until it is done


# Streams


def test_launches_without_order_run_side_by_side():
    driver = NotingDriver()
    loaded(driver).sums.launch(*given(), 1.0, stream=5, streams=4)
    code = "code", "add__f32_1024__v16", (1, 1, 1)
    fork, done = 1, 2
    assert driver.log[1:] == [
        ("allocated", 3 * SLOT, 5),
        ("record", fork, 5),
        (*code, 5),
        ("wait", fork, 9000),
        (*code, 9000),
        ("record", done, 9000),
        ("wait", done, 5),
        *[(*code, 5)] * 3,
        ("freed", WORKSPACE, 5),
    ]


def test_early_launches_follow_another_on_their_stream():
    driver = NotingDriver()
    pipeline = loaded_early(driver).sums
    pipeline.launch(*given(), 1.0)
    assert [one[-1] == "early" for one in launches(driver)] == [False, True, True, True, True]
    driver.log.clear()
    pipeline.launch(*given(), 1.0, streams=4)
    assert [one[-1] == "early" for one in launches(driver)] == [False, False, False, True, True]


def test_only_variants_that_may_start_early_do():
    driver = NotingDriver()
    loaded(driver).sums.launch(*given(), 1.0)
    assert len(launches(driver)) == 5 and all(one[-1] == 0 for one in launches(driver))


def test_tensors_of_torch_are_worked_on_its_current_stream(monkeypatch):
    from tilec.runtime import foreign

    torch = SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream={0: 77}.__getitem__))
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    monkeypatch.setattr(foreign, "_ask", None)
    driver = NotingDriver()
    pipeline = loaded(driver).sums
    out, x = given()
    for tensors in ((of_torch(out), x), (OfProtocol(out), of_torch(x))):
        pipeline.launch(*tensors, 1.0)
        assert launches(driver)[-1][-1] == 77
        pipeline(*tensors, 1.0)
        assert driver.log[-1] == ("finished", 77)
        pipeline.graph(*tensors, 1.0).replay()
        assert driver.log[-1][0] == "replayed" and driver.log[-1][-1] == 77
        pipeline.launch(*tensors, 1.0, stream=5)
        assert launches(driver)[-1][-1] == 5
    assert {e[-1] for e in driver.log if e[0] == "imported"} == {77, 5}


def test_threads_that_launch_at_once_have_their_own_arguments():
    both = threading.Barrier(2, timeout=20)

    class SlowDriver(NotingDriver):
        def prepared(self, code, entry, cells, early=False):
            def start(stream):
                both.wait()
                self.cells.append(list(cells))

            return start

    driver = SlowDriver()
    pipeline = loaded(driver).sums
    out, x = given()

    def work(offset):
        for _ in range(5):
            pipeline.launch(out._replace(pointer=out.pointer + offset), x, float(offset))

    threads = [threading.Thread(target=work, args=(offset,)) for offset in (16, 32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = [cells for cells in driver.cells if cells[0] not in (A, B, C)]
    assert sorted(ends) == [
        [out.pointer + o, D, D, f32_bits(float(o)), 1000] for o in (16, 32) for _ in range(5)
    ]


# Instances


def test_the_instance_follows_from_the_types():
    driver = NotingDriver()
    kernels = [add_kernel(element) for element in ("f32", "f16")]
    pipelines = []
    for element, kernel in zip(("f32", "f16"), kernels, strict=True):
        base = sums()
        tensors = tuple(replace(p, element=element) if p.is_tensor else p for p in base.parameters)
        one = replace(launch("out", "x", "x", (), 3), instances=(kernel.symbol,))
        pipelines.append(
            replace(
                base, symbol=f"sums__{element}", parameters=tensors, temporaries=(), launches=(one,)
            )
        )
    module = module_of(driver, replace(manifest(*kernels), pipelines=tuple(pipelines)))
    out, x = given()
    for element in ("f32", "f16", "f32"):
        module.sums(out._replace(element=element), x._replace(element=element), 1.0)
        assert launches(driver)[-1][0] == f"add__{element}_1024__v16"
    with pytest.raises(rt.ContractError, match=r"no instance of `sums` .*\n  `sums__f32`: `out`"):
        module.sums(out._replace(element="f64"), x, 1.0)
    with pytest.raises(rt.ContractError, match="`sums__f16`: `out`: expected elements"):
        module["sums__f16"](out, x, 1.0)
    assert "sums__f16" in dir(module) and module.sums.__doc__ == "out = 8 x"
    with pytest.raises(AttributeError, match="it has add, sums"):
        _ = module.other


def test_a_launch_may_turn_a_tensor():
    """`axes` leave the last axis where it is; strides go with their axes."""
    driver = NotingDriver()
    kernel = add_kernel()
    cubes = tuple(
        replace(p, extents=("A", "B", "N"), block=(1, 1, 1024) if p.block else ())
        if p.is_tensor
        else p
        for p in kernel.parameters
    )
    from tilec.artifact.abi import slots_of

    dims = ("A", "B", "N")
    variants = tuple(
        replace(one, slots=slots_of(cubes, dims), preconditions=()) for one in kernel.variants[1:]
    )
    kernel = replace(
        kernel, parameters=cubes, dims=dims, grid=("A", "B", ("ceildiv", "N", 1024)),
        variants=variants, accesses=(),
    )  # fmt: skip
    base = sums()
    turned = replace(launch("out", "x", "x", (), 3), instances=(kernel.symbol,))
    arguments = (
        turned.arguments[0],
        Argument("x", "x", axes=(1, 0, 2)),
        *turned.arguments[2:],
    )
    arguments = (arguments[0], arguments[1], Argument("y", "x", axes=(1, 0, 2)), arguments[3])
    pipeline = replace(
        base,
        parameters=(
            Parameter("out", "tensor", "f32", ("P", "Q", "N"), "mut"),
            Parameter("x", "tensor", "f32", ("Q", "P", "N"), "shared"),
            base.parameters[2],
        ),
        dims=("P", "Q", "N"),
        temporaries=(),
        launches=(replace(turned, arguments=arguments),),
    )
    module = module_of(driver, replace(manifest(kernel), pipelines=(pipeline,)))
    out = Array(BASE, "f32", (2, 3, 8), (24, 8, 1), 0)
    x = Array(2 * BASE, "f32", (3, 2, 8), (100, 50, 1), 0)
    module.sums(out, x, 1.0)
    assert driver.cells == [
        [BASE, 24, 8, 2 * BASE, 50, 100, 2 * BASE, 50, 100, f32_bits(1.0), 2, 3, 8]
    ]


# Graphs


class Stream:
    def __init__(self, address):
        self.address = address


def test_a_graph_has_a_node_for_each_launch_and_a_workspace_of_its_own():
    driver = NotingDriver()
    out, x = given()
    graph = loaded_early(driver).sums.graph(out, x, 0.5)
    assert not driver.cells
    handle = graph.replay(Stream(5))
    [(_, nodes, stream)] = [e for e in driver.log if e[0] == "replayed"]
    assert stream == 5 and not handle.done
    memory = WORKSPACE + 2**20
    a, b, c, d = memory, memory + SLOT, memory + 2 * SLOT, memory
    assert [cells[:3] for _, cells, _, _ in nodes] == [
        [a, x.pointer, x.pointer],
        [b, x.pointer, x.pointer],
        [c, a, b],
        [d, c, c],
        [out.pointer, d, d],
    ]
    assert all(cells[3:] == [f32_bits(0.5), 1000] for _, cells, _, _ in nodes)
    assert [node[2] for node in nodes] == [(), (), (0, 1), (2,), (3,)]
    assert [node[3] for node in nodes] == [False, False, False, True, True]
    assert [e for e in driver.log if e[0] in ("allocated", "freed")] == [
        ("allocated", 3 * SLOT, None)
    ]


def replayed(driver):
    """The cells of the last replay."""
    return [cells for _, cells, _, _ in [e for e in driver.log if e[0] == "replayed"][-1][1]]


def test_an_update_changes_arguments_by_name():
    driver = NotingDriver()
    out, x = given()
    graph = loaded(driver).sums.graph(out, x, 0.5)
    other = x._replace(pointer=2**41)
    graph.update(x=other)
    graph.replay()
    assert replayed(driver)[0][1] == 2**41 and replayed(driver)[-1][0] == out.pointer
    graph.update(scale=2.0)
    graph.replay()
    assert {cells[3] for cells in replayed(driver)} == {f32_bits(2.0)}
    assert replayed(driver)[0][1] == 2**41
    graph.update(x=x._replace(pointer=x.pointer + 4))  # another variant, the same graph
    graph.replay()
    assert [e for e in driver.log if e[0] == "built"] == [("built", 5)]
    assert [e[1][0][0] for e in driver.log if e[0] == "replayed"][-1] == "add__f32_1024"


def test_other_sizes_have_another_workspace():
    driver = NotingDriver()
    out, x = given(2000)
    graph = loaded(driver).sums.graph(*given(), 0.5)
    graph.replay()
    graph.update(out=out, x=x)
    graph.replay()
    assert [e[1] for e in driver.log if e[0] == "allocated"] == [3 * SLOT, 3 * 2 * SLOT]
    assert replayed(driver)[0][-1] == 2000 and replayed(driver)[1][0] == WORKSPACE + 2**21 + 8192


def test_a_graph_goes_to_another_device_with_its_arguments():
    driver = NotingDriver()
    graph = loaded(driver).sums.graph(*given(), 0.5)
    out, x = (one._replace(device=1) for one in given())
    with pytest.raises(rt.ContractError, match="`x` is on device 0, `out` on device 1"):
        graph.update(out=out)
    built = []
    driver.built_graph = lambda code, entry, nodes: built.append((entry.device, nodes))
    graph.update(out=out, x=x)
    [(device, nodes)] = built
    assert device == 1 and {node.entry.device for node in nodes} == {1}


def test_a_graph_of_another_form_begins_when_the_last_one_is_done():
    driver = NotingDriver()
    graph = loaded(driver).sums.graph(*given(), 0.5)
    graph.replay(Stream(5))
    empty = given(0)
    graph.update(out=empty[0], x=empty[1])
    assert graph.replay().done
    out, x = given()
    graph.update(out=out, x=x)
    assert [e for e in driver.log if e[0] == "built"] == [("built", 5)] * 2
    graph.replay(Stream(6))
    [last] = driver.events
    assert driver.log[-2] == ("wait", last, 6) and driver.log[-1][::2] == ("replayed", 6)
    graph.replay(Stream(7))
    assert driver.log[-2][0] == "replayed"  # CUDA orders launches of one graph


def test_a_refused_update_leaves_the_graph_as_it_was():
    driver = NotingDriver()
    out, x = given()
    graph = loaded(driver).sums.graph(out, x, 0.5)
    graph.replay()
    before = replayed(driver)
    for changes, message in [
        ({"x": x._replace(shape=(5,))}, "`sums`: `x`: expected extent 1000"),
        ({"x": out}, "`sums`: `out` is written and overlaps `x`"),
        ({"scale": "2"}, "`sums`: `scale`: expected a number"),
        ({"y": x}, r"`sums`: expected names of parameters \(out, x, scale\), got `y`"),
    ]:
        with pytest.raises(rt.ContractError, match=message):
            graph.update(**changes)
        graph.replay()
        assert replayed(driver) == before
    graph._executable.refuses = True
    with pytest.raises(rt.LaunchError):
        graph.update(scale=3.0)
    graph._executable.refuses = False
    graph.update(x=x)
    graph.replay()
    assert replayed(driver) == before


def test_a_graph_owns_its_arguments():
    driver = NotingDriver()
    out, x = map(of_torch, given())
    alive = weakref.ref(x)
    graph = loaded(driver).sums.graph(out, x, 0.5)
    del x
    graph.replay(Stream(5))
    graph.update(x=of_torch(given()[1]))
    assert alive() is not None, "the launch that runs reads it"
    graph_module.UNDER_WAY.settle()
    driver.events[0].is_done = True
    graph_module.UNDER_WAY.settle()
    gc.collect()
    assert alive() is None


def test_a_closed_graph_keeps_what_runs_and_takes_no_more():
    driver = NotingDriver()
    out, x = map(of_torch, given())
    alive = weakref.ref(x)
    with loaded(driver).sums.graph(out, x, 0.5) as graph:
        del x
        graph.replay()
        assert repr(graph) == "Graph(sums, 5 launches)"
    assert alive() is not None and repr(graph) == "Graph(sums, closed)"
    for use in (graph.replay, lambda: graph.update(scale=1.0)):
        with pytest.raises(rt.TilecError, match="the graph of `sums` is closed"):
            use()
    graph.close()
    graph_module.UNDER_WAY.settle()
    driver.events[0].is_done = True
    graph_module.UNDER_WAY.settle()
    gc.collect()
    assert alive() is None


def test_handles_of_pipelines_hold_what_they_borrow():
    driver = NotingDriver(RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS"))
    out, x = map(of_torch, given())
    memory = of_runtime(Array(2**45, "u8", (3 * SLOT,), (1,), 0))
    alive = weakref.ref(x)
    handle = loaded(driver).sums.launch(out, x, 1.0, workspace=memory, stream=Stream(5))
    del x
    gc.collect()
    assert alive() is not None and repr(handle) == "Launch(sums, under way)"
    with pytest.raises(rt.LaunchError, match="`sums` failed on the GPU"):
        handle.wait()


def test_launches_of_a_graph_share_events_however_much_it_holds():
    driver = NotingDriver()
    out, x = given(999_999)
    graph, many = loaded(driver).sums.graph(out, x._replace(pointer=2**43), 1.0), 200
    for _ in range(many):
        graph.replay(Stream(5))
    assert 1 <= len(driver.events) <= many // launch_module.LIMIT + 1


class Importing(NotingDriver):
    """Imports what other libraries export; `views` are those that still keep memory."""

    def __init__(self):
        super().__init__()
        self.views = weakref.WeakSet()

    def array_of(self, name, given, stream):
        found = Imported(*super().array_of(name, given, stream))
        found.held = Stream(0)
        self.views.add(found.held)
        return found


def test_what_other_libraries_export_is_theirs_again_when_all_is_done():
    driver = Importing()
    module = loaded(driver)
    out, x = map(OfProtocol, given())
    memory = OfProtocol(Array(2**45, "u8", (3 * SLOT,), (1,), 0))
    calls = [
        (3, lambda: module["add__f32_1024"].launch(out, x, x, 1.0).wait),
        (3, lambda: module.sums.launch(out, x, 1.0, workspace=memory).wait),
        (0, lambda: module.sums.plan(out, x, 1.0) and None),
    ]
    for count, call in calls:
        end = call()
        gc.collect()
        assert len(driver.views) == count
        if end is not None:
            end()
        del end
        gc.collect()
        assert not driver.views, "nothing that is remembered keeps it"
    graph = module.sums.graph(out, x, 1.0)
    handle = graph.replay()
    graph.close()
    assert len(driver.views) == 2
    handle.wait()
    gc.collect()
    assert not driver.views


@NO_ADDRESSES
def test_what_is_no_address_is_refused_by_name(wrong):
    driver = NotingDriver()
    pipeline = loaded(driver, sums()).sums
    out, x = given()
    for broken in (x._replace(pointer=wrong), of_torch(x._replace(pointer=wrong))):
        for _ in range(2):  # of new shapes, then of known ones
            with pytest.raises(rt.ContractError, match="`x`: expected an address"):
                pipeline.launch(out, broken, 1.0)
            pipeline.launch(out, x, 1.0)
