"""docs/abi.md is the whole truth: a launcher written from it launches what the runtime would."""

from __future__ import annotations

import json
from random import Random

import pytest
from noting_driver import NotingDriver, module_of
from pipeline_samples import with_pipelines
from raw_launcher import (
    Launch,
    Refused,
    Undecided,
    launch,
    member_for,
    steps_of,
    workspace_parts,
)

from tests.emit.arguments import arguments_of
from tests.emit.expected import CARD, SM_COUNT, Machine
from tests.emit.samples import everything
from tilec.artifact.manifest import to_json
from tilec.artifact.pipelines import comes_after
from tilec.runtime.array import Array
from tilec.runtime.errors import ContractError
from tilec.runtime.plan import Planner
from tilec.runtime.tiled_map import TiledMap

MANIFEST = everything()
DOCUMENT = json.loads(to_json(MANIFEST))
KERNELS = {kernel.symbol: kernel for kernel in MANIFEST.kernels}
AS_JSON = {kernel["symbol"]: kernel for kernel in DOCUMENT["kernels"]}


def of_the_runtime(planner, arguments):
    """Its plan in the form of the raw launcher."""
    return as_launch(planner.plan(arguments))


def as_launch(plan):
    if plan.grid is None:
        return None
    variant = plan.variant
    return Launch(
        variant.symbol, plan.grid, variant.threads, variant.cluster, variant.dynamic_smem_bytes,
        tuple(map(_told, plan.arguments)),
    )  # fmt: skip


def _told(given):
    if isinstance(given, TiledMap):
        return (given.data_type, given.address, given.extents, given.stride_bytes, given.box,
                given.swizzle, given.promotion)  # fmt: skip
    return given if isinstance(given, int) else given.tobytes()


def compare(planner, arguments, raw):
    """True if both launch the same, False if both refuse, None if the page leaves it open."""
    try:
        made = raw(arguments)
    except Undecided:
        return None
    except Refused:
        with pytest.raises(ContractError):
            planner.plan(arguments)
        return False
    assert made == of_the_runtime(planner, arguments), arguments
    return True


@pytest.mark.parametrize("symbol", KERNELS)
def test_an_instance_is_launched_as_the_page_says(symbol):
    planner = Planner([KERNELS[symbol]], Machine())
    random = Random(symbol)
    outcomes = []
    rounds = 400 if len(KERNELS[symbol].parameters) < 50 else 40
    for number in range(rounds):
        arguments = arguments_of(KERNELS[symbol], random, is_spoilt=number % 3 == 0)
        outcomes.append(
            compare(planner, arguments, lambda given: launch(AS_JSON[symbol], given, SM_COUNT))
        )
    assert outcomes.count(True) > rounds / 4 and outcomes.count(None) < rounds / 10
    assert symbol.startswith("scalars") or outcomes.count(False) > rounds / 20


@pytest.mark.parametrize("family", MANIFEST.families, ids=lambda family: family.name)
def test_of_a_family_the_member_is_launched_that_the_page_chooses(family):
    [told] = [one for one in DOCUMENT["families"] if one["name"] == family.name]
    members = [KERNELS[symbol] for symbol in family.members]
    planner = Planner(members, Machine(), [family])

    def raw(arguments):
        kernel = member_for(DOCUMENT, told, arguments, SM_COUNT, CARD)
        return launch(kernel, arguments, SM_COUNT)

    random = Random(family.name)
    launched = set()
    for number in range(600):
        arguments = arguments_of(members[0], random, is_spoilt=number % 5 == 0)
        if compare(planner, arguments, raw):
            made = raw(arguments)
            launched.add(made and made.symbol)
    assert len(launched - {None}) > 1


@pytest.mark.parametrize("n", [0, 1, 1000, 1024, 100_000, 999_999])
def test_a_pipeline_is_run_as_the_page_says(n):
    manifest = with_pipelines()
    document = json.loads(to_json(manifest))
    [told] = document["pipelines"]
    given = [*(Array(2**34 * i, "f32", (n,), (1,), 0) for i in (1, 2)), 2.0]
    start = 2**40
    steps = steps_of(document, told, given, start, {"sms": SM_COUNT, "card": CARD})

    plan = module_of(NotingDriver(), manifest).sums.plan(*given, workspace=start)
    assert sum(workspace_parts(told, {"N": n})) == plan.workspace.bytes
    assert [step.after for step in steps] == comes_after(plan.pipeline.launches)
    assert [step.launch for step in steps] == [as_launch(one) for one in plan.launches]


def _of(n, number, **changed):
    return Array(2**34 * number, "f32", (n,), (1,), 0)._replace(**changed)


@pytest.mark.parametrize(
    "given",
    [
        (_of(100, 1), _of(99, 2), 2.0),
        (_of(10**6, 1), _of(10**6, 2), 2.0),  # `requires!(N < 1000000)`
        (_of(100, 1), _of(100, 2, element="f16"), 2.0),
        (_of(100, 1), _of(100, 1), 2.0),
        (_of(100, 1), _of(100, 2, strides=(2,)), 2.0),
        (_of(100, 1), _of(100, 2, pointer=2**35 + 2), 2.0),
    ],
)
def test_what_the_contract_of_a_pipeline_refuses(given):
    manifest = with_pipelines()
    document = json.loads(to_json(manifest))
    [told] = document["pipelines"]
    with pytest.raises(Refused):
        steps_of(document, told, list(given), 2**40, {"sms": SM_COUNT, "card": CARD})
    with pytest.raises(ContractError):
        module_of(NotingDriver(), manifest).sums.plan(*given, workspace=2**40)
