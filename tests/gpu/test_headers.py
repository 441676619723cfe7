"""The kernels of `kernels/` launched from C by emitted headers, where there is a C compiler."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from host_driver import DRY_RUN
from placement import PLACEMENTS
from red_zones import GUARD_BYTES, RedZones
from test_kernels import fault, has_rows, placed

import tilec.runtime as rt
from tests.emit.calling import Functions
from tests.kernels.cases import problems, symbols

pytestmark = pytest.mark.skipif(DRY_RUN, reason="a header launches by the driver itself")


class FromC:
    """An instance as a callable, as `tilec.runtime` gives it; `values` of tensors wait for it."""

    def __init__(self, functions, kernel):
        self._functions = functions
        self._kernel = kernel

    def outcome(self, arguments):
        given = [arguments[parameter.name] for parameter in self._kernel.parameters]
        plain = [one.array if isinstance(one, rt.Tensor) else one for one in given]
        return self._functions.call(self._kernel.symbol, plain)

    @property
    def adds_in_any_order(self):
        """Whether it adds floats by atomic updates."""
        floats = ("f16", "bf16", "f32", "f64")
        return any(p.own == "atomic" and p.element in floats for p in self._kernel.parameters)

    def __call__(self, **arguments):
        done = self.outcome(arguments)
        assert done.status == 0, done.message


@pytest.fixture(scope="session")
def functions(tmp_path_factory):
    """The functions of a module's header; compiled once."""

    @cache
    def compiled(module):
        folder = tmp_path_factory.mktemp("header")
        return Functions([module.manifest], folder, module.cubin)

    return compiled


def from_c(load, functions, file, symbol):
    module = load(file)
    [kernel] = [one for one in module.manifest.kernels if one.symbol == symbol]
    return FromC(functions(module), kernel)


@pytest.mark.parametrize(("file", "symbol"), symbols())
def test_results_and_guards(load, functions, file, symbol):
    kernel = from_c(load, functions, file, symbol)
    faults = []
    for problem in problems(symbol):
        fitting = [p for p in PLACEMENTS if has_rows(problem) or not p.gap]
        for placement in (fitting[0], fitting[-1]):
            found = fault(kernel, problem, placement)
            if found:
                faults.append(found)
    assert not faults, f"{len(faults)} launches are wrong:\n" + "\n".join(faults[:12])


@pytest.mark.parametrize(("file", "symbol"), symbols())
def test_bits_are_those_of_the_runtime(load, functions, file, symbol):
    """The same arguments give the same bits, whoever launches."""
    kernel = from_c(load, functions, file, symbol)
    if kernel.adds_in_any_order:
        pytest.skip("sums of floats whose order is left open, launch by launch")
    problem = [*problems(symbol)][-1]
    for placement in (PLACEMENTS[0], PLACEMENTS[-1]):
        if placement.gap and not has_rows(problem):
            continue
        found = [written(one, problem, placement) for one in (load(file).instance(symbol), kernel)]
        for name, bits in found[0].items():
            np.testing.assert_array_equal(bits, found[1][name], f"`{name}` of {problem}")


def written(kernel, problem, placement):
    """The bits of what a launch writes, by name."""
    zones = RedZones()
    arguments = {n: placed(zones, n, a, placement) for n, a in problem.arguments.items()}
    kernel(**arguments)
    return {name: arguments[name].bits() for name in problem.outputs}


def test_a_broken_contract_launches_nothing(load, functions):
    kernel = from_c(load, functions, "add", "add__f32_1024")
    zones = RedZones()
    x = zones.input([1.0] * 100, "f32")
    z = zones.output((100,), "f32")
    broken = {
        "`x`: expected extent 100": {"z": z, "x": x.at(0, (99,)), "y": x},
        "`x`: expected elements of type": {"z": z, "x": x.at(0, (100,), "i32"), "y": x},
        "`z` is written and overlaps `y`": {"z": z, "x": x, "y": z},
        "`x`: expected an address": {"z": z, "x": x.at(-GUARD_BYTES + 2, (100,)), "y": x},
    }
    for said, arguments in broken.items():
        assert said in kernel.outcome(arguments).message
    zones.verify()
    assert (zones.values(z) != zones.values(z)).all()  # still what it was: no number
