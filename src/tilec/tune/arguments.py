"""Arguments of a kernel at some extents: sets of random tensors, and how they are put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter
from tilec.bench.buffers import Buffers, buffers_of, set_count
from tilec.bench.description import Case, Input, Output
from tilec.bench.gpu import Array, Gpu
from tilec.diagnostics.setup_error import SetupError

Span = tuple[float, float]

# What integers are filled with: as indices, these are inside of nearly everything.
_FEW: Span = (0, 2)
_FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2")

# What two right results may differ by, of their magnitude: sums in another order, then rounded.
_TOLERANCE = {
    "f64": 1e-9, "f32": 1e-3, "f16": 1e-2, "bf16": 4e-2, "f8e4m3": 0.25, "f8e5m2": 0.5,
}  # fmt: skip


@dataclass(frozen=True)
class Values:
    """What users say of arguments, by parameter: numbers of scalars, and what fills tensors."""

    scalars: Mapping[str, float]
    spans: Mapping[str, Span]


class Arguments:
    """Sets of arguments of one kernel at some extents.

    What a kernel reads before it writes it is put back by `restore`; all else that it writes holds
    NaN, or -1, before it is checked.

    Raises:   SetupError if a scalar has no value, or there are no tensors of some element type
    """

    def __init__(
        self, gpu: Gpu, kernel: Kernel, extents: Mapping[str, int], values: Values
    ) -> None:
        self._gpu = gpu
        self._kernel = kernel
        self._tensors = [p for p in kernel.parameters if p.is_tensor]
        self.written = [p for p in self._tensors if p.is_written]
        self._scalars = {
            p.name: _scalar(p, values.scalars) for p in kernel.parameters if not p.is_tensor
        }
        covered = {one.tensor: one for one in kernel.coverage}
        self._kept = [
            p.name not in covered or covered[p.name].reads_first or not covered[p.name].writes_all
            for p in self.written
        ]
        self._specs = {p.name: _spec(p, extents, values.spans) for p in self._tensors}
        case = Case(
            name=kernel.name,
            outputs=tuple(Output(s.shape, s.element) for s in map(self._spec, self.written)),
            inputs=tuple(self._spec(p) for p in self._tensors if not p.is_written),
        )
        try:
            self.sets: tuple[Buffers, ...] = tuple(
                buffers_of(gpu, case, number) for number in range(set_count(gpu, case))
            )
            self._before = [
                gpu.filled(self._spec(p), seed) if kept else None
                for seed, (p, kept) in enumerate(zip(self.written, self._kept, strict=True))
            ]
        except KeyError as error:
            raise SetupError(f"there are no tensors of {error.args[0]!r} to measure with") from None
        self.restore()

    @property
    def changes_inputs(self) -> bool:
        """Whether a launch changes what the next one reads."""
        return any(self._kept)

    def of(self, buffers: Buffers) -> list[object]:
        """The arguments of a launch, in order of the parameters."""
        outputs, inputs = iter(buffers.outputs), iter(buffers.inputs)
        return [
            self._scalars[p.name]
            if not p.is_tensor
            else next(outputs)
            if p.is_written
            else next(inputs)
            for p in self._kernel.parameters
        ]

    def restore(self) -> None:
        """Puts back what kernels read of what they write."""
        for buffers in self.sets:
            for output, before in zip(buffers.outputs, self._before, strict=True):
                if before is not None:
                    self._gpu.copy(output, before)

    def poison(self) -> None:
        """As `restore`, and what is only written holds what nobody writes."""
        for output, before in zip(self.sets[0].outputs, self._before, strict=True):
            if before is None:
                self._gpu.poison(output)
            else:
                self._gpu.copy(output, before)

    def results(self) -> list[Array]:
        """Copies of what the last launch on the first set wrote."""
        found = []
        for parameter, output in zip(self.written, self.sets[0].outputs, strict=True):
            copy = self._gpu.empty(self._spec(parameter))
            self._gpu.copy(copy, output)
            found.append(copy)
        return found

    def difference(self, found: Sequence[Array], expected: Sequence[Array]) -> float:
        """The largest difference of two results by what rounding explains; at most 1: the same."""
        worst = 0.0
        for parameter, one, other in zip(self.written, found, expected, strict=True):
            spec = self._spec(parameter)
            share = _TOLERANCE.get(spec.element, 0.0)
            scale = self._gpu.magnitude(other)
            allowed = Output(spec.shape, spec.element, absolute=share * scale, relative=share)
            worst = max(worst, self._gpu.error(one, other, allowed))
        return worst

    def _spec(self, parameter: Parameter) -> Input:
        return self._specs[parameter.name]


def _spec(parameter: Parameter, extents: Mapping[str, int], spans: Mapping[str, Span]) -> Input:
    shape = tuple(x if isinstance(x, int) else extents[x] for x in parameter.extents)
    span = spans.get(parameter.name, None if parameter.element in _FLOATS else _FEW)
    return Input(shape, parameter.element, span)


def _scalar(parameter: Parameter, given: Mapping[str, float]) -> object:
    if parameter.name in given:
        number = given[parameter.name]
        return number if parameter.element in _FLOATS else int(number)
    if parameter.element in _FLOATS:
        return 1.0
    raise SetupError(
        f"the scalar `{parameter.name}` of type `{parameter.element}` has no value",
        help=f"give it one: `--arg {parameter.name}=…`",
    )
