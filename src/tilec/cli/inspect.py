"""`tilec inspect`: what a cubin or a manifest holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tilec.artifact.embed import CubinError, extract
from tilec.artifact.expression import text_of
from tilec.artifact.manifest import (
    Kernel,
    Manifest,
    ManifestError,
    Parameter,
    Precondition,
    UnsafeUse,
    Variant,
    from_json,
)
from tilec.cli.entry import DONE, REFUSED
from tilec.diagnostics.setup_error import SetupError

_COLUMNS = ("variant", "threads", "registers", "spills", "stack", "smem", "cluster", "taken when")


@click.command()
@click.argument("files", nargs=-1, required=True)
def command(files: tuple[str, ...]) -> int:
    """Show what cubins and manifests (FILES) hold: instances, their contracts and variants.

    Spills and stack are bytes a thread, smem is bytes a block (static + dynamic).
    """
    status = DONE
    for file in files:
        try:
            manifest = _manifest(file)
        except (CubinError, ManifestError) as error:
            click.echo(f"error: `{file}`: {error}", err=True)
            status = REFUSED
            continue
        click.echo("\n".join(_description(manifest)))
    return status


def _manifest(file: str) -> Manifest:
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{file}`: {reason}") from error
    if content.startswith(b"\x7fELF"):
        embedded = extract(content)
        if embedded is None:
            raise CubinError("the cubin holds no manifest")
        content = embedded
    return from_json(content)


def _description(manifest: Manifest) -> Iterator[str]:
    tools = manifest.toolchain
    checked = ", a checked build" if manifest.checked else ""
    yield f"{manifest.source.file} for {manifest.target}{checked}"
    yield f"  by tilec {tools.tilec}, MLIR {tools.mlir}, ptxas {tools.ptxas}"
    yield f"  source SHA-256 {manifest.source.sha256}"
    for kernel in manifest.kernels:
        yield ""
        yield from _kernel(kernel, manifest.source.file)


def _kernel(kernel: Kernel, file: str) -> Iterator[str]:
    yield f"{kernel.symbol} ({file}:{kernel.line})"
    yield from (f"  {line}" for line in kernel.documentation.splitlines())
    rows = [(p.name, _type(p)) for p in kernel.parameters]
    rows.append(("grid", ", ".join(map(text_of, kernel.grid))))
    rows += [("requires", f"{r.text} (line {r.line})") for r in kernel.requires]
    rows += [("unsafe", f"{use.what} ({_place(use, file)})") for use in kernel.unsafe]
    if kernel.generics:
        bound = ", ".join(f"{g.name} = {_value(g.value)}" for g in kernel.generics)
        rows.insert(0, ("generics", bound))
    yield from _table(rows)
    yield ""
    yield from _table([_COLUMNS, *map(_variant, kernel.variants)])


def _place(use: UnsafeUse, file: str) -> str:
    return f"line {use.line}" if use.file == file else f"{use.file}:{use.line}"


def _type(parameter: Parameter) -> str:
    if not parameter.is_tensor:
        return parameter.element
    tensor = f"Tensor<{', '.join(map(str, (parameter.element, *parameter.extents)))}>"
    match parameter.own:
        case "part":
            return f"Part<&mut {tensor}, {', '.join(map(str, parameter.block))}>"
        case "mut":
            return f"&mut {tensor}"
        case "atomic":
            return f"&Atomic<{tensor}>"
        case _:
            return f"&{tensor}"


def _value(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _variant(variant: Variant) -> tuple[str, ...]:
    return (
        variant.symbol,
        str(variant.threads),
        str(variant.registers),
        f"{variant.spill_store_bytes}+{variant.spill_load_bytes}",
        str(variant.stack_bytes),
        f"{variant.static_smem_bytes}+{variant.dynamic_smem_bytes}",
        "x".join(map(str, variant.cluster)),
        "; ".join(_conditions(variant.preconditions)) or "always",
    )


def _conditions(preconditions: Sequence[Precondition]) -> Iterator[str]:
    """What must hold, said once for all tensors of which the same must hold."""
    tensors: dict[tuple[int, int], list[str]] = {}
    for p in preconditions:
        alignments = p.base_alignment_bytes, p.stride_multiple_bytes
        tensors.setdefault(alignments, []).append(p.param)
    for (base, stride), names in tensors.items():
        strides = f", strides too ({stride})" if stride > 1 else ""
        yield f"{', '.join(names)} {base}-byte aligned{strides}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
