"""The functions of an emitted header, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.emit.toolchain import LINKED, STRICT, c_compiler, compiled
from tilec.artifact.manifest import Manifest
from tilec.emit.emitter import Artifact, EmitOptions
from tilec.emit.header import emit_header
from tilec.emit.header.signature import signature_of
from tilec.emit.sets import LaunchSet, launch_sets
from tilec.runtime.array import Array

_DTYPES = (
    "bool", "i8", "u8", "f8e4m3", "f8e5m2", "i16", "u16", "f16", "bf16", "i32", "u32", "f32",
    "i64", "u64", "f64", "usize",
)  # fmt: skip
LAUNCH, CHECK, PLAN = range(3)


class CTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("extents", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("device", ctypes.c_int32),
    )


class CPlan(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char_p),
        ("variant", ctypes.c_char_p),
        ("target", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("device", ctypes.c_int32),
    )


def c_tensor(array: Array) -> CTensor:
    """A tensor as C has it; ranks above 8 keep their number, and no more."""
    return CTensor(
        array.pointer or None,
        (ctypes.c_int64 * 8)(*array.shape[:8]),
        (ctypes.c_int64 * 8)(*array.strides[:8]),
        len(array.shape),
        _DTYPES.index(array.element) + 1 if array.element in _DTYPES else 0,
        array.device,
    )


@dataclass(frozen=True)
class Outcome:
    """What a call gave; `message` is what `tilec_last_message()` says then: "" if it succeeded."""

    status: int
    message: str
    plan: CPlan


class Functions:
    """A header's functions, in a library of their own in `folder`."""

    def __init__(
        self, manifests: Sequence[Manifest], folder: Path, cubin: bytes, prefix: str = ""
    ) -> None:
        self.sets = {
            one.name: one for one in launch_sets(manifests[0]) if signature_of(one) is not None
        }
        artifacts = [Artifact(manifest, cubin) for manifest in manifests]
        [(name, text)] = emit_header(artifacts, "sample", EmitOptions(prefix)).items()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
        shim = _shim(name, self.sets.values(), prefix) + self.shim_of(manifests[0])
        (folder / "shim.c").write_text(shim)
        self.path = folder / "libshim.so"
        compiled(c_compiler(), "-std=c99", *STRICT, "-shared", "-fPIC", "-o", self.path,
                 folder / "shim.c", *LINKED)  # fmt: skip
        self.open(self.path)

    def shim_of(self, manifest: Manifest) -> str:
        """What is compiled beside the functions of kernels."""
        return ""

    def open(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.shim_message.restype = ctypes.c_char_p
        self.library.shim_set_driver.argtypes = [ctypes.c_void_p]

    def call(
        self, name: str, arguments: Sequence[object], what: int = LAUNCH, stream: int = 0
    ) -> Outcome:
        """Calls `NAME_launch`, `NAME_check` or `NAME_plan`; None is a null pointer."""
        tensors, wholes, reals, _kept = marshalled(arguments)
        plan = CPlan()
        status = getattr(self.library, f"shim_{name}")(
            what, ctypes.c_void_p(stream), tensors, wholes, reals, ctypes.byref(plan)
        )
        message = self.library.shim_message().decode()
        return Outcome(status, message, plan)


def marshalled(arguments: Sequence[object]) -> tuple[object, object, object, object]:
    """Arguments as arrays of pointers to tensors, of whole and of real numbers; and what must live
    as long as they do."""
    count = max(len(arguments), 1)
    tensors = (ctypes.POINTER(CTensor) * count)()
    wholes, reals = (ctypes.c_int64 * count)(), (ctypes.c_double * count)()
    kept = []
    for index, given in enumerate(arguments):
        if isinstance(given, Array):
            kept.append(c_tensor(given))
            tensors[index] = ctypes.pointer(kept[-1])
        elif given is not None:
            reals[index] = float(given)
            wholes[index] = int(given) if -(2**63) <= given < 2**64 else 0
    return tensors, wholes, reals, kept


def _shim(header: str, sets: Iterable[LaunchSet], prefix: str) -> str:
    lines = [
        f'#include "{header}"',
        "const char *shim_message(void);",
        "const char *shim_message(void) { return tilec_last_message(); }",
        "int shim_set_driver(void *handle);",
        "int shim_set_driver(void *handle) { return tilec_set_driver(handle); }",
        "int shim_load(int device);",
        f"int shim_load(int device) {{ return {prefix}sample_load(device); }}",
        "void shim_unload(void);",
        f"void shim_unload(void) {{ {prefix}sample_unload(); }}",
    ]
    parameters = (
        "int what, void *stream, const tilec_tensor **t, int64_t *w, double *r, tilec_plan *plan"
    )
    for one in sets:
        passed = []
        for i, argument in enumerate(signature_of(one) or []):
            if argument.parameter.is_tensor:
                passed.append(f"t[{i}]")
            else:
                source = "r" if argument.c_type in ("float", "double") else "w"
                passed.append(f"({argument.c_type}){source}[{i}]")
        name, given = f"{prefix}{one.name}", ", ".join(passed)
        lines += [
            f"int shim_{one.name}({parameters});",
            f"int shim_{one.name}({parameters})",
            "{",
            "    (void)t, (void)w, (void)r;",
            "    switch (what) {",
            f"    case 0: return {name}_launch({', '.join(['(tilec_stream)stream', *passed])});",
            f"    case 1: return {name}_check({given});",
            f"    default: return {name}_plan({', '.join([*passed, 'plan'])});",
            "    }",
            "}",
        ]
    return "\n".join(lines) + "\n"
