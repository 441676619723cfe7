"""Manifests with one wrong field: readers refuse them by a message, or can use what they say."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from manifest_samples import copy_kernel, mapped_kernel
from noting_driver import NotingDriver, module_of
from pipeline_samples import with_pipelines

import tilec.runtime as rt
from tilec.artifact.manifest import Manifest, ManifestError, from_json, to_json
from tilec.artifact.signature import Parameter
from tilec.artifact.validate import faults_of
from tilec.cli.entry import DONE, REFUSED, USAGE, run_command_line
from tilec.runtime.array import Array, contiguous_strides

VALUES: list[Any] = [
    None, -1, 0, 3, 2**31, 2**70, 1.5, "", "zzz", "N", [], {}, True, [0], "\ud800", "a\nb",
    ["add", "N", 1], ["mul", "N", 2**62], ["rem", 1.5, 0.0], ["eq", "N"], [["neg", 1]], ["neg"],
]  # fmt: skip
MANIFESTS = 160

Path = tuple[str | int, ...]


def sample() -> Any:
    told = with_pipelines()
    kernels = (*told.kernels, mapped_kernel(), copy_kernel())
    return json.loads(to_json(replace(told, kernels=kernels)))


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    numbered = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else numbered:
        yield from paths(item, (*path, key))


def mutated(random: Random, document: Any) -> Any:
    """The document with another value in one place, or without it, or with it twice."""
    kinds: dict[Path, list[Path]] = {}
    for path in paths(document):
        kinds.setdefault(tuple(k if isinstance(k, str) else 0 for k in path), []).append(path)
    *outer, key = random.choice(kinds[random.choice(list(kinds))])
    made = copy.deepcopy(document)
    place = made
    for one in outer:
        place = place[one]
    act = random.choice(("set", "set", "set", "step", "drop", "twice"))
    if act == "step" and type(place[key]) is int:
        place[key] += random.choice((-1, 1))
    elif act == "drop":
        del place[key]
    elif act == "twice" and isinstance(place[key], list):
        place[key] *= 2
    else:
        place[key] = random.choice(VALUES)
    return made


def given(number: int, parameter: Parameter) -> Array | int:
    """A tensor whose `Dim`s are 64, or 2."""
    if not parameter.is_tensor:
        return 2
    shape = tuple(extent if isinstance(extent, int) else 64 for extent in parameter.extents)
    return Array(2**40 + number * 2**24, parameter.element, shape, contiguous_strides(shape), 0)


def use(told: Manifest) -> None:
    """Ask for everything that a launch of each instance, and of each pipeline, would be."""
    module = module_of(NotingDriver(), told)
    for one in (*told.kernels, *told.pipelines):
        arguments = [given(number, p) for number, p in enumerate(one.parameters)]
        with suppress(rt.TilecError):
            module[one.symbol].plan(*arguments)


@pytest.mark.parametrize("seed", range(4))
def test_readers_refuse_by_a_message_or_can_use_it(seed, tmp_path, capfd):
    random, document = Random(seed), sample()
    sound = refused = 0
    for _ in range(MANIFESTS):
        text = json.dumps(mutated(random, document))
        try:
            told = from_json(text)
        except ManifestError:
            refused += 1
            continue
        if next(faults_of(told), None) is not None:
            refused += 1
            continue
        sound += 1
        use(told)
        path = tmp_path / "mutated.json"
        path.write_text(text, encoding="utf-8")
        # A target that is none is a fault of the call, to the command.
        assert run_command_line(["inspect", str(path), "--all"]) in (DONE, REFUSED, USAGE), text
    assert sound and refused
    assert "Traceback" not in capfd.readouterr().err


def test_half_a_character_is_refused(tmp_path, capfd):
    document = sample()
    document["kernels"][0]["documentation"] = "half: \ud83d"
    path = tmp_path / "half.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run_command_line(["inspect", str(path)]) == REFUSED
    assert "the manifest is no JSON" in capfd.readouterr().err
    document["kernels"][0]["documentation"] = "whole: \U0001f600, \u0007"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run_command_line(["inspect", str(path)]) == DONE
