"""One call of a pipeline while it is executed: its names, and what they stand for.

Scalars are typed as in kernels. A variable of the type checker is one value: an assignment makes
another variable of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.bindings import Binding, Constant, Environment
from tilec.frontend.checker import Checker
from tilec.frontend.constants import evaluate
from tilec.frontend.host import is_host
from tilec.frontend.pipeline.kernels import Kernels
from tilec.frontend.pipeline.trace import Frame, Scalar, Size, Trace, View
from tilec.frontend.refusal import refusal
from tilec.frontend.scope import Scope
from tilec.integers.polynomial import Polynomial
from tilec.source import Span
from tilec.types import BOOL, USIZE, Element, TileType, scalar

_DIVIDING = frozenset({"/", "%", "div_ceil", "rem_euclid"})


@dataclass(eq=False)
class Tracer:
    """One call: `calls` are the places of the calls around it, the outermost first."""

    trace: Trace
    kernels: Kernels
    checker: Checker
    frame: Frame
    calls: tuple[Span, ...] = ()
    views: dict[typed.Local, View] = field(default_factory=dict)
    moved: dict[typed.Local, Span] = field(default_factory=dict)
    constants: dict[typed.Local, Constant] = field(default_factory=dict)
    forms: dict[typed.Local, Polynomial] = field(default_factory=dict)
    dim_forms: dict[str, Polynomial] = field(default_factory=dict)  # of an inner call

    def __post_init__(self) -> None:
        outer = self.checker.environment
        known = _Known(outer.generics, self.checker.scope, self.constants)
        self.checker.environment = Environment(outer.module, known, known.hides)

    @property
    def environment(self) -> Environment:
        """Where constants are looked up; variables with known values are among them."""
        return self.checker.environment

    # ---- scalars ---------------------------------------------------------------------------------

    def scalar(self, node: ast.Expression, element: Element | None = None) -> typed.Expression:
        """A value that launchers compute, of an element type if that is given.

        Raises:   CompileError: E02xx, E0804 for what only a kernel knows
        """
        known = self.constant(node)
        value = self.checker.expression(node) if known is None else self._literal(node, known)
        return self._computed_by_launchers(node, value, element)

    def as_written(self, node: ast.Expression, element: Element) -> typed.Expression:
        """As `scalar`, with the divisions that are in it, be its value known or not."""
        value = self.checker.expression(node)
        divides = any(one.name in _DIVIDING for one in typed.below(value, typed.Operate))
        is_known = self.constant(node) is not None
        if is_known and not (divides and is_host(value)):
            return self.scalar(node, element)
        return self._computed_by_launchers(node, value, element)

    def _computed_by_launchers(
        self, node: ast.Expression, value: typed.Expression, element: Element | None
    ) -> typed.Expression:
        if not isinstance(value.type, TileType) or not value.type.is_scalar:
            raise refusal(
                "E0804",
                "a pipeline computes with scalars only",
                node.span,
                f"this is `{self.checker.inference.resolve_type(value.type)}`",
                help="compute it in a kernel",
            )
        if not is_host(value):
            raise refusal(
                "E0804",
                "a pipeline computes with extents, scalar parameters and constants",
                node.span,
                "a launcher cannot know this",
            )
        if element is not None:
            expect(value.type, TileType(element), self.checker.inference, node.span)
        return value

    def _literal(self, node: ast.Expression, known: Constant) -> typed.Literal:
        if known.element is None and not isinstance(known.value, bool):
            return self.checker.number(node, known.value, None)
        return typed.Literal(node.span, scalar(known.element or BOOL), known.value)

    def size(self, node: ast.Expression) -> Size:
        """An extent. Raises as `scalar` does."""
        value = self.scalar(node, USIZE)
        return Size(self.form_of(value), Scalar(self.frame, value))

    def form_of(self, value: typed.Expression) -> Polynomial:
        """A value in terms of the outermost pipeline's `Dim`s and scalars."""
        return self.trace.extents.form_of(value, self._read)

    def _read(self, value: typed.Expression) -> Polynomial | None:
        match value:
            case typed.Read(local=local):
                return self.forms.get(local)
            case typed.DimValue(dim=dim) if dim in self.frame.dims:
                return self.dim_forms[dim.name]
            case typed.DimValue(dim=dim):
                return self.trace.extents.named(dim.name, is_dim=True)
        return None

    def constant(self, node: ast.Expression) -> Constant | None:
        """The value of an expression that is known at compile time; None if it is not."""
        try:
            return evaluate(node, self.environment)
        except CompileError:
            return None

    def declare(
        self,
        name: ast.Name,
        value: typed.Expression,
        constant: Constant | None,
        *,
        mutable: bool = False,
        again: bool = False,
    ) -> None:
        """Let a name stand for a scalar; `again` where it is a variable that is assigned."""
        local = typed.Local(name.text, name.span, value.type, mutable, is_host(value))
        if again:
            self.checker.scope.rebind(local)
        else:
            self.checker.scope.declare(local)
        self.frame.values[local] = Scalar(self.frame, value)
        self.forms[local] = self.form_of(value)
        if constant is not None:
            self.constants[local] = constant

    # ---- tensors ---------------------------------------------------------------------------------

    def bind(self, name: ast.Name, view: View, *, mutable: bool = False) -> typed.Local:
        """Let a name stand for a view."""
        local = typed.Local(name.text, name.span, view.shown, mutable)
        self.checker.scope.declare(local)
        self.views[local] = view
        return local

    def local_of(self, node: ast.Expression) -> typed.Local | None:
        """The variable that an expression names, if it names one."""
        match node:
            case ast.Path(segments=(ast.Segment(name=name, arguments=None),)):
                return self.checker.scope.find(name.text)
        return None

    def view_named(self, local: typed.Local, span: Span) -> View:
        """What a variable stands for. Raises CompileError E0401 if it was moved."""
        if local not in self.moved:
            return self.views[local]
        moved = self.moved[local]
        is_same = moved == span
        raise refusal(
            "E0401",
            f"use of the moved temporary `{local.name}`",
            span,
            "moved here, in the turn before" if is_same else "used here",
            *(() if is_same else (Label(moved, "moved here"),)),
            notes=("a temporary has one name at a time",),
        )

    def called_from(self) -> tuple[Label, ...]:
        """Where the call that is executed stands."""
        return tuple(Label(span, "in the pipeline that is called here") for span in self.calls)

    def report(self, error: CompileError) -> None:
        """Note what was found, with the calls that it is in, and go on."""
        around = self.called_from()
        self.trace.diagnostics += [
            replace(d, labels=(*d.labels, *around)) for d in error.diagnostics
        ]


class _Known(Mapping[str, Binding]):
    """Generics, and variables with known values, which hide them."""

    def __init__(
        self,
        generics: Mapping[str, Binding],
        scope: Scope,
        constants: Mapping[typed.Local, Constant],
    ) -> None:
        self._generics, self._scope, self._constants = generics, scope, constants

    def hides(self, name: str) -> bool:
        """Whether a name is a variable whose value is not known."""
        local = self._scope.find(name)
        return local is not None and local not in self._constants

    def __getitem__(self, name: str) -> Binding:
        local = self._scope.find(name)
        return self._generics[name] if local is None else self._constants[local]

    def __iter__(self) -> Iterator[str]:
        names = {*self._generics, *self._scope.names()}
        return (name for name in names if not self.hides(name))

    def __len__(self) -> int:
        return len(list(iter(self)))
