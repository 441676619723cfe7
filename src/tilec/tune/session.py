"""A run over families and shapes, from a cubin to a tuning file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tilec.runtime as rt
from tilec.artifact.code import codes_of
from tilec.artifact.embed import CubinError, extract
from tilec.artifact.family import Family
from tilec.artifact.manifest import Manifest, ManifestError, from_json
from tilec.artifact.tuning_file import (
    SUFFIX,
    MemberCode,
    Run,
    Trial,
    TunedFamily,
    TuningFile,
    TuningFileError,
    from_text,
    merged,
    to_text,
)
from tilec.bench.gpu import Gpu
from tilec.bench.sampling import Settings
from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import BINARY_LIMIT, read_regular, read_regular_text
from tilec.tune.arguments import Values
from tilec.tune.shapes import extents_of
from tilec.tune.trial import DisagreementError, NoMemberError, Outcome, tried
from tilec.whole_files import write_whole


@dataclass(frozen=True)
class Request:
    """What to measure, and where the results go."""

    cubin: Path
    kernel: str | None
    shapes: Sequence[str]
    values: Values
    output: Path
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Listener:
    """Who is told what happens: of each shape before it is measured, and what came of it."""

    begin: Callable[[int, int, Family, tuple[int, ...]], None]
    outcome: Callable[[Family, Outcome], None]
    failure: Callable[[str], None]


def cubin_of(path: Path) -> tuple[Path, Manifest]:
    """The cubin that a cubin's or manifest's path names, and its manifest.

    Raises:   SetupError
    """
    try:
        content = read_regular(path, BINARY_LIMIT)
        if not content.startswith(b"\x7fELF"):
            if not content.lstrip().startswith((b"{", b"[")):
                raise SetupError(
                    f"`{path}` is neither a cubin nor a manifest",
                    help="`tilec build` makes both of a `.tile` file",
                )
            told = from_json(content)
            path = path.parent / f"{Path(told.source.file).stem}.{told.target}.cubin"
            content = read_regular(path, BINARY_LIMIT)
        embedded = extract(content)
        if embedded is None:
            raise SetupError(f"`{path}` was not built by tilec")
        return path, from_json(embedded)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{error.filename or path}`: {reason}") from error
    except (CubinError, ManifestError) as error:
        raise SetupError(f"`{path}`: {error}") from error


def families_named(manifest: Manifest, name: str | None) -> list[Family]:
    """The families of a kernel, or of this name; without a name, all.

    Raises:   SetupError if there are none
    """
    found = [one for one in manifest.families if name in (None, one.name, one.kernel)]
    if found:
        return found
    kernels = {kernel.name for kernel in manifest.kernels}
    if name is None or name in kernels:
        what = "any kernel" if name is None else f"`{name}`"
        raise SetupError(
            f"there is nothing to choose: no two instances of {what} have the same types",
            help="add some: `#[instance(…)]`, or `tilec build --instance`",
        )
    known = sorted({*kernels, *(family.name for family in manifest.families)})
    raise SetupError(f"there is no kernel `{name}`; there is {', '.join(known)}")


def output_of(given: Path | None, cubin: Path, manifest: Manifest) -> Path:
    """Where the tuning file goes: a file, or into a folder; by default beside the cubin."""
    name = f"{Path(manifest.source.file).stem}{SUFFIX}"
    if given is None:
        return cubin.parent / name
    return given / name if given.is_dir() else given


def run(request: Request, gpu: Gpu, card: str, module: rt.Module, tell: Listener) -> bool:
    """Measures every family at every shape, and writes what was measured after each.

    Returns whether all went well. What the file had of other shapes and cards stays.

    Raises:   SetupError for shapes that do not fit, before anything is measured
    """
    manifest = module.manifest
    codes = codes_of(manifest, module.cubin)
    families = families_named(manifest, request.kernel)
    before = _before(request.output)
    work = [
        (family, extents_of(shape, family.dims)) for family in families for shape in request.shapes
    ]
    environment = gpu.environment()
    trials: dict[str, list[Trial]] = {family.name: [] for family in families}
    is_well = True
    for number, (family, extents) in enumerate(work, 1):
        tell.begin(number, len(work), family, extents)
        try:
            found = tried(gpu, module, family, extents, request.values, request.settings)
        except SetupError:
            raise
        except Exception as error:
            gpu.synchronise()  # raises if the GPU takes no more work
            is_well = False
            where = "x".join(map(str, extents))
            tell.failure(f"{family.name} at {where}: {_in_a_line(error)}: nothing is recorded")
            continue
        trials[family.name].append(found.trial)
        tell.outcome(family, found)
        measured = tuple(
            TunedFamily(one.name, one.dims, tuple(trials[one.name]))
            for one in families
            if trials[one.name]
        )
        this = Run(
            card=card,
            target=manifest.target,
            compiler=manifest.toolchain.compiler,
            driver=str(environment.get("driver", "")),
            date=str(environment.get("date", "")),
            codes=tuple(
                MemberCode(member, codes[member]) for one in families for member in one.members
            ),
            families=measured,
        )
        _write(request.output, merged(before, this))
    return is_well


def _in_a_line(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    expected = isinstance(error, (DisagreementError, NoMemberError))
    return text if expected else f"{type(error).__name__}: {text}"


def _before(path: Path) -> TuningFile:
    """What a tuning file holds, if it is there.

    Raises:   SetupError if it is no tuning file: it is not overwritten then
    """
    try:
        return from_text(read_regular_text(path))
    except FileNotFoundError:
        return TuningFile()
    except (OSError, UnicodeDecodeError, TuningFileError) as error:
        raise SetupError(f"cannot add to `{path}`: {error}") from error


def _write(path: Path, file: TuningFile) -> None:
    try:
        write_whole(path, to_text(file).encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot write `{error.filename or path}`: {reason}") from error
