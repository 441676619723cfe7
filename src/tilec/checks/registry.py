"""Every check of this folder, by the pass that runs it.

A file `check_<x>.py` is found by being there. It has a function of its own name, which takes a
module and the sources that its places lie in (`target` too, if it asks for one) and yields
diagnostics; and it says

    PASS = "tile-verify-…"    the pass that runs it; checks of one subject share one
    INLINED = False           whether it reads kernels whose helpers have been inlined
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import tilec.checks
from tilec.diagnostics import Diagnostic


@dataclass(frozen=True)
class Check:
    """One check: its function, and what that wants to be given."""

    function: Callable[..., Iterator[Diagnostic]]
    inlined: bool
    takes_target: bool


@cache
def check_passes() -> dict[str, tuple[Check, ...]]:
    """The checks of each pass, by the pass's name, in the order of their files."""
    found: dict[str, tuple[Check, ...]] = {}
    for file in pkgutil.iter_modules(tilec.checks.__path__):
        if file.name.startswith("check_"):
            module = import_module(f"{tilec.checks.__name__}.{file.name}")
            function = getattr(module, file.name)
            takes_target = "target" in inspect.signature(function).parameters
            check = Check(function, module.INLINED, takes_target)
            found[module.PASS] = (*found.get(module.PASS, ()), check)
    return found
