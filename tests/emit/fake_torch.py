"""As much of PyTorch as operations need: tensors are NumPy arrays, operations are called at once.

What it notes: the schemas of operations, by their names; versions of tensors that were written.
"""

from __future__ import annotations

import re
from types import ModuleType, SimpleNamespace

import numpy as np


class Tensor:
    requires_grad = False
    is_cuda = True

    def __init__(self, values, dtype=None):
        self.values = np.asarray(values)
        self.dtype = dtype or f"torch.{self.values.dtype}"
        self.version = 0

    @property
    def shape(self):
        return self.values.shape

    def is_inference(self):
        return False

    def new_empty(self, shape, dtype):
        return Tensor(np.empty(shape, np.float32), dtype)


class Library:
    def __init__(self, torch, namespace):
        self._torch = torch
        self._namespace = namespace

    def define(self, schema, tags=()):
        name = schema.partition("(")[0]
        assert f"{self._namespace}::{name}" not in self._torch.schemas, "defined twice"
        assert tags == ("pt2_compliant",)
        self._torch.schemas[f"{self._namespace}::{name}"] = schema.removeprefix(name)

    def impl(self, name, run, key):
        assert key == "CompositeExplicitAutograd"
        space = self._torch.ops.__dict__.setdefault(self._namespace, SimpleNamespace())
        setattr(space, name, SimpleNamespace(default=self._checked(name, run)))

    def _checked(self, name, run):
        """The operation; what it gives and writes is what its schema says."""
        schema = self._torch.schemas[f"{self._namespace}::{name}"]
        given, made = re.fullmatch(r"\((.*)\) -> (.*)", schema).groups()
        kinds = [one.rpartition(" ")[0] for one in given.split(", ")]

        def operation(*arguments):
            assert len(arguments) == len(kinds)
            before = [getattr(one, "version", None) for one in arguments]
            result = run(*arguments)
            for kind, one, version in zip(kinds, arguments, before, strict=True):
                assert isinstance(one, Tensor) == kind.startswith("Tensor")
                if kind.startswith("Tensor"):
                    assert one.version == version + ("!" in kind)
            count = {"()": 0, "Tensor": 1}.get(made, made.count("Tensor"))
            results = () if result is None else (result,) if count == 1 else result
            assert len(results) == count and all(isinstance(one, Tensor) for one in results)
            return result

        return operation


def fake_torch():
    """A module to import as `torch`."""
    torch = ModuleType("torch")
    torch.schemas, torch.fakes, torch.gradients, torch.derivatives = {}, {}, False, set()
    torch.Tensor = Tensor
    torch.ops = SimpleNamespace()
    torch.Tag = SimpleNamespace(pt2_compliant_tag="pt2_compliant")
    torch.is_grad_enabled = lambda: torch.gradients
    for name in ("bool", "int8", "float16", "float32", "int64"):
        setattr(torch, name, f"torch.{name}")
    torch.bfloat16 = "torch.bfloat16"
    torch.library = SimpleNamespace(
        Library=lambda namespace, kind: Library(torch, namespace),
        register_fake=lambda name, fake, lib: torch.fakes.update({name: fake}),
    )
    torch._C = SimpleNamespace(
        _dispatch_has_kernel_for_dispatch_key=lambda name, key: name in torch.derivatives
    )

    def increment_version(tensor):
        tensor.version += 1

    torch.autograd = SimpleNamespace(graph=SimpleNamespace(increment_version=increment_version))
    return torch
