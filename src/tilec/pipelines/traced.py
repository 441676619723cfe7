"""A pipeline as it is written: every launch in order, before anything is planned. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.artifact.pipeline import Argument, Temporary
from tilec.artifact.signature import Generic, Parameter, Requirement
from tilec.source import Span


@dataclass(frozen=True)
class Given:
    """One argument of a launch; `own` is how the kernel's parameter is owned, None of a scalar."""

    argument: Argument
    own: str | None
    span: Span

    @property
    def tensor(self) -> str | None:
        return self.argument.tensor

    @property
    def may_write(self) -> bool:
        return self.own in ("part", "mut", "atomic")


@dataclass(frozen=True)
class TracedLaunch:
    """One launch. `calls` are the calls of pipelines that it is in, the outermost first.

    Units:    `line` is one-based, in the source `file`
    """

    kernel: str
    instances: tuple[str, ...]
    given: tuple[Given, ...]
    span: Span
    file: str
    line: int
    calls: tuple[Span, ...] = ()


@dataclass(frozen=True)
class TracedTemporary:
    """A temporary, its slot not given yet. `written` is its name in the source.

    Those whose `size`s are equal have as many bytes in every launch.
    """

    temporary: Temporary
    written: str
    span: Span
    size: object

    @property
    def name(self) -> str:
        return self.temporary.name


@dataclass(frozen=True)
class Traced:
    """One instance of a pipeline; `places` are those of its parameters."""

    name: str
    symbol: str
    generics: tuple[Generic, ...]
    documentation: str
    span: Span
    line: int
    parameters: tuple[Parameter, ...]
    places: tuple[Span, ...]
    dims: tuple[str, ...]
    requires: tuple[Requirement, ...]
    temporaries: tuple[TracedTemporary, ...]
    launches: tuple[TracedLaunch, ...]
