"""Emitted launchers launch what `tilec.runtime` would, and refuse what it refuses, in its words."""

from __future__ import annotations

from random import Random

import pytest

from tests.emit.arguments import arguments_of, hostile_arguments_of
from tests.emit.calling import LAUNCH
from tests.emit.expected import launched_by, launched_on, planned, planner_of
from tests.emit.samples import everything
from tilec.emit.sets import launch_sets

SETS = {one.name: one for one in launch_sets(everything())}


def _rounds(launched, most):
    """As many as take about as long for kernels with many parameters as for others."""
    return min(most, 15000 // len(launched.kernels[0].parameters))


def launches_what_the_runtime_does(functions, planner, name, arguments):
    """Calls a function; whether it launched, and the message where it refused."""
    before = functions.fake.launches
    outcome = functions.call(name, arguments, LAUNCH)
    wanted = planned(planner, arguments)
    if isinstance(wanted, str):
        assert (outcome.message, functions.fake.launches) == (wanted, before), arguments
        return wanted
    launch = launched_by(wanted)
    # Of what was tried on the way, or went wrong before, nothing is said.
    assert (outcome.status, outcome.message) == (0, ""), arguments
    assert functions.fake.launches == before + (launch is not None)
    if launch is not None:
        assert launched_on(functions.fake) == launch, arguments
    return ""


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("is_spoilt", [False, True], ids=["right", "spoilt"])
def test_launches_are_those_of_the_runtime(name, is_spoilt, headers):
    launched = SETS[name]
    planner = planner_of(launched, everything())
    random = Random(f"{name} {is_spoilt}")
    for _ in range(_rounds(launched, 1500)):
        arguments = arguments_of(random.choice(launched.kernels), random, is_spoilt)
        launches_what_the_runtime_does(headers, planner, name, arguments)


@pytest.mark.parametrize("name", SETS)
def test_numbers_at_the_ends_of_their_types_are_refused_as_by_the_runtime(name, headers):
    launched = SETS[name]
    planner = planner_of(launched, everything())
    random = Random(f"hostile {name}")
    said = [
        launches_what_the_runtime_does(
            headers, planner, name, hostile_arguments_of(random.choice(launched.kernels), random)
        )
        for _ in range(_rounds(launched, 600))
    ]
    assert "" in said
    assert any("is negative" in one for one in said if one)
