"""The text of generated programs, and their entries for the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from tests.programs.generate.choosing import atomic_programs, chosen_programs
from tests.programs.generate.forms import FORMS, Form
from tests.programs.generate.memory import memory_programs
from tests.programs.generate.plan import Trial, trials
from tests.programs.generate.products import product_programs
from tests.programs.generate.use import Operand, Shape, listed
from tests.programs.table import NUMPY, Arrays, Entry


@dataclass(frozen=True)
class Program:
    """A `.tile` file, and the entry of each of its kernels."""

    text: str
    entries: Mapping[str, Entry]


@cache
def programs() -> Mapping[str, Program]:
    """Every generated program by name."""
    found = {name: _program(name, kernels) for name, kernels in trials().items()}
    others = {
        **memory_programs(),
        **chosen_programs(),
        **atomic_programs(),
        **product_programs(),
    }
    return {**found, **{name: Program(*parts) for name, parts in others.items()}}


def _program(name: str, kernels: list[Trial]) -> Program:
    text = f"//! Generated: {name.replace('_', ', ')}.\n" + "".join(map(_kernel, kernels))
    return Program(text, {trial.name: _entry(trial) for trial in kernels})


def _operands(trial: Trial) -> dict[str, tuple[Operand, Form]]:
    found = {}
    for use in trial.uses:
        for operand in use.operands:
            shape = trial.shape if operand.shape is None else operand.shape
            form = FORMS[trial.form if operand.shape is None else "plain"]
            found[operand.name] = operand, form(operand, shape)
    return found


def _kernel(trial: Trial) -> str:
    operands = _operands(trial)
    lines = ["", "#[kernel]", f"#[hint(warps = {trial.warps})]", f"pub fn {trial.name}("]
    for number, use in enumerate(trial.uses):
        extents = listed(_tensor(use.shape))
        lines.append(f"    y{number}: Part<&mut Tensor<{use.element}, {extents}>, {extents}>,")
    for name, (operand, form) in operands.items():
        lines.append(f"    x_{name}: &Tensor<{operand.element}, {listed(form.stored)}>,")
    lines.append(") {")
    for name, (_, form) in operands.items():
        lines.append(f"    let {name} = {form.text.format(x=f'x_{name}')};")
    names = {name: name for name in operands}
    for number, use in enumerate(trial.uses):
        lines.append(f"    y{number}.store({use.text.format(**names)});")
    return "\n".join([*lines, "}", ""])


def _tensor(shape: Shape) -> Shape:
    """A scalar is stored as a tile of one element."""
    return shape or (1,)


def _entry(trial: Trial) -> Entry:
    data = {
        f"x_{name}": form.kind or operand.kind for name, (operand, form) in _operands(trial).items()
    }
    return Entry(partial(_reference, trial), dims=({},), data=data, ulps=trial.uses[0].ulps)


def _reference(trial: Trial, arrays: Arrays) -> Mapping[str, Any]:
    values = {
        name: form.tile(getattr(arrays, f"x_{name}"))
        for name, (_, form) in _operands(trial).items()
    }
    found = {}
    for number, use in enumerate(trial.uses):
        if use.reference is not None:
            result = use.reference(*(values[operand.name] for operand in use.operands))
            dtype = np.dtype(NUMPY[use.element])
            assert np.asarray(result).dtype == dtype, f"the reference of {use.text}"
            found[f"y{number}"] = np.asarray(result).reshape(_tensor(use.shape))
    return found
