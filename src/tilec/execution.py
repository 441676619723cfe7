"""A kernel of a file run on the CPU, as `tilec run` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.compilation import Executed, Options
from tilec.driver import front_end
from tilec.interpret.contract import BrokenContract
from tilec.interpret.launch import changes, choose, launch, read_arguments, tensor_named
from tilec.interpret.npy import written_npy
from tilec.interpret.report import diagnostics_of
from tilec.interpret.sanitize import Sanitizer
from tilec.ir.dialect import context
from tilec.sources import Sources


def execute(
    sources: Sources,
    options: Options,
    kernel: str,
    given: Mapping[str, bytes | int | float | bool],
    wanted: Sequence[str],
    *,
    sanitize: bool = False,
) -> Executed:
    """Run a kernel on the CPU; tensors come in and go out as the bytes of `.npy` files.

    `wanted` are the tensors to write; without any, what changed is shown. With `sanitize`, every
    access is watched; if anything is found, nothing is written or shown.
    """
    with context():
        front = front_end(sources, options)
        if front.compiled.is_refused or front.module is None:
            return Executed(front.compiled)
        try:
            arguments = read_arguments(given)
            chosen = choose(front.module, kernel, arguments)
            shapes = {name: array.shape for name, array in chosen.tensors.items()}
            observer = Sanitizer(shapes, chosen.unset) if sanitize else None
            after = launch(chosen, observer)
            found = observer.findings() if observer else ()
            findings = tuple(diagnostics_of(found, front.sources, chosen.sizes))
            if findings:
                return Executed(front.compiled, findings=findings)
            written = {name: written_npy(tensor_named(after, name)) for name in wanted}
        except BrokenContract as broken:
            return Executed(front.compiled, broken=str(broken))
        return Executed(front.compiled, written, "" if wanted else changes(arguments, after))
