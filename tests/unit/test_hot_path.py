"""The C path of launches (hot_path.c): what it does, leaves to Python, and lets go of."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from noting_driver import NotingDriver, started_by_c
from test_launching import BASE, KINDS, arrays, f32_bits, module, of_runtime, of_torch

import tilec.runtime as rt
from tilec.runtime import launch, native

HERE = Path(native.__file__).parent
HEADERS = Path(sysconfig.get_paths()["include"])
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

needs_c_path = pytest.mark.skipif(native.built() is None, reason="there was no C compiler")


@pytest.fixture
def by_c(monkeypatch):
    """`add` of a driver, launched once by Python, which may launch no more if it is told so."""
    driver = NotingDriver()
    add = module(driver).add

    def left_to_python(*arguments):
        raise AssertionError("this launch was left to Python")

    def only_c():
        monkeypatch.setattr(add, "_start", left_to_python)

    return driver, add, only_c


def test_it_is_built_where_there_is_a_compiler(monkeypatch):
    monkeypatch.delenv("TILEC_PURE_PYTHON", raising=False)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python takes no such module")
    usable = native._usable(native._hot_path) is not None
    assert usable or not (COMPILERS and (HEADERS / "Python.h").exists())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_compiles_without_warnings(compiler, tmp_path):
    if not (HEADERS / "Python.h").exists():
        pytest.skip("there are no headers of Python")
    # Python's own way to tell of types is a cast of function pointers.
    options = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-cast-function-type"]
    command = [
        compiler,
        "-std=c99",
        "-O2",
        "-Werror",
        *options,
        "-isystem",
        HEADERS,
        "-fsyntax-only",
    ]
    subprocess.run([*command, HERE / "hot_path.c"], check=True)


def test_python_alone_is_an_option():
    code = "from tilec.runtime import native; assert native.built() is None"
    subprocess.run([sys.executable, "-c", code], check=True, env={"TILEC_PURE_PYTHON": "1"})


def test_what_was_built_of_another_source_is_not_used(tmp_path, monkeypatch):
    """An upgrade in place leaves it, and it is called as it no longer is."""
    monkeypatch.delenv("TILEC_PURE_PYTHON", raising=False)
    source = tmp_path / "hot_path.c"
    source.write_bytes(b"a")
    of_this = SimpleNamespace(source=0xE8B7BE43)  # the CRC-32 of an `a`
    assert native._usable(of_this, source) is of_this
    source.write_bytes(b"b")
    assert native._usable(of_this, source) is None
    assert native._usable(SimpleNamespace(), source) is None  # before it had a checksum
    source.unlink()
    assert native._usable(of_this, source) is of_this  # in a wheel


@needs_c_path
@KINDS
def test_what_was_launched_before_is_launched_by_c(by_c, kind):
    if kind not in (of_torch, of_runtime):
        pytest.skip("Python asks the protocols of other libraries")
    driver, add, only_c = by_c
    given = [*map(kind, arrays()), 2.0]
    add.launch(*given, stream=7)
    only_c()
    for scale in (0.5, 0.0, -0.0, 3):
        handle = add.launch(*given[:3], scale, stream=7)
        assert driver.cells[-1] == [BASE, BASE + 2**20, BASE + 2**21, f32_bits(scale), 1000]
        assert driver.log[-1] == ("code", "add__f32_1024__v16", (1, 1, 1), 7)
        assert (handle.stream, handle.entry.variant.symbol) == (7, "add__f32_1024__v16")
        _, addresses, is_foreign = handle.touched
        assert tuple(addresses) == (BASE, BASE + 2**20, BASE + 2**21)
        assert is_foreign == (kind is of_torch)


@needs_c_path
@pytest.mark.parametrize("wrong", ["2", None, 1e300, 2**200, [2.0], float])
def test_what_is_wrong_with_a_number_python_says(by_c, wrong):
    driver, add, _ = by_c
    given = list(map(of_runtime, arrays()))
    add.launch(*given, 2.0)
    launches = len(driver.cells)
    with pytest.raises(rt.ContractError) as first:
        add.launch(*given, wrong)
    with pytest.raises(rt.ContractError) as again:
        add.launch(*given, wrong)
    assert str(first.value) == str(again.value) and "`scale`" in str(first.value)
    assert len(driver.cells) == launches
    add.launch(*given, 2.0)
    assert len(driver.cells) == launches + 1


class Interrupted:
    """A tensor that is interrupted while it is asked."""

    dtype = shape = None

    @property
    def is_cuda(self):
        raise KeyboardInterrupt


@needs_c_path
def test_an_interrupt_is_the_users(by_c):
    _, add, only_c = by_c
    given = list(map(of_runtime, arrays()))
    add.launch(*given, 2.0)
    only_c()
    with pytest.raises(KeyboardInterrupt):
        add.launch(Interrupted(), *given[1:], 2.0)


@needs_c_path
@pytest.mark.parametrize("kind", [of_torch, of_runtime])
def test_nothing_is_kept_but_what_is_under_way(by_c, kind):
    driver, add, _ = by_c
    given = [*map(kind, arrays()), 2.0]

    def launch_many():
        for _ in range(500):
            add.launch(*given)
            with pytest.raises(rt.ContractError):
                add.launch(*given[:3], "no")
        for _ in range(2):
            launch.UNDER_WAY.settle()
            for event in driver.events:
                event.is_done = True
        driver.__init__()
        gc.collect()
        return len(gc.get_objects()), [sys.getrefcount(one) for one in (*given, 0, None)][:4]

    add.launch(*given)
    launch_many()
    objects, counts = launch_many()
    for _ in range(3):
        more_objects, more_counts = launch_many()
        assert more_objects - objects < 100
        assert more_counts == counts


@needs_c_path
def test_a_frame_goes_with_its_entry():
    """A frame's function refers to itself by what it calls when a launch is refused."""
    cells, freed = [], []

    class Held:
        def __del__(self):
            freed.append(1)

    def made():
        held = Held()
        start = native.built().Start(
            launch=0, function=0, grid=(1, 1, 1), threads=1, shared_bytes=0, parameters=0, cells=0,
            config=0, maps=(), device=-1, device_of_stream=0, current_device=0,
            renew=lambda: start, refused=None, elsewhere=None, held=held,
        )  # fmt: skip
        cells.append(id(start))

    made()
    gc.collect()
    assert freed == [1]


