"""The kernels of `loops.tile`, or another file, in the form that has roles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlir import ir

from tilec.compilation import Options
from tilec.driver import front_end
from tilec.hints import Hints
from tilec.ir.dialect import context
from tilec.outputs import describe_kernels
from tilec.roles.specialise import specialise
from tilec.schedule.plan import Schedule, plan
from tilec.source import SourceFile
from tilec.sources import Sources
from tilec.target.resolve import resolve
from tilec.transforms.drop_markers import drop_markers
from tilec.transforms.find_access_facts import find_access_facts
from tilec.transforms.simplify import simplify

FILE = Path(__file__).parent / "loops.tile"


@contextmanager
def planned(file: Path = FILE, **hints: bool) -> Iterator[dict[str, tuple[ir.OpView, Schedule]]]:
    """Functions and their schedules by the name of the kernel, in a context that is entered.

    `hints` count beside those of the kernels.
    """
    source = SourceFile(file.name, file.read_text(encoding="utf-8"))
    with context():
        front = front_end(Sources(source, {}, {}, {}), Options())
        assert front.module is not None and not front.compiled.diagnostics
        kernels = describe_kernels(front.proofs)
        drop_markers(front.module)
        simplify(front.module)
        found = {}
        for one in kernels:
            with one.function.location:
                find_access_facts(one.function)
                asked = Hints.of({**one.description.hints, **hints})
                schedule = plan(one.function, asked, resolve("sm_90a"))
            assert isinstance(schedule, Schedule), schedule
            found[one.description.name] = (one.function, schedule)
        yield found


@contextmanager
def specialised(file: Path = FILE, **hints: bool) -> Iterator[dict[str, ir.OpView]]:
    """The functions, with roles."""
    with planned(file, **hints) as found:
        for function, schedule in found.values():
            with function.location:
                assert isinstance(specialise(function, schedule), Schedule)
        yield {name: function for name, (function, _) in found.items()}
