"""Kernels on a GPU, from cubins that were built elsewhere.

This needs Python, numpy, pytest and cuda-python, a GPU, and a folder of cubins: `build/`, or what
the environment variable TILEC_CUBINS names. It runs in a bundle (`make gpu-bundle` makes one) or in
the repository (`make test-gpu`). Everything here is marked `gpu`, and skipped, with the reason,
where there is no device or no cubin. With TILEC_DRY_RUN set it needs the compiler in place of a
GPU: the CPU execution runs the kernels (`host_driver`), which tries the tests themselves.

After a kernel that faults CUDA refuses all else, so the run ends there; with TILEC_ISOLATED set
each test has a process of its own.

A kernel's test asks for two fixtures. `load("add")` is the module of `add.<target>.cubin`, once for
each target that is there and runs on the device. `zones` makes tensors between guards:

    def test_add(load, zones):
        x = zones.input(values, "f32", misaligned_bytes=4)
        z = zones.output(values.shape, "f32")
        load("add").add(z, x, x)
        np.testing.assert_array_equal(zones.values(z), …)   # float64, from a formula of its own

and when the test is over, `zones` fails it if the kernel wrote anything that it may not.
"""

from __future__ import annotations

import faulthandler
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from cubins import CUBINS
from host_driver import DRY_RUN, install
from isolation import ISOLATED
from isolation import run as run_alone
from red_zones import RedZones

import tilec.runtime as rt

HERE = Path(__file__).parent
_COUNTED = "counted: "
WATCHDOG_S = 300
# Which tests this process runs, as `2/8`: every eighth, from the third on (`run.py`).
SHARD = os.environ.get("TILEC_SHARD", "")
if DRY_RUN:
    install()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
    if SHARD:
        number, processes = map(int, SHARD.split("/"))
        items[:] = items[number::processes]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    if not ISOLATED or HERE not in item.path.parents:
        return None
    run_alone(item)
    return True


@pytest.fixture(autouse=True)
def watchdog():
    """Ends the process, with what it was doing, if a test takes as long as nothing does: a kernel
    that waits for ever would otherwise keep it, and the device."""
    faulthandler.dump_traceback_later(WATCHDOG_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(rt.LaunchError) and not ISOLATED:
        item.session.shouldstop = "the device fails from here on; TILEC_ISOLATED=1 runs the rest"
    return report


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        targets = sorted({path.name.split(".")[-2] for path in CUBINS.glob("*.*.cubin")})
        metafunc.parametrize("target", targets[: 1 if DRY_RUN else None] or [None])


@pytest.fixture(scope="session")
def device():
    """The device that kernels run on."""
    try:
        return rt.empty((1,), "u8").device
    except rt.NoDevice as error:
        pytest.skip(str(error))


@pytest.fixture
def load(device, target):
    """Loads `<name>.<target>.cubin`."""

    def loaded(name):
        path = CUBINS / f"{name}.{target}.cubin"
        if target is None or not path.exists():
            pytest.skip(f"there is no {path.name} in {CUBINS}: `make kernels` builds it")
        module = _opened(path)
        _skip_other_architectures(module.manifest.target, device)
        return module

    return loaded


@cache
def _opened(path):
    return rt.load(path)


@pytest.fixture
def count(record_property):
    """Adds a number to what the end of the run tells of the tests."""
    return lambda what, number: record_property(f"{_COUNTED}{what}", number)


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    found = Counter()
    for what, number in (entry for report in reports for entry in report.user_properties):
        if what.startswith(_COUNTED):
            found[what.removeprefix(_COUNTED)] += number
    for what, number in found.items():
        terminalreporter.write_line(f"{number} {what}")


def _skip_other_architectures(target, device):
    if DRY_RUN:
        return
    from cuda.core import Device

    from tilec.artifact.architecture import runs_on

    capability = Device(device).compute_capability
    if not runs_on(target, capability.major, capability.minor):
        pytest.skip(f"{target} does not run on compute capability {tuple(capability)}")


@pytest.fixture
def zones(device):
    """Guarded tensors, verified when the test is over."""
    red_zones = RedZones()
    yield red_zones
    red_zones.verify()
