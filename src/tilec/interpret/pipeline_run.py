"""A pipeline that is ready, executed launch after launch in an order that its plan allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilec.artifact.pipeline import PipelineLaunch
from tilec.interpret.contract import BrokenContract
from tilec.interpret.pipeline import POISON, Ready, launch_text
from tilec.interpret.pipeline_watch import Watch
from tilec.interpret.run import run_kernel


def run_pipeline(ready: Ready, seed: int | None = None, watch: Watch | None = None) -> None:
    """Run every launch, in place: as the source has them, or in a random order by a seed.

    What lies in the workspace has no value until a launch of this run wrote it.

    Raises:   BrokenContract if what a kernel claims (`assert!`) does not hold
    """
    ready.memory[:] = POISON
    for number in order_of(ready.pipeline.launches, seed):
        launch = ready.launches[number]
        observer = watch.of_launch(launch) if watch is not None else None
        try:
            run_kernel(launch.function, launch.arguments, observer=observer, code=ready.code)
        except BrokenContract as broken:
            message = f"{launch_text(launch.told)}: {broken}"
            raise BrokenContract(message, broken.location) from broken


def order_of(launches: Sequence[PipelineLaunch], seed: int | None = None) -> list[int]:
    """The launches in an order in which each comes after those that it must.

    Each order that `after` allows may come out; None is that of the source.
    """
    if seed is None:
        return list(range(len(launches)))
    random = np.random.default_rng(seed)
    order: list[int] = []
    waiting = list(range(len(launches)))
    while waiting:
        free = [n for n in waiting if not set(launches[n].after).intersection(waiting)]
        order.append(free[random.integers(len(free))])
        waiting.remove(order[-1])
    return order
