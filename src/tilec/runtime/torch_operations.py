"""Operations of PyTorch that launch kernels; emitted files (`tilec build --emit python`) define
theirs by this.

They are defined by `torch.library.Library`, not by its `custom_op`, whose Python layers cost
several times what a launch does. What `custom_op` adds, and callers rely on, is done here: fake
tensors, the version of a tensor that is written, and that derivatives are not wrong in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import Parameter
from tilec.runtime.array import Array
from tilec.runtime.beside import Beside
from tilec.runtime.contract import bound_dims, check_type
from tilec.runtime.elements import element_of, library_name
from tilec.runtime.errors import ContractError

_REMEMBERED = 1024  # types and shapes for each operation, after which all are forgotten

_DEFINED: dict[str, str] = {}  # by operation: the file that defined it

_Made = tuple[tuple[tuple[int, ...], Any], ...]  # the shape and dtype of each result


class Operations:
    """The operations of one emitted file, in a namespace of `torch.ops`."""

    def __init__(self, namespace: str, file: str, cubins: Mapping[str, str]) -> None:
        self._namespace = namespace
        self._file = file
        self._library = torch.library.Library(namespace, "FRAGMENT")
        self._beside = Beside(file, cubins)

    def into(self, name: str, schema: str, called: str) -> Any:
        """Defines the operation that writes into the tensors that it is given."""
        operation = f"{self._namespace}::{name}"

        def check(*given: Any) -> None:
            _refuse_gradients(operation, given)
            _fitting(self._instances(called), given, ())

        written: tuple[int, ...] | None = None
        launch: Callable[..., object] | None = None

        def run(*given: Any) -> None:
            nonlocal launch, written
            if launch is None or written is None:
                parameters = self._instances(called)[0].parameters
                written = tuple(i for i, p in enumerate(parameters) if p.is_written)
                launch = self._beside.launcher(called).launch
            if torch.is_grad_enabled():
                _refuse_gradients(operation, given)
            launch(*given)
            for index in written:
                if not given[index].is_inference():
                    torch.autograd.graph.increment_version(given[index])

        return self._defined(name, schema, run, check)

    def making(self, name: str, schema: str, called: str) -> Any:
        """Defines the operation that makes what it writes."""
        operation = f"{self._namespace}::{name}"
        known: dict[object, _Made] = {}
        launch: Callable[..., object] | None = None
        order: tuple[int, ...] = ()
        tensors_at: tuple[int, ...] = ()
        first_name = ""

        def like(*given: Any) -> Any:
            _refuse_gradients(operation, given)
            made = _results(self._instances(called), given)
            first = next(one for one in given if isinstance(one, torch.Tensor))
            return _one_or_all([first.new_empty(shape, dtype=dtype) for shape, dtype in made])

        def run(*given: Any) -> Any:
            nonlocal launch, order, tensors_at, first_name
            if launch is None:
                parameters = self._instances(called)[0].parameters
                results = tuple(i for i, p in enumerate(parameters) if p.is_written)
                order = _order(len(parameters), results)
                given_ = [p for p in parameters if not p.is_written]
                tensors_at = tuple(i for i, p in enumerate(given_) if p.is_tensor)
                first_name = given_[tensors_at[0]].name
                launch = self._beside.launcher(called).launch
            key = tuple([(given[i].dtype, given[i].shape) for i in tensors_at])
            made = known.get(key)
            if made is None:
                if len(known) >= _REMEMBERED:
                    known.clear()
                made = known[key] = _results(self._instances(called), given)
            if torch.is_grad_enabled():
                _refuse_gradients(operation, given)
            first = given[tensors_at[0]]
            if not first.is_cuda:  # else the launch would complain of what is made here
                raise ContractError(
                    f"`{first_name}` lies in host memory; `.cuda()` copies it to the GPU"
                )
            tensors = [first.new_empty(shape, dtype=dtype) for shape, dtype in made]
            every = (*tensors, *given)
            launch(*[every[i] for i in order])
            return _one_or_all(tensors)

        return self._defined(name, schema, run, like)

    def _defined(
        self, name: str, schema: str, run: Callable[..., object], fake: Callable[..., object]
    ) -> Any:
        self._claim(f"{self._namespace}::{name}")
        tags = (torch.Tag.pt2_compliant_tag,)
        self._library.define(f"{name}{schema}", tags=tags)
        self._library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{self._namespace}::{name}", fake, lib=self._library)
        return getattr(getattr(torch.ops, self._namespace), name).default

    def _claim(self, operation: str) -> None:
        """Raises ImportError if the operation is there: PyTorch has one of a name in a process."""
        other = _DEFINED.get(operation)
        if other is None:
            _DEFINED[operation] = self._file
            return
        if Path(other) == Path(self._file):
            raise ImportError(
                f"`{operation}` is defined already: {self._file} was executed twice in one process"
            )
        raise ImportError(
            f"`{operation}` is defined already, by {other}: PyTorch has one operation of a name in "
            f"a process. Build one of the two files with a prefix (`tilec build --prefix`), or "
            f"from a source of another name",
            path=self._file,
        )

    def _instances(self, called: str) -> Sequence[Kernel | Pipeline]:
        manifest = self._beside.manifest()
        kernels = [kernel for kernel in manifest.kernels if kernel.name == called]
        return kernels or [one for one in manifest.pipelines if one.name == called]


def _refuse_gradients(operation: str, given: Sequence[Any]) -> None:
    """PyTorch would leave such an operation out of what it differentiates, with a warning.

    Raises:   ContractError if derivatives are wanted, and the operation was not given any
    """
    if not torch.is_grad_enabled():
        return
    for one in given:
        if isinstance(one, torch.Tensor) and one.requires_grad:
            if torch._C._dispatch_has_kernel_for_dispatch_key(operation, "Autograd"):
                return
            raise ContractError(
                f"`{operation}` has no derivative, and is given a tensor that requires one: call "
                f"it under `torch.no_grad()`, detach the tensor, or give the operation a "
                f"derivative by `torch.library.register_autograd`"
            )


def _order(count: int, results: Sequence[int]) -> tuple[int, ...]:
    """Where each parameter is among the results followed by what was given."""
    given = [i for i in range(count) if i not in results]
    every = [*results, *given]
    return tuple(every.index(i) for i in range(count))


def _one_or_all(tensors: list[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _results(instances: Sequence[Kernel | Pipeline], given: Sequence[Any]) -> _Made:
    """What an operation makes of these arguments."""
    parameters = instances[0].parameters
    results = tuple(i for i, parameter in enumerate(parameters) if parameter.is_written)
    found, dims = _fitting(instances, given, results)
    return tuple(
        (
            tuple(e if isinstance(e, int) else dims[e] for e in found.parameters[i].extents),
            getattr(torch, library_name(found.parameters[i].element)),
        )
        for i in results
    )


def _fitting(
    instances: Sequence[Kernel | Pipeline], given: Sequence[Any], made: Sequence[int]
) -> tuple[Kernel | Pipeline, dict[str, int]]:
    """The first instance whose element types, ranks and extents are those of the tensors, and what
    its `Dim`s are. The parameters at `made` are not among the arguments.

    Addresses and strides are not looked at, for fake tensors have none; extents may be symbols.

    Raises:   ContractError
    """
    reasons: list[str] = []
    for instance in instances:
        expected = [p for i, p in enumerate(instance.parameters) if i not in made]
        tensors: list[tuple[Parameter, Array]] = []
        try:
            for parameter, one in zip(expected, given, strict=True):
                if parameter.is_tensor:
                    tensors.append((parameter, _array(parameter.name, one)))
                    check_type(*tensors[-1])
            return instance, bound_dims(tensors)
        except ContractError as error:
            reasons.append(f"`{instance.symbol}`: {error}")
    if len(reasons) == 1:
        raise ContractError(reasons[0])
    listed = "".join(f"\n  {reason}" for reason in reasons)
    raise ContractError(f"no instance of `{instances[0].name}` takes these arguments{listed}")


def _array(name: str, tensor: Any) -> Array:
    element = element_of(tensor.dtype)
    if element is None:
        raise ContractError(f"`{name}`: no element type of kernels is `{tensor.dtype}`")
    return Array(0, element, tuple(tensor.shape), (), 0)
