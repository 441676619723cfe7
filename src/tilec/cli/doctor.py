"""`tilec doctor`: what is installed, and what it can do."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

import click

from tilec import __version__
from tilec.buildsystem.cache import cache_folder, open_cache, shared_folder
from tilec.cli.entry import DONE, USAGE
from tilec.cli.output import say
from tilec.diagnostics.setup_error import SetupError
from tilec.target import resolve, toolchain

# (module that must import, distribution that has it), for the compiler and for the runtime.
COMPILER = (
    ("mlir.ir", "xtc-mlir-python-bindings"),
    ("lark", "lark"),
    ("islpy", "islpy"),
    ("ml_dtypes", "ml_dtypes"),
    ("rich", "rich"),
)
RUNTIME = (("numpy", "numpy"), ("cuda.bindings", "cuda-python"), ("cuda.core", "cuda-core"))


@click.command()
def command() -> int:
    """Say what is installed and what it can do.

    Without a GPU everything but launching works, so that none is no error, nor is a machine that
    only launches, without the compiler. A missing package of what is installed is: then the exit
    status is 2, and the last lines say what to install.
    """
    missing: list[str] = []
    say(f"tilec {__version__}, Python {platform.python_version()}, {platform.platform()}")
    if _has_compiler():
        _section("compiler", missing, [_package(*names) for names in COMPILER])
        _section("tools", missing, list(_tools()))
    else:
        say("\ncompiler: not installed, and only building needs it: pip install 'tilec[compiler]'")
    _section("runtime", missing, [*(_package(*names) for names in RUNTIME), _launches()])
    say("\ntargets")
    say(f"  with tables: {', '.join(resolve.TARGETS)}")
    say(f"  by the facts of the nearest: {_other_targets()}")
    say("\nmachine")
    say(f"  GPU: {_gpus()}")
    say(f"  cache: {_cache()}")
    if not missing:
        return DONE
    say(f"\nmissing: {', '.join(missing)}\ninstall it: pip install {' '.join(missing)}")
    return USAGE


def _has_compiler() -> bool:
    """Whether there is what nothing else brings along, as PyTorch does with the tools of CUDA."""
    try:
        return find_spec("mlir") is not None
    except ImportError:
        return False


Finding = tuple[str, str, bool]  # what, its version and place or what is wrong, whether it is there


def _section(title: str, missing: list[str], findings: list[Finding]) -> None:
    say(f"\n{title}")
    for name, found, is_there in findings:
        say(f"  {name}: {found}")
        if not is_there:
            missing.append(name)


def _package(module: str, distribution: str) -> Finding:
    try:
        import_module(module)
    except ImportError as error:
        return distribution, f"missing ({error})", False
    try:
        return distribution, metadata.version(distribution), True
    except metadata.PackageNotFoundError:
        return distribution, f"`{module}` is there, from another package", True


def _launches() -> Finding:
    """Which way launches go. Either will do, so that nothing is missing."""
    try:
        from tilec.runtime import native
    except ImportError:
        return "launches", "none without these packages", True
    reason = native.why_not()
    if reason is None:
        return "launches", "by C", True
    return "launches", f"by Python alone, which takes longer: {reason}", True


def _tools() -> Iterator[Finding]:
    tools: tuple[tuple[str, Callable[[], Path]], ...] = (
        ("nvidia-cuda-nvcc", toolchain.ptxas),
        ("nvidia-cuda-nvdisasm", toolchain.nvdisasm),
        ("nvidia-nvvm", toolchain.libdevice),
    )
    for wheel, find in tools:
        try:
            path = find()
            version = f" {toolchain.ptxas_version()}" if find is toolchain.ptxas else ""
        except SetupError as error:
            yield wheel, f"missing ({error.message})", False
            continue
        yield wheel, f"{path.name}{version}, {path}", True


def _other_targets() -> str:
    try:
        return ", ".join(resolve.other_targets(toolchain.ptxas_targets())) or "none"
    except SetupError as error:
        return error.message


def _gpus() -> str:
    """The devices by name and capability, or why there are none."""
    try:
        from cuda.core import Device, system

        driver = system.get_user_mode_driver_version()
        devices = [Device(i) for i in range(system.get_num_devices())]
        names = [f"{d.name} (sm_{d.arch})" for d in devices]
    except Exception as error:
        return f"none that can be used ({str(error).splitlines()[0]})"
    return f"{', '.join(names) or 'none'}; driver {driver}"


def _cache() -> str:
    if (shared := shared_folder()) is not None:
        return f"{shared}, shared: whoever can write there decides what builds deliver"
    folder = cache_folder()
    if folder is None:
        return "none, for there is no home folder: nothing is reused (TILEC_CACHE=DIR names one)"
    nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not os.access(nearest, os.W_OK):
        return f"{folder} (cannot be written: nothing is reused)"
    return str(folder) if nearest != folder else open_cache().note or str(folder)
