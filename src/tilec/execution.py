"""A kernel or a pipeline of a file run on the CPU, as `tilec run` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tilec.artifact.pipelines import comes_after
from tilec.compilation import Executed, Options
from tilec.diagnostics import Diagnostic
from tilec.driver import Front, front_end
from tilec.interpret.contract import BrokenContract
from tilec.interpret.launch import changes, choose, launch, read_arguments, symbol_of, tensor_named
from tilec.interpret.memory import Array
from tilec.interpret.npy import written_npy
from tilec.interpret.pipeline import make_ready
from tilec.interpret.pipeline_report import pipeline_diagnostics
from tilec.interpret.pipeline_run import run_pipeline
from tilec.interpret.pipeline_watch import Watch
from tilec.interpret.report import diagnostics_of
from tilec.interpret.sanitize import Sanitizer
from tilec.ir.dialect import context
from tilec.sources import Sources

# Beside the order of the source, a sanitized pipeline runs in others, by these seeds.
_SEEDS = (1, 2)

# The instance, the tensors afterwards, and what was found.
_Result = tuple[str, dict[str, Array], tuple[Diagnostic, ...]]


def execute(
    sources: Sources,
    options: Options,
    name: str,
    given: Mapping[str, bytes | int | float | bool],
    wanted: Sequence[str],
    *,
    sanitize: bool = False,
    files: Mapping[str, str] = MappingProxyType({}),
) -> Executed:
    """Run a kernel or a pipeline on the CPU; tensors go in and out as the bytes of `.npy` files.

    `files` are the names of those that go in, for messages.

    `wanted` are the tensors to write; without any, what changed is shown. With `sanitize`, every
    access is watched, and pipelines run in several orders; if anything is found, nothing is
    written or shown.
    """
    with context():
        front = front_end(sources, options)
        if front.compiled.is_refused or front.module is None:
            return Executed(front.compiled)
        pipelines = {n for p in front.pipelines for n in (p.name, p.symbol)}
        run = _run_pipeline if name in pipelines else _run_kernel
        try:
            arguments = read_arguments(given, files)
            symbol, after, findings = run(front, name, arguments, sanitize)
            if findings:
                return Executed(front.compiled, findings=findings, symbol=symbol)
            written = {one: written_npy(tensor_named(after, one)) for one in wanted}
        except BrokenContract as broken:
            return Executed(front.compiled, broken=str(broken))
        shown = "" if wanted else changes(arguments, after)
        return Executed(front.compiled, written, shown, symbol=symbol)


def _run_kernel(front: Front, name: str, given: Mapping[str, Any], sanitize: bool) -> _Result:
    assert front.module is not None, "the program is right"
    pipelines = [p.symbol for p in front.pipelines]
    chosen = choose(front.module, name, given, beside=pipelines)
    shapes = {one: array.shape for one, array in chosen.tensors.items()}
    observer = Sanitizer(shapes, chosen.unset) if sanitize else None
    after = launch(chosen, observer)
    found = observer.findings() if observer else ()
    symbol = symbol_of(chosen.function)
    return symbol, after, tuple(diagnostics_of(found, front.sources, chosen.sizes))


def _run_pipeline(front: Front, name: str, given: Mapping[str, Any], sanitize: bool) -> _Result:
    """The tensors as the order of the source leaves them, and what was found in all orders."""
    assert front.module is not None, "the program is right"
    ready = make_ready(front.pipelines, front.module, name, given)
    if not sanitize:
        run_pipeline(ready)
        return ready.pipeline.symbol, {**ready.tensors}, ()
    before = comes_after(ready.pipeline.launches)
    has_others = any(len(earlier) < number for number, earlier in enumerate(before))
    findings: dict[Diagnostic, None] = {}
    for seed in (None, *(_SEEDS if has_others else ())):
        once = make_ready(front.pipelines, front.module, name, given)
        watch = Watch(once)
        run_pipeline(once, seed, watch)
        findings |= dict.fromkeys(pipeline_diagnostics(watch.findings(), once, front.sources))
        ready = ready if seed is not None else once
    return ready.pipeline.symbol, {**ready.tensors}, tuple(findings)
