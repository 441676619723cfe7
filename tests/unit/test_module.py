"""Loading and launching, with a driver that only notes what it was asked."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from manifest_samples import add_kernel, copy_kernel, manifest
from noting_driver import NotingDriver, arrays, module
from test_embed import cubin

import tilec.runtime as rt
from tilec.artifact.architecture import runs_on
from tilec.artifact.embed import embed
from tilec.artifact.manifest import to_json
from tilec.runtime.elements import element_of, numpy_dtype


def test_a_call_launches_and_waits():
    driver = NotingDriver()
    add = module(driver).add
    add(*arrays(), 2.0)
    add(*arrays(), scale=2.0)
    launched = ("code", "add__f32_1024__v16", (1, 1, 1), 0)
    assert driver.log == ["loaded", *[launched, ("finished", 0)] * 2]


def test_a_launch_returns_a_handle():
    driver = NotingDriver()
    handle = module(driver)["add__f32_1024"].launch(*arrays(), 2.0, stream=7)
    assert driver.log[-1][-1] == 7 and not handle.done
    handle.wait()
    assert handle.done
    handle.wait()


def test_an_empty_grid_is_success():
    driver = NotingDriver()
    handle = module(driver).add.launch(*arrays(0), 2.0)
    assert handle.done
    handle.wait()
    module(driver).add(*arrays(0), 2.0)
    assert driver.log == [], "nothing is launched and nothing waited for"


def test_a_broken_contract_launches_nothing():
    driver = NotingDriver()
    z, x, y = arrays()
    for arguments in [(z, x, x._replace(shape=(7,)), 2.0), (z, z, y, 2.0), (z, x, 5, 2.0), (z, x)]:
        with pytest.raises(rt.ContractError):
            module(driver).add(*arguments)
    assert driver.log == []


def test_a_failure_on_the_gpu_names_the_kernel():
    handle = module(NotingDriver(RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS"))).add.launch(
        *arrays(), 2.0
    )
    with pytest.raises(rt.LaunchError, match=r"`add__f32_1024` failed.*ILLEGAL_ADDRESS"):
        handle.wait()


def test_kernels_are_found_by_name_and_by_symbol():
    loaded = module(NotingDriver(), add_kernel("f32"), add_kernel("bf16", 2048), copy_kernel())
    assert [k.symbol for k in loaded.add.kernels] == ["add__f32_1024", "add__bf16_2048"]
    assert [k.symbol for k in loaded["add__bf16_2048"].kernels] == ["add__bf16_2048"]
    assert loaded.add.__doc__ == "z = x + y"
    with pytest.raises(AttributeError, match="has no kernel `sub`; it has add, copy"):
        _ = loaded.sub
    with pytest.raises(KeyError, match="`sub`"):
        loaded["sub"]


def test_many_threads_load_the_code_once():
    driver = NotingDriver()
    add = module(driver).add
    threads = [threading.Thread(target=add, args=(*arrays(), 2.0)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert driver.log.count("loaded") == 1
    assert driver.log.count(("finished", 0)) == 16


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut off"),
        (b"not a cubin" * 20, "expected a cubin"),
        (cubin(), "holds no manifest"),
        (embed(cubin(), b"{"), "no JSON"),
        (embed(cubin(), b"\xff\xfe"), "no JSON"),
        (embed(cubin(), to_json(manifest()).encode())[:-40], "cut off"),
        (
            embed(cubin(), to_json(manifest(replace(add_kernel(), dims=()))).encode()),
            "the manifest is not sound: `add__f32_1024`: .* unknown `Dim` `N`",
        ),
    ],
)
def test_a_file_that_is_no_artifact_is_refused(data, message, tmp_path):
    path = tmp_path / "x.cubin"
    path.write_bytes(data)
    for source in (data, path, str(path)):
        with pytest.raises(rt.ArtifactError, match=message):
            rt.load(source)


def test_cubins_run_where_their_target_says():
    assert runs_on("sm_90a", 9, 0) and runs_on("sm_90", 9, 0) and runs_on("sm_80", 8, 6)
    assert not runs_on("sm_90a", 9, 1) and not runs_on("sm_80", 9, 0) and not runs_on("sm_86", 8, 0)
    assert runs_on("sm_100f", 10, 3) and not runs_on("sm_100a", 10, 3)
    assert runs_on("sm_120", 12, 0) and not runs_on("compute", 9, 0)


def test_dtypes_are_known_by_the_names_that_libraries_use():
    class TorchDtype:
        def __init__(self, text):
            self.text = text

        def __str__(self):
            return self.text

    assert element_of(TorchDtype("torch.bfloat16")) == "bf16"
    assert element_of(TorchDtype("torch.float32")) == "f32"
    assert element_of(TorchDtype("torch.complex64")) is None
    assert element_of(np.dtype(np.uint16)) == "u16"
    for element in ("bool", "i8", "u64", "f16", "f64", "bf16", "f8e4m3", "f8e5m2"):
        assert element_of(numpy_dtype(element)) == element


def test_importing_the_runtime_needs_no_gpu_and_none_of_the_compiler():
    code = (
        "import sys, tilec.runtime as rt\n"
        "assert not {m.split('.')[0] for m in sys.modules} & {'mlir', 'lark', 'islpy', 'cuda'}\n"
        "assert not any(m.startswith(('tilec.frontend', 'tilec.ir')) for m in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_a_device_the_error_says_so_each_time():
    code = (
        "import numpy as np, tilec.runtime as rt\n"
        "for _ in range(3):\n"
        "    try: rt.to_device(np.zeros(3))\n"
        "    except rt.NoDevice as error: print('no device:', error)\n"
        "    else: print('no device: there is one')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert run.stdout.count("no device:") == 3
