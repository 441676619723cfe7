"""What `tilec inspect` says of pipelines: contract, launches in their order, the workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.expression import Expression, Value, names_in, text_of
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.pipelines import comes_after
from tilec.artifact.workspace import SLOT_ALIGNMENT_BYTES, WorkspaceError, workspace_of
from tilec.cli.columns import columns
from tilec.cli.signature_texts import generics_of, tensor_of, type_of
from tilec.diagnostics.setup_error import SetupError
from tilec.tune.shapes import extents_by_owner


def pipeline_lines(
    pipelines: Sequence[Pipeline], file: str, shapes: Sequence[str]
) -> Iterator[str]:
    """Of each pipeline of the source `file`; `shapes` are those to say the workspace's bytes at, of
    the pipelines that a shape is of.

    Raises:   SetupError if a shape is of no pipeline, or there is no pipeline
    """
    if shapes and not pipelines:
        raise SetupError("`--workspace` is about pipelines, and there is none here")
    names = {pipeline.symbol: _names_of(pipeline) for pipeline in pipelines}
    given = [extents_by_owner(shape, names) for shape in shapes]
    for pipeline in pipelines:
        yield ""
        yield from _pipeline(pipeline, file)
        for extents in given:
            if pipeline.symbol in extents:
                named = zip(names[pipeline.symbol], extents[pipeline.symbol], strict=True)
                yield from _bytes_at(pipeline, dict(named))


def _pipeline(pipeline: Pipeline, file: str) -> Iterator[str]:
    count = len(pipeline.launches)
    launches = f"{count} launch{'es' * (count != 1)}"
    yield f"{pipeline.symbol} ({file}:{pipeline.line}), a pipeline of {launches}"
    yield from (f"  {line}" for line in pipeline.documentation.splitlines())
    rows = [(p.name, type_of(p)) for p in pipeline.parameters]
    rows += [("requires", f"{r.text} (line {r.line})") for r in pipeline.requires]
    if pipeline.generics:
        rows.insert(0, ("generics", generics_of(pipeline.generics)))
    whole = ", ".join(c.tensor for c in pipeline.coverage if c.writes_all)
    if whole:
        rows.append(("writes all of", whole))
    before = comes_after(pipeline.launches)
    rows.append(("in a row", f"{longest(pipeline.launches, [1] * count):g} launches at least"))
    yield from columns(rows)
    yield ""
    titles = ("launch", "at", "after", "kernel", "arguments")
    yield from columns([titles, *map(_launch, range(count), pipeline.launches)])
    if pipeline.temporaries:
        yield ""
        yield from columns(
            [("slot", "temporary", "bytes", "from", "to"), *_places(pipeline, before)]
        )
        yield ""
        yield from columns(list(_workspace(pipeline)))


def longest(launches: Sequence[PipelineLaunch], each: Sequence[float]) -> float:
    """The most that launches which must follow one another add up to."""
    ends: list[float] = []
    for launch, own in zip(launches, each, strict=True):
        ends.append(own + max((ends[n] for n in launch.after), default=0))
    return max(ends, default=0)


def _launch(number: int, launch: PipelineLaunch) -> tuple[str, ...]:
    symbols = launch.instances
    kernel = symbols[0] if len(symbols) == 1 else f"{launch.kernel} ({len(symbols)} instances)"
    given = ", ".join(f"{a.parameter} = {given_text(a)}" for a in launch.arguments)
    after = ", ".join(map(str, launch.after))
    return str(number), f"{launch.file}:{launch.line}", after, kernel, given


def given_text(argument: Argument) -> str:
    """What a launch gives for a parameter."""
    if argument.tensor is None:
        assert argument.value is not None, "an argument is a tensor or a number"
        return text_of(argument.value)
    if not argument.axes:
        return argument.tensor
    return f"{argument.tensor}.permute::<{', '.join(map(str, argument.axes))}>()"


def bytes_of(temporary: Temporary) -> Expression:
    """The bytes of a temporary, before they are rounded up."""
    numbers = [extent for extent in temporary.extents if isinstance(extent, int)]
    size: Expression = ELEMENT_BYTES[temporary.element] * prod(numbers)
    for extent in temporary.extents:
        if not isinstance(extent, int):
            size = extent if size == 1 else ("mul", size, extent)
    return size


def slots_of(pipeline: Pipeline) -> dict[int, list[Temporary]]:
    """The temporaries of each slot, by the launch that uses them first."""
    first = {name: numbers[0] for name, numbers in _uses(pipeline).items()}
    slots: dict[int, list[Temporary]] = {t.slot: [] for t in pipeline.temporaries}
    for temporary in sorted(pipeline.temporaries, key=lambda t: first.get(t.name, 0)):
        slots[temporary.slot].append(temporary)
    return dict(sorted(slots.items()))


def _uses(pipeline: Pipeline) -> Mapping[str, list[int]]:
    uses: dict[str, list[int]] = {}
    for number, launch in enumerate(pipeline.launches):
        for argument in launch.arguments:
            if argument.tensor is not None:
                uses.setdefault(argument.tensor, []).append(number)
    return uses


def _places(pipeline: Pipeline, before: Sequence[frozenset[int]]) -> Iterator[tuple[str, ...]]:
    """A temporary is in use from the launches that come after no other of its own on."""
    uses = _uses(pipeline)
    for slot, temporaries in slots_of(pipeline).items():
        for number, temporary in enumerate(temporaries):
            used = uses.get(temporary.name, [])
            begin = [n for n in used if not before[n].intersection(used)]
            end = [n for n in used if not any(n in before[other] for other in used)]
            yield (
                str(slot) if number == 0 else "",
                f"{temporary.name}: {tensor_of(temporary.element, temporary.extents)}",
                text_of(bytes_of(temporary)),
                _numbers(begin),
                _numbers(end),
            )


def _numbers(launches: Sequence[int]) -> str:
    return ", ".join(map(str, dict.fromkeys(launches)))


def _workspace(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """The formula, and what is saved: of each slot all but the largest."""
    largest: list[str] = []
    saved: list[str] = []
    for temporaries in slots_of(pipeline).values():
        sizes = [text_of(bytes_of(t)) for t in temporaries]
        distinct = list(dict.fromkeys(sizes))
        if len(distinct) == 1:
            largest.append(distinct[0])
            saved += sizes[1:]
        else:
            largest.append(f"max({', '.join(distinct)})")
            saved.append(f"all of {', '.join(_counted(sizes))} but the largest")
    rounding = f"each rounded up to a multiple of {SLOT_ALIGNMENT_BYTES}"
    yield "workspace", f"{_added(largest)} bytes, {rounding}"
    yield "saved by lifetimes", f"{_added(saved)} bytes" if saved else "nothing"


def _added(sizes: Sequence[str]) -> str:
    return " + ".join(_counted(sizes))


def _counted(sizes: Sequence[str]) -> Iterator[str]:
    """Sizes, equal ones together: of hundreds nobody reads each."""
    for size, count in Counter(sizes).items():
        many = size if size.isdigit() else f"({size})"
        yield size if count == 1 else f"{count} x {many}"


def _names_of(pipeline: Pipeline) -> tuple[str, ...]:
    """What the bytes of the workspace depend on: `Dim`s, then scalars."""
    extents = [e for t in pipeline.temporaries for e in t.extents]
    return tuple(dict.fromkeys([*pipeline.dims, *(n for e in extents for n in names_in(e))]))


def _bytes_at(pipeline: Pipeline, values: Mapping[str, Value]) -> Iterator[str]:
    where = ", ".join(f"{name} = {value}" for name, value in values.items())
    try:
        workspace = workspace_of(pipeline, values)
    except WorkspaceError as error:
        raise SetupError(f"`{pipeline.symbol}` at {where}: {error}") from None
    yield ""
    yield (
        f"  {where}: {workspace.bytes} bytes of workspace, "
        f"{workspace.apart - workspace.bytes} saved by lifetimes"
    )
    rows = [(name, f"{offset}") for name, offset in workspace.offsets.items()]
    if rows:
        yield from columns([("temporary", "at byte"), *rows], "    ")
