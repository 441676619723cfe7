"""From arguments to a launch: which instance, which variant, which grid, which bytes.

Pure: no device, no library of arrays. What follows from shapes, strides and the scalars that
`requires!` and grids mention is worked out once for each combination and remembered (`Fitted`);
what is left for each launch is a look-up, the address checks and the packing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from tilec.artifact.expression import Expression, names_in
from tilec.artifact.family import Family
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter
from tilec.runtime.array import Array
from tilec.runtime.choice import Machine, NoMachine, choose
from tilec.runtime.contract import check_type
from tilec.runtime.errors import ContractError
from tilec.runtime.fitted import Argument, Fitted, LaunchPlan, Shapes
from tilec.runtime.scalars import may_be_looked_up

_REMEMBERED = 1024  # combinations of shapes for each kernel, after which all are forgotten


class Planner:
    """Plans launches of the instances of one kernel.

    They are tried in the manifest's order; of a family that is among `families`, the member that
    is for the shapes. `machine` is asked for grids of persistent variants and for choices only.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        machine: Machine | None = None,
        families: Sequence[Family] = (),
    ) -> None:
        assert kernels, "a kernel has instances"
        self._machine = machine or NoMachine()
        self.kernels = tuple(kernels)
        self._groups = _groups(self.kernels, families)
        self.parameters = kernels[0].parameters
        self.name = kernels[0].symbol if len(kernels) == 1 else kernels[0].name
        self.tensor_at = tuple(i for i, p in enumerate(self.parameters) if p.is_tensor)
        self.deciding_at = _deciding_scalars(self.kernels)
        self.known: dict[object, Fitted] = {}

    def positional(
        self, given: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[object, ...]:
        """The arguments in order of the parameters, some of which may be given by name."""
        return positional(self.name, self.parameters, given, named)

    def plan(self, arguments: Sequence[Argument]) -> LaunchPlan:
        """The launch that these arguments give.

        Raises:   ContractError, which names the instance and the argument
        """
        return self.fitted(self.key_of(arguments), arguments).plan(arguments)

    def key_of(self, arguments: Sequence[Argument]) -> tuple[object, ...]:
        """What the fit of an instance depends on; the launcher makes it without `Array`s.

        An Array's first field is its address, the only one that shapes do not depend on.
        """
        key: list[object] = [cast(Array, arguments[i])[1:] for i in self.tensor_at]
        for index in self.deciding_at:
            key += (type(arguments[index]), arguments[index])
        return tuple(key)

    def fitted(self, key: tuple[object, ...], arguments: Sequence[Argument]) -> Fitted:
        """The instance that fits these arguments, remembered under a key.

        Raises:   ContractError, which names the instance and the argument
        """
        try:
            fitted = self.known.get(key)
        except TypeError:  # a scalar that cannot be hashed is no number: the contract says so
            return self._fitted(arguments)
        if fitted is None:
            fitted = self._fitted(arguments)
            if len(self.known) >= _REMEMBERED:
                self.known.clear()
            if all(may_be_looked_up(arguments[index]) for index in self.deciding_at):
                self.known[key] = fitted
        return fitted

    def _fitted(self, arguments: Sequence[Argument]) -> Fitted:
        """The first instance whose contract holds, as far as addresses do not matter; of a family
        the member that is chosen among those whose contracts hold."""
        mistyped: list[str] = []
        refused: list[str] = []
        for family, kernels in self._groups:
            fitting: list[Fitted] = []
            shapes: Shapes | None = None  # the same to all members
            for kernel in kernels:
                try:
                    for index in self.tensor_at:
                        check_type(kernel.parameters[index], cast(Array, arguments[index]))
                except ContractError as error:
                    mistyped.append(f"`{kernel.symbol}`: {error}")
                    continue
                try:
                    shapes = shapes or Shapes(kernel, arguments)
                    fitting.append(Fitted(kernel, shapes, self._machine.sm_count))
                except ContractError as error:
                    refused.append(f"`{kernel.symbol}`: {error}")
            # Members that no variant can launch at these shapes are no choice, if there is another.
            fitting = [one for one in fitting if one.first is not None] or fitting
            if fitting:
                return fitting[0] if family is None else self._chosen(family, fitting, arguments)
        reasons = refused or mistyped
        if len(reasons) == 1:
            raise ContractError(reasons[0])
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise ContractError(f"no instance of `{self.name}` takes these arguments{listed}")

    def _chosen(
        self, family: Family, fitting: Sequence[Fitted], arguments: Sequence[Argument]
    ) -> Fitted:
        arrays = [cast(Array, arguments[index]) for index in self.tensor_at]
        return choose(family, fitting, arrays[0].device if arrays else None, self._machine)


def positional(
    name: str,
    parameters: Sequence[Parameter],
    given: tuple[object, ...],
    named: Mapping[str, object],
) -> tuple[object, ...]:
    """The arguments in order of the parameters, some of which may be given by name.

    Raises:   ContractError, which names the kernel or pipeline `name`
    """
    names = [p.name for p in parameters]
    if len(given) == len(names) and not named:
        return given
    expected = f"`{name}`: expected {len(names)} arguments ({', '.join(names)})"
    if len(given) > len(names):
        raise ContractError(f"{expected}, got {len(given)}")
    values = dict(zip(names, given, strict=False))
    for one, value in named.items():
        if one not in names:
            raise ContractError(f"{expected}, got one named `{one}`")
        if one in values:
            raise ContractError(f"`{name}`: `{one}` is given twice")
        values[one] = value
    missing = [f"`{one}`" for one in names if one not in values]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ContractError(f"{expected}; {', '.join(missing)} {verb} missing")
    return tuple(values[one] for one in names)


def _groups(
    kernels: Sequence[Kernel], families: Sequence[Family]
) -> list[tuple[Family | None, list[Kernel]]]:
    """The kernels in order, those of a family together where its first one is."""
    family_of = {member: family for family in families for member in family.members}
    groups: dict[str, tuple[Family | None, list[Kernel]]] = {}
    for kernel in kernels:
        family = family_of.get(kernel.symbol)
        name = kernel.symbol if family is None else family.members[0]
        groups.setdefault(name, (family, []))[1].append(kernel)
    return list(groups.values())


def _expressions(kernel: Kernel) -> Iterator[Expression]:
    """Everything that launchers evaluate for an instance."""
    yield from kernel.grid
    yield from (requirement.expression for requirement in kernel.requires)


def _deciding_scalars(kernels: Sequence[Kernel]) -> tuple[int, ...]:
    """Positions of the scalars on which the choice of an instance or its grid depends."""
    named = {
        name
        for kernel in kernels
        for expression in _expressions(kernel)
        for name in names_in(expression)
    }
    return tuple(
        index
        for index, parameter in enumerate(kernels[0].parameters)
        if not parameter.is_tensor
        and (
            parameter.name in named
            or len({kernel.parameters[index].element for kernel in kernels}) > 1
        )
    )
