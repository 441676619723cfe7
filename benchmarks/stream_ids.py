"""Whether `cuStreamGetId` may be asked of a stream that is being captured, and what it costs.

    python -m benchmarks.stream_ids

Needs a GPU and cuda-python. By its id a stream is told from another one that was made at its
address later. For each mode of capture it says what the question answers in the thread that
captures, whether the graph is whole afterwards, and whether the id stays what it was; then whether
streams that follow each other at one address have ids of their own, and the time of a question.
"""

from __future__ import annotations

import time
from typing import Any

from cuda.bindings import driver as bindings

MODES = ("GLOBAL", "THREAD_LOCAL", "RELAXED")
QUESTIONS = 100_000
STREAMS = 64


def main() -> None:
    _begin()
    print("| capture | answer | id as before | graph after it |\n| --- | --- | --- | --- |")
    for mode in MODES:
        print(f"| {mode} | {' | '.join(_asked_while(mode))} |")
    same_place, same_id = _at_one_address()
    print(f"\nstreams made at an address again: {same_place}; of these with the same id: {same_id}")
    print(f"a question takes {_question_us():.3f} µs")


def _asked_while(mode: str) -> tuple[str, str, str]:
    stream = _stream()
    before = _needed(bindings.cuStreamGetId(stream))
    kind = getattr(bindings.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{mode}")
    _needed(bindings.cuStreamBeginCapture(stream, kind))
    status, *answer = bindings.cuStreamGetId(stream)
    ended, graph = bindings.cuStreamEndCapture(stream)
    is_whole = int(ended) == 0 and graph is not None
    if is_whole:
        _needed(bindings.cuGraphDestroy(graph))
    _needed(bindings.cuStreamDestroy(stream))
    is_same = "yes" if int(status) == 0 and int(answer[0]) == int(before) else "no"
    return status.name, is_same, "whole" if is_whole else ended.name


def _at_one_address() -> tuple[int, int]:
    """How many streams lie where one lay before, and how many of these have its id."""
    known: dict[int, set[int]] = {}
    same_place = same_id = 0
    for _ in range(STREAMS):
        stream = _stream()
        address, number = int(stream), int(_needed(bindings.cuStreamGetId(stream)))
        same_place += address in known
        same_id += number in known.get(address, ())
        known.setdefault(address, set()).add(number)
        _needed(bindings.cuStreamDestroy(stream))
    return same_place, same_id


def _question_us() -> float:
    stream = _stream()
    start = time.perf_counter_ns()
    for _ in range(QUESTIONS):
        bindings.cuStreamGetId(stream)
    took_us = (time.perf_counter_ns() - start) / 1e3
    _needed(bindings.cuStreamDestroy(stream))
    return took_us / QUESTIONS


def _begin() -> None:
    _needed(bindings.cuInit(0))
    device = _needed(bindings.cuDeviceGet(0))
    _needed(bindings.cuCtxSetCurrent(_needed(bindings.cuDevicePrimaryCtxRetain(device))))


def _stream() -> Any:
    flags = int(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING)
    return _needed(bindings.cuStreamCreate(flags))


def _needed(answered: Any) -> Any:
    status, *found = answered
    if int(status) != 0:
        raise SystemExit(f"the driver refuses: {status.name}")
    return found[0] if found else None


if __name__ == "__main__":
    main()