@needs_c_path
def test_launches_that_the_driver_refuses_are_told_and_their_frame_is_not_used_again(by_c):
    driver, add, _ = by_c
    given = [*map(of_runtime, arrays()), 2.0]
    refusals = []

    def refused(status, stream):
        refusals.append((status, stream))
        raise rt.LaunchError("no")

    def prepared(code, entry, cells, early=False):
        return started_by_c(lambda stream: 700 if stream == 13 else 0, cells, refused)

    driver.prepared = prepared
    add.launch(*given, stream=13 - 1)
    launch.UNDER_WAY.__init__()
    with pytest.raises(rt.LaunchError, match="no"):
        add.launch(*given, stream=13)  # by Python, since another stream comes first
    [entry] = {id(e): e for f in add._planner.known.values() for e in f.entries.values()}.values()
    assert entry.frames == []
    launch.UNDER_WAY.__init__()
    add.launch(*given, stream=12)
    launch.UNDER_WAY.only = 13
    with pytest.raises(rt.LaunchError, match="no"):
        add.launch(*given, stream=13)
    assert entry.frames == [] and refusals == [(700, 13)] * 2


@needs_c_path
@pytest.mark.parametrize("kind", [of_torch, of_runtime])
def test_where_memory_is_short_no_launch_is_lost(by_c, kind):
    """It is started and held, or left to Python: each allocation of it fails in turn."""
    testcapi = pytest.importorskip("_testcapi")
    driver, add, _ = by_c
    accepts = ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p).value  # abs(function) is 0
    driver.prepared = lambda code, entry, cells: native.built().Start(
        launch=accepts, function=0, grid=(1, 1, 1), threads=1, shared_bytes=0, parameters=0,
        cells=cells.buffer_info()[0], config=0, maps=(), device=-1, device_of_stream=0,
        current_device=0, renew=None, refused=None, elsewhere=None, held=cells,
    )  # fmt: skip
    given = *map(kind, arrays()), 2.0
    gathered = launch.UNDER_WAY._gathered
    outcomes = []
    for number in range(80):
        add.launch(*given)
        gathered.clear()
        launch.UNDER_WAY._room = launch.LIMIT
        hot_start = add._hot_start
        testcapi.set_nomemory(number, number + 1)
        try:
            handle = hot_start(given, None, None, False, None)
        finally:
            testcapi.remove_mem_hooks()
        outcomes.append(handle is not None)
        assert list(gathered) == ([] if handle is None else [handle])
    assert not outcomes[0] and outcomes[-1]


@needs_c_path
@pytest.mark.parametrize(
    "arguments", [(), (1, None, 1, False, 1), ((), None, 1, False), ((), None, 1, False, 1, 2)]
)
def test_it_is_called_as_the_launcher_calls_it(by_c, arguments):
    _, add, _ = by_c
    add.launch(*map(of_runtime, arrays()), 2.0)
    with pytest.raises(TypeError):
        add._hot_start(*arguments)


@needs_c_path
def test_kernels_of_many_tensors_are_left_to_python():
    parts = {
        "count": 40, "tensor_at": tuple(range(40)), "deciding_at": (), "several": False,
        "known": {}, "driver": None, "under_way": launch.UNDER_WAY, "launch": launch.Launch,
        "tensor": rt.Tensor, "array": replace, "current_stream": None,
    }  # fmt: skip
    assert native.built().HotPath(**parts).start((0,) * 40, None, None, False, None) is None
