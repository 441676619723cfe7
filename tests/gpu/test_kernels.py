"""The kernels of `kernels/` on the GPU, against the float64 references of `tests/kernels/cases.py`:
at odd, empty and one-element extents, at any address, with gaps between rows."""

from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np
import pytest
from host_driver import DRY_RUN
from placement import PLACEMENTS
from red_zones import GUARD_BYTES, RedZones

import tilec.runtime as rt
from tests.kernels.cases import Argument, Output, problems, symbols
from tilec.artifact.abi import ELEMENT_BYTES


def shape_of(argument):
    """The shape of a tensor; () of a scalar."""
    if isinstance(argument, Output):
        return argument.shape
    return np.shape(getattr(argument, "values", 0.0))


def placed(zones, name, argument, placement):
    """One argument as the launcher takes it."""
    if not isinstance(argument, (Argument, Output)):
        return argument
    where = placement.of(
        shape_of(argument), argument.element, is_output=isinstance(argument, Output)
    )
    where["name"] = f"`{name}`"
    if isinstance(argument, Argument):
        return zones.input(argument.values, argument.element, **where)
    if argument.given is not None:
        return zones.in_place(argument.given, argument.element, **where)
    return zones.output(argument.shape, argument.element, **where)


def fault(kernel, problem, placement):
    """What is wrong with one launch, or None."""
    zones = RedZones()
    arguments = {n: placed(zones, n, a, placement) for n, a in problem.arguments.items()}
    kernel(**arguments)
    wrong = problem.fault_of({name: zones.values(arguments[name]) for name in problem.outputs})
    try:
        zones.verify()
    except AssertionError as error:
        wrong = f"{wrong}; " if wrong else f"{problem}: "
        wrong += str(error)
    return f"{wrong} [{placement.name}]" if wrong else None


def has_rows(problem):
    return any(len(shape_of(argument)) > 1 for argument in problem.arguments.values())


@pytest.mark.parametrize(("file", "symbol"), symbols())
def test_results_and_guards(load, file, symbol):
    kernel = load(file)[symbol]
    faults = []
    for problem in problems(symbol, large=not DRY_RUN):
        fitting = [p for p in PLACEMENTS if has_rows(problem) or not p.gap]
        for placement in fitting[:: len(fitting) - 1 if DRY_RUN else 1]:
            found = fault(kernel, problem, placement)
            if found:
                faults.append(found)
    assert not faults, f"{len(faults)} launches are wrong:\n" + "\n".join(faults[:12])


# ---- broken contracts ----------------------------------------------------------------------------


def a_problem(symbol):
    """A problem of several elements, with no empty tensor."""
    return next(
        problem
        for problem in problems(symbol)
        if max(result.exact.size for result in problem.results.values()) > 1
        and all(prod(shape_of(a)) for a in problem.arguments.values())
    )


@pytest.mark.parametrize(("file", "symbol"), symbols())
def test_what_breaks_the_contract_launches_nothing(load, zones, file, symbol):
    problem, kernel = a_problem(symbol), load(file)[symbol]
    good = {n: placed(zones, n, a, PLACEMENTS[0]) for n, a in problem.arguments.items()}
    first = problem.outputs[0]
    output = good[first]
    before = output.bits()
    parameters = kernel.kernels[0].parameters
    named = Counter(extent for p in parameters for extent in dict.fromkeys(p.extents))
    first_extents = {p.name: p.extents[0] for p in parameters if p.is_tensor}

    def refuses(name, tensor, match):
        with pytest.raises(rt.ContractError, match=match):
            kernel(**{**good, name: tensor})

    tensors = {n: t for n, t in good.items() if isinstance(t, rt.Tensor)}
    for name, tensor in tensors.items():
        shape, element = tensor.shape, tensor.dtype
        other = "f64" if element == "f32" else "f32"
        refuses(name, rt.empty(shape, other), f"`{name}`: expected elements of type")
        refuses(name, rt.empty((*shape, 1), element), f"`{name}`: expected .* axes")
        if named[first_extents[name]] > 1:
            refuses(name, rt.empty((shape[0] + 1, *shape[1:]), element), "expected extent")
        if ELEMENT_BYTES[element] > 1:
            room = rt.empty((prod(shape) + 1,), element)
            off = room.at(ELEMENT_BYTES[element] // 2, shape)
            refuses(name, off, f"`{name}`: expected an address")
        fits = prod(shape) * ELEMENT_BYTES[element] <= GUARD_BYTES  # what follows an output
        if name != first and element == output.dtype and fits:
            refuses(name, output.at(0, shape), "is written and overlaps")
    with pytest.raises(rt.ContractError, match="is missing"):
        kernel(*list(good.values())[:-1])
    np.testing.assert_array_equal(output.bits(), before, f"{problem}: it was launched")


@pytest.mark.parametrize(
    ("file", "symbol"), [(f, s) for f, s in symbols() if f in ("softmax", "layernorm", "rmsnorm")]
)
def test_a_row_longer_than_a_tile_is_refused(load, zones, file, symbol):
    block = int(symbol.partition("__")[2].partition("__")[0].rpartition("_")[2])  # without hints
    kernel = load(file)[symbol]
    element = symbol.partition("__")[2].partition("_")[0]
    shape = (2, block + 1)
    y = zones.output(shape, element)
    arguments = {"y": y, "x": rt.empty(shape, element)}
    if file != "softmax":
        arguments |= {"weight": rt.empty(shape[1:], element), "eps": 1e-5}
    if file == "layernorm":
        arguments |= {"bias": rt.empty(shape[1:], element)}
    with pytest.raises(rt.ContractError, match=r"requires!\(N <= B\)"):
        kernel(**arguments)
    assert (y.bits() == np.iinfo(y.bits().dtype).max).all()
