"""Random pairs of builds: where a call was right and is refused now, `abi-diff` says so.

Whether a call is right follows from the contract (docs/abi.md), here for calls with small numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import pytest
from manifest_samples import add_kernel, manifest

from tilec.artifact.expression import Expression, evaluate, holds, text_of
from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.signature import Coverage, Parameter, Requirement
from tilec.artifact.validate import faults_of
from tilec.compatibility.compare import changes_between

EXTENTS = (0, 4, 5, 6, 32, 64, 65)
SCALARS = (-3, 0, 5, 6)


@dataclass(frozen=True)
class Call:
    """What a caller gives `p`: how long each tensor is, and the scalar."""

    lengths: tuple[int, int, int]
    scalar: int


CALLS = [Call((a, b, c), n) for a, b, c, n in product(EXTENTS, EXTENTS, EXTENTS, SCALARS)]


# ---- whether a call is right ---------------------------------------------------------------------


def is_right(told: Manifest, call: Call) -> bool:
    """Whether the contract of the pipeline, and that of each launch, holds for a call."""
    [pipeline] = told.pipelines
    tensors = [parameter for parameter in pipeline.parameters if parameter.is_tensor]
    names = {p.name: length for p, length in zip(tensors, call.lengths, strict=True)}
    values = _bound(tensors, [names[p.name] for p in tensors])
    if values is None:
        return False
    [scalar] = [p.name for p in pipeline.parameters if not p.is_tensor]
    values[scalar] = call.scalar
    for temporary in pipeline.temporaries:
        names[temporary.name] = int(evaluate(temporary.extents[0], values))
        if names[temporary.name] < 0:
            return False
    kernels = {kernel.symbol: kernel for kernel in told.kernels}
    return all(holds(one.expression, values) for one in pipeline.requires) and all(
        any(_may_launch(kernels[symbol], launch, names, values) for symbol in launch.instances)
        for launch in pipeline.launches
    )


def _bound(parameters: Sequence[Parameter], lengths: Sequence[int]) -> dict[str, int] | None:
    """What the `Dim`s are; None if that is not one number for each."""
    values: dict[str, int] = {}
    for parameter, length in zip(parameters, lengths, strict=True):
        [extent] = parameter.extents
        wanted = values.setdefault(extent, length) if isinstance(extent, str) else extent
        if wanted != length:
            return None
    return values


def _may_launch(
    kernel: Kernel, launch: PipelineLaunch, names: Mapping[str, int], values: Mapping[str, int]
) -> bool:
    given = {a.parameter: a for a in launch.arguments}
    tensors = [parameter for parameter in kernel.parameters if parameter.is_tensor]
    inner = _bound(tensors, [names[str(given[p.name].tensor)] for p in tensors])
    if inner is None:
        return False
    for parameter in kernel.parameters:
        if not parameter.is_tensor:
            value = given[parameter.name].value
            assert value is not None
            inner[parameter.name] = int(evaluate(value, values))
    return all(holds(one.expression, inner) for one in kernel.requires)


# ---- random builds -------------------------------------------------------------------------------


def a_condition(random: Random, names: Sequence[str]) -> Requirement:
    name, number = random.choice(names), random.choice((4, 5, 32, 64))
    made: Expression = random.choice(
        [
            (random.choice(("lt", "le", "gt", "ge", "eq", "ne")), name, number),
            ("eq", ("rem", name, random.choice((2, 4, 32))), 0),
            ("or", ("eq", name, 0), ("ge", name, number)),
            ("or", ("gt", ("div", 64, name), 1), ("ge", name, number)),
            ("and", ("ge", name, 0), ("le", name, number)),
            (random.choice(("le", "eq")), name, random.choice(names)),
        ]
    )
    return Requirement(text_of(made), made, 1)


def some(random: Random, names: Sequence[str]) -> tuple[Requirement, ...]:
    made = (a_condition(random, names) for _ in range(random.choice((0, 0, 1, 2))))
    return tuple(made)


def a_build(random: Random) -> Manifest:
    """A pipeline of one or two launches of `add`, which has two instances."""
    blocks = (1024, 256)
    kernels = tuple(
        replace(add_kernel(block=b), requires=some(random, ("N", "scale"))) for b in blocks
    )
    kernels = tuple(
        replace(k, parameters=(*k.parameters[:3], Parameter("scale", "scalar", "i64")))
        for k in kernels
    )
    kernels = tuple(_with_slots(kernel) for kernel in kernels)
    one, other = random.choice((("N", "M"), ("Rows", "N"), ("M", "N")))
    extents = [one, *(random.choice((one, one, other, 64)) for _ in range(2))]
    random.shuffle(extents)
    parameters = (
        *(
            Parameter(name, "tensor", "f32", (extent,), "mut" if name == "out" else "shared")
            for name, extent in zip(("out", "x", "y"), extents, strict=True)
        ),
        Parameter("n", "scalar", "i64"),
    )
    dims = tuple(dict.fromkeys(e for e in extents if isinstance(e, str)))
    names = (*dims, "n")
    lengths: list[Expression] = [dims[0], dims[0], ("sub", dims[0], 5), ("add", "n", 1)]
    temporary = Temporary("t", "f32", (random.choice(lengths),), 0)
    symbols = [k.symbol for k in kernels]
    launches = []
    for number in range(random.choice((1, 2))):
        z, x, y = (("t", "x", "x"), ("out", "t", random.choice(("t", "y"))))[number]
        value: Expression = random.choice(("n", 5, ("add", "n", 1), dims[-1]))
        given = tuple(Argument(n, t) for n, t in zip("zxy", (z, x, y), strict=True))
        chosen = random.choice((symbols, symbols[:1], symbols[1:]))
        launches.append(
            PipelineLaunch("add", tuple(chosen), (*given, Argument("scale", value=value)),
                           (0,) if number else (), "p.tile", number)
        )  # fmt: skip
    pipeline = Pipeline(
        "p", "p", (), "", 1, parameters, dims, some(random, names), (temporary,),
        tuple(launches), (Coverage("out", False, True),),
    )  # fmt: skip
    return replace(manifest(*kernels), pipelines=(pipeline,))


def _with_slots(kernel: Kernel) -> Kernel:
    from tilec.artifact.abi import slots_of

    slots = slots_of(kernel.parameters, kernel.dims)
    return replace(kernel, variants=tuple(replace(v, slots=slots) for v in kernel.variants))


def broken(old: Manifest, new: Manifest) -> Iterator[str]:
    """What is told that breaks callers of the pipeline."""
    found = changes_between([old], [new])
    yield from (one.message for one in found if one.kind == "breaking" and one.about == "p")


@pytest.mark.parametrize("seed", range(4))
def test_what_was_right_and_is_refused_now_is_told(seed: int) -> None:
    random = Random(seed)
    builds = [a_build(random) for _ in range(24)]
    assert not any(fault for build in builds for fault in faults_of(build))
    right = [{call for call in CALLS if is_right(build, call)} for build in builds]
    numbers = random.sample(list(product(range(len(builds)), repeat=2)), 200)
    breaks = 0
    for old, new in numbers:
        lost = right[old] - right[new]
        breaks += bool(lost)
        told = list(broken(builds[old], builds[new]))
        assert told or not lost, (builds[old].pipelines, builds[new].pipelines, min(lost, key=str))
    assert 0 < breaks < len(numbers)
    for build in builds:
        assert not changes_between([build], [build])
