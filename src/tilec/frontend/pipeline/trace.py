"""What is known of a pipeline while it is executed at compile time, and what comes of it.

A scalar keeps its typed tree and the call that it is of, since literals in it get their types last;
`values.py` makes expressions of them. A tensor is told by identity: whatever names it goes by.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.diagnostics import Diagnostic
from tilec.frontend import ast, typed
from tilec.frontend.inference import ElementInference
from tilec.frontend.modules import Program
from tilec.frontend.pipeline.extents import Extents, shown
from tilec.integers.polynomial import Polynomial
from tilec.ops.call import GenericValue
from tilec.source import Span
from tilec.types import Dim, Element, Own, TensorType

# Turns of all loops of a pipeline together.
MAX_TURNS = 1 << 16


@dataclass(eq=False)
class Frame:
    """One call of a pipeline: what its `Dim`s are to the caller, and the values of variables.

    The outermost call has no `dims`: they are its own.
    """

    inference: ElementInference
    dims: dict[Dim, Scalar] = field(default_factory=dict)
    values: dict[typed.Local, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scalar:
    """A value that launchers compute."""

    frame: Frame
    value: typed.Expression


@dataclass(frozen=True)
class Size:
    """One extent: what it is in terms of `Dim`s and scalars, and what launchers compute."""

    form: Polynomial
    scalar: Scalar


@dataclass(frozen=True, eq=False)
class Tensor:
    """A parameter of the outermost pipeline, or a temporary (`own` is None).

    `name` is the plan's, and no other tensor has it; `written` is the program's.
    """

    name: str
    written: str
    span: Span
    element: Element
    extents: tuple[Size, ...]
    own: Own | None = None


@dataclass(frozen=True)
class View:
    """What a name stands for: axis i is axis `axes[i]` of the tensor.

    `held` is what may be done with it; None for a temporary held by value, which is lent.
    """

    tensor: Tensor
    axes: tuple[int, ...]
    held: Own | None

    @property
    def extents(self) -> tuple[Size, ...]:
        return tuple(self.tensor.extents[axis] for axis in self.axes)

    @property
    def shown(self) -> TensorType:
        """The type that it would have in a kernel."""
        extents = tuple(
            e.form.constant if e.form.is_constant else Dim(shown(e.form)) for e in self.extents
        )
        return TensorType(self.tensor.element, extents, self.held or Own.SHARED)

    def __str__(self) -> str:
        return str(self.shown) if self.held else str(self.shown).removeprefix("&")


@dataclass(frozen=True)
class Given:
    """What a call gives for one parameter: a tensor, lent in one way, or a scalar."""

    span: Span
    view: View | None
    scalar: typed.Expression | None = None

    def __str__(self) -> str:
        return str(self.view or (self.scalar and self.scalar.type))


@dataclass(frozen=True, eq=False)
class Passed:
    """One argument of a launch. `own` is the kernel parameter's, None of a scalar."""

    parameter: str
    span: Span
    own: str | None
    view: View | None
    scalar: Scalar | None
    element: Element


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch; `calls` are where pipelines around it were called, the outermost first."""

    kernel: str
    instances: tuple[str, ...]
    arguments: tuple[Passed, ...]
    span: Span
    calls: tuple[Span, ...]


@dataclass(frozen=True, eq=False)
class Required:
    """A `requires!`; `text` is None where it is in words that callers do not know.

    Those of a loop, or of another pipeline, which `calls` tells the calls of.
    """

    condition: Scalar
    text: str | None
    span: Span
    calls: tuple[Span, ...]


@dataclass(eq=False)
class Trace:
    """The execution of one instance of a pipeline."""

    program: Program
    symbol: str
    extents: Extents = field(default_factory=Extents)
    launches: list[Launch] = field(default_factory=list)
    temporaries: list[Tensor] = field(default_factory=list)
    requires: list[Required] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    active: list[ast.Function] = field(default_factory=list)
    reached: list[ast.Function] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of tensors and scalars of the plan
    turns: int = 0  # of loops
    called: int = 0  # pipelines, by it and by those that it calls
    is_cut: bool = False  # there was one call too many

    def new_name(self, written: str) -> str:
        """A name that nothing in the plan has."""
        name, count = written, 1
        while name in self.names:
            count += 1
            name = f"{written}_{count}"
        self.names.add(name)
        return name


@dataclass(frozen=True, eq=False)
class PipelineInstance:
    """One instance of a pipeline, with everything that it launches."""

    name: str
    symbol: str
    span: Span
    documentation: str
    generics: tuple[tuple[str, GenericValue], ...]
    dims: tuple[Dim, ...]
    parameters: tuple[typed.Local, ...]
    frame: Frame
    requires: tuple[Required, ...]
    temporaries: tuple[Tensor, ...]
    launches: tuple[Launch, ...]
