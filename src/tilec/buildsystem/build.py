"""Build or check many files: reuse what is unchanged, compile the rest in children, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import chain
from pathlib import Path

from tilec.buildsystem.cache import Cache
from tilec.buildsystem.expected import is_expected, other_names
from tilec.buildsystem.key import key_of
from tilec.buildsystem.make_rules import make_rules
from tilec.buildsystem.tuning import notes_of, tuning_paths, with_tuning
from tilec.buildsystem.writing import write_together
from tilec.children import Crashed, run_in_children
from tilec.compilation import Compiled, Options
from tilec.diagnostics.setup_error import SetupError
from tilec.sources import Sources, read_sources
from tilec.stages import recording


class Status(Enum):
    DONE = "done"
    REUSED = "reused"  # nothing was compiled
    REFUSED = "refused"  # errors in the program
    CRASHED = "crashed"  # an error in the compiler


@dataclass(frozen=True)
class Request:
    files: tuple[str, ...]
    options: Options = field(default_factory=Options)
    folder: Path = Path("build")
    include: tuple[str, ...] = ()
    jobs: int | None = None  # None: one a core
    cache: Cache | None = None  # None: reuse and keep nothing


@dataclass(frozen=True)
class Result:
    """What became of one file."""

    sources: Sources
    status: Status
    compiled: Compiled = field(default_factory=Compiled)
    outputs: tuple[Path, ...] = ()  # all that belong to the file, written or already there
    changed: tuple[Path, ...] = ()
    crash: Crashed | None = None
    notes: tuple[str, ...] = ()  # what to know of the inputs beside the program


def build(request: Request) -> Iterator[Result]:
    """The results, each as soon as it is there; outputs are then written.

    A file with errors leaves what an earlier build wrote as it is. As long as there is an option
    that no kernel has taken, results wait: nothing is written of a build that was misspelt.

    Raises:   SetupError if a file cannot be read, two would write the same, or a tool is missing;
              if a tuning file is none; if an option fits no kernel
    """
    inputs = [with_tuning(sources) for sources in _read_all(request)]
    _refuse_clashes(inputs, request.options)
    for result in _once_taken(_results(request, inputs)):
        yield _put_in_place(result, request)


def _once_taken(results: Iterator[Result]) -> Iterator[Result]:
    """The results, from when each option is taken. Raises SetupError if one is not by any."""
    waiting: list[Result] = []
    for result in results:
        waiting.append(result)
        if not untaken_options(waiting):
            break
    refuse_untaken(waiting)
    yield from chain(waiting, results)


def untaken_options(results: Sequence[Result]) -> list[str]:
    """The options that no kernel of any file takes; none where a file has errors, since nobody
    knows what its kernels would have taken."""
    if any(result.status in (Status.REFUSED, Status.CRASHED) for result in results):
        return []
    unmatched = [set(result.compiled.unmatched) for result in results]
    return sorted(set.intersection(*unmatched)) if unmatched else []


def refuse_untaken(results: Sequence[Result]) -> None:
    """Refuse an option that no kernel takes: it is misspelt, most likely. Raises SetupError"""
    if untaken := untaken_options(results):
        names = ", ".join(f"`{option}`" for option in untaken)
        verb = "fits" if len(untaken) == 1 else "fit"
        raise SetupError(f"{names} {verb} no kernel of these files")


def _results(request: Request, inputs: Sequence[Sources]) -> Iterator[Result]:
    """What becomes of each file, before anything is written."""
    remaining: list[tuple[Sources, str | None]] = []
    for sources in inputs:
        key = key_of(sources, request.options) if request.cache else None
        stored = request.cache.get(key) if request.cache and key else None
        if stored is None or not is_expected(stored, sources, request.options):
            remaining.append((sources, key))
        else:
            yield _result(sources, stored, Status.REUSED)
    compiled = _compile(request, [sources for sources, _ in remaining], _compile_job)
    for index, answer in compiled:
        sources, key = remaining[index]
        if isinstance(answer, Crashed):
            yield Result(sources, Status.CRASHED, crash=answer)
            continue
        # A result that read a file which the key does not cover must not be found again.
        is_covered = set(answer.used) <= set(sources.files)
        if request.cache and key and is_covered and not answer.is_refused:
            request.cache.put(key, answer)
        yield _result(sources, answer, Status.DONE)


def check(request: Request) -> Iterator[Result]:
    """As `build`, without code generation, reuse or outputs."""
    yield from _once_taken(_checked(request, _read_all(request)))


def _checked(request: Request, inputs: Sequence[Sources]) -> Iterator[Result]:
    for index, answer in _compile(request, inputs, _check_job):
        if isinstance(answer, Crashed):
            yield Result(inputs[index], Status.CRASHED, crash=answer)
        else:
            yield _result(inputs[index], answer, Status.DONE)


def _read_all(request: Request) -> list[Sources]:
    return [read_sources(file, request.include) for file in dict.fromkeys(request.files)]


def _refuse_clashes(inputs: Sequence[Sources], options: Options) -> None:
    seen: dict[str, str] = {}
    for sources in inputs:
        name = sources.root.name
        for written in _written(Path(name).stem, options):
            other = seen.setdefault(written, name)
            if other != name:
                raise SetupError(
                    f"`{other}` and `{name}` would write the same files",
                    help="build them into different folders (`-o`)",
                )


def _written(stem: str, options: Options) -> Iterator[str]:
    """What tells the files of a program from those of others: their stem, and names of files that
    are made from it otherwise than by adding to it."""
    yield stem
    yield from other_names(stem, options)


def _compile(
    request: Request,
    inputs: Sequence[Sources],
    job: Callable[[Sources, Options, int], Compiled],
) -> Iterator[tuple[int, Compiled | Crashed]]:
    if not inputs:
        return iter(())
    _prepare(inputs, job)
    # The longest first, so that no core waits for one that was started last.
    order = sorted(range(len(inputs)), key=lambda one: -len(inputs[one].root.text))
    limit = request.jobs or len(os.sched_getaffinity(0))
    # What there are no files for is left to those that there are.
    workers = max(1, limit // len(inputs))
    jobs = [partial(job, inputs[one], request.options, workers) for one in order]
    answers = run_in_children(jobs, limit)
    return ((order[number], answer) for number, answer in answers)


def _prepare(inputs: Sequence[Sources], job: Callable[[Sources, Options, int], Compiled]) -> None:
    """What every child needs, done once before the forks."""
    import tilec.driver

    if job is _compile_job:
        import tilec.outputs
    if len(inputs) > 1:
        # Whatever is wrong with the file, its own child says so.
        with suppress(Exception):
            tilec.driver.warm_up(inputs[0])
            if job is _compile_job:
                tilec.outputs.warm_up()


def _compile_job(sources: Sources, options: Options, workers: int) -> Compiled:
    from tilec.driver import compile_sources

    with recording() as timings:
        compiled = compile_sources(sources, options, workers)
    return replace(compiled, timings=timings)


def _check_job(sources: Sources, options: Options, _: int) -> Compiled:
    from tilec.driver import check_sources

    return check_sources(sources, options)


def _result(sources: Sources, compiled: Compiled, status: Status) -> Result:
    return Result(sources, Status.REFUSED if compiled.is_refused else status, compiled)


def _put_in_place(result: Result, request: Request) -> Result:
    """The result with its outputs, which are then written."""
    if result.status not in (Status.DONE, Status.REUSED):
        return result
    sources, compiled = result.sources, result.compiled
    contents = dict(compiled.outputs)
    outputs = tuple(request.folder / name for name in contents)
    if outputs and "dep" in request.options.emit:
        stem = Path(sources.root.name).stem
        read = (*compiled.used, *tuning_paths(sources, compiled.used))
        contents = {f"{stem}.d": make_rules(outputs, read), **contents}
        outputs = (*outputs, request.folder / f"{stem}.d")
    changed = write_together(request.folder, contents) if contents else ()
    notes = tuple(notes_of(sources, compiled.outputs))
    return replace(result, outputs=outputs, changed=changed, notes=notes)
