"""How good the model of costs chooses, by what `tilec tune` measured: no GPU is needed.

    python benchmarks/cost_model.py BUILD [kernels/NAME.tune.json …] [--members]

For each shape of the tuning files: the member that was the fastest, and the one that the model of
the manifests in BUILD takes, with how much slower that was. `--members` adds what was measured of
each member, and what the model says, both by those of the fastest.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilec.artifact.manifest import Kernel, Manifest, from_json
from tilec.artifact.tuning_file import SUFFIX, Trial, from_text
from tilec.runtime.array import Array, contiguous_strides
from tilec.runtime.errors import ContractError
from tilec.runtime.fitted import Fitted, Shapes
from tilec.target.description import Target
from tilec.target.resolve import resolve

_FAR_APART = 1 << 40  # bytes between tensors, which are aligned to that


@dataclass(frozen=True)
class Pick:
    """What the model takes at a shape; `slowdown` is its time by that of the fastest."""

    trial: Trial
    member: str
    slowdown: float
    cycles: Mapping[str, int]


def picks(manifest: Manifest, tuning: str, target: Target) -> Iterator[Pick]:
    """Of each trial of a tuning file, whose members are kernels of the manifest."""
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    for run in from_text(tuning).runs:
        for family in run.families:
            for trial in family.trials:
                us = {trial.member: trial.us}
                us |= {one.member: one.us for one in trial.losers if one.us is not None}
                values = dict(zip(family.dims, trial.extents, strict=True))
                cycles = {
                    member: found
                    for member in us
                    if member in kernels
                    and (found := _cycles(kernels[member], values, target)) is not None
                }
                order = [one for one in _members(manifest, family.name) if one in cycles]
                if order:
                    member = min(order, key=lambda one: cycles[one])
                    yield Pick(trial, member, us[member] / trial.us, cycles)


def _members(manifest: Manifest, family: str) -> tuple[str, ...]:
    return next((one.members for one in manifest.families if one.name == family), ())


def _cycles(kernel: Kernel, values: Mapping[str, int], target: Target) -> int | None:
    """What a launcher computes for packed, aligned tensors."""
    arguments: list[object] = []
    for number, parameter in enumerate(kernel.parameters):
        shape = tuple(x if isinstance(x, int) else values[x] for x in parameter.extents)
        strides = contiguous_strides(shape)
        address = (number + 1) * _FAR_APART
        array = Array(address, parameter.element, shape, strides, 0)
        arguments.append(array if parameter.is_tensor else 1)
    try:
        fitted = Fitted(kernel, Shapes(kernel, arguments), lambda _: target.multiprocessors)
    except ContractError:
        return None
    return fitted.cycles(target.multiprocessors)


def _report(name: str, found: list[Pick], *, members: bool) -> None:
    right = sum(one.member == one.trial.member for one in found)
    near = sum(one.slowdown < 1.02 for one in found)
    worst = max(found, key=lambda one: one.slowdown)
    mean = sum(one.slowdown for one in found) / len(found)
    print(
        f"{name}: {len(found)} shapes, the fastest at {right}, within 2 % of it at {near}, "
        f"{mean:.3f} on average, {worst.slowdown:.3f} at worst"
    )
    for one in found:
        if one.slowdown < 1.02 and not members:
            continue
        shape = "x".join(map(str, one.trial.extents))
        short = one.member.partition("__")[2]
        print(f"  {shape}: {one.trial.member} {one.trial.us:g} µs, {short} {one.slowdown:.3f}")
        if members:
            base = one.cycles.get(one.trial.member, 1)
            us = {one.trial.member: one.trial.us}
            us |= {x.member: x.us for x in one.trial.losers if x.us is not None}
            for member, cycles in one.cycles.items():
                print(
                    f"      {member}: {us[member]:g} µs, {us[member] / one.trial.us:.3f}, "
                    f"model {cycles / base:.3f}, {cycles / us[member] / 1000:.2f} GHz"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--members", action="store_true")
    options = parser.parse_args()
    everything: list[Pick] = []
    for path in options.files or sorted(Path("kernels").glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        told = options.build / f"{name}.json"
        if not told.exists():
            print(f"{name} is not built", file=sys.stderr)
            continue
        manifest = from_json(told.read_text())
        found = list(picks(manifest, path.read_text(), resolve(manifest.target)))
        if found:
            _report(name, found, members=options.members)
            everything += found
    if everything:
        _report("all", everything, members=False)


if __name__ == "__main__":
    main()
