"""Emitted launchers launch what `tilec.runtime` would, and refuse what it refuses, in its words."""

from __future__ import annotations

from random import Random

import pytest

from tests.emit.arguments import arguments_of
from tests.emit.calling import LAUNCH
from tests.emit.expected import launched_by, launched_on, planned, planner_of
from tests.emit.samples import everything
from tilec.emit.header.sets import launch_sets

SETS = {one.name: one for one in launch_sets(everything())}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("is_spoilt", [False, True], ids=["right", "spoilt"])
def test_launches_are_those_of_the_runtime(name, is_spoilt, headers):
    launched = SETS[name]
    planner = planner_of(launched, everything())
    random = Random(f"{name} {is_spoilt}")
    for _ in range(1500):
        kernel = random.choice(launched.kernels)
        arguments = arguments_of(kernel, random, is_spoilt)
        before = headers.fake.launches
        outcome = headers.call(name, arguments, LAUNCH)
        wanted = planned(planner, arguments)
        if isinstance(wanted, str):
            assert (outcome.message, headers.fake.launches) == (wanted, before), arguments
            continue
        launch = launched_by(wanted)
        assert outcome.status == 0, (outcome.message, arguments)
        assert headers.fake.launches == before + (launch is not None)
        if launch is not None:
            assert launched_on(headers.fake) == launch, arguments
