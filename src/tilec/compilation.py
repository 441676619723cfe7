"""What one compile is asked for and what it gives: plain data, which loads no stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.artifact.manifest import Access
from tilec.artifact.signature import Coverage
from tilec.diagnostics.diagnostic import Diagnostic, Severity
from tilec.stages import Spent

DEFAULT_TARGETS = ("sm_90a",)

# What can be written beside the cubin and the manifest, by the word that asks for it.
INTERMEDIATE = {"tile": ".tile.mlir", "mlir": ".mlir", "llvm": ".ll", "ptx": ".ptx"}
LAUNCHERS = ("header", "rust", "python")  # in the languages of programs that launch
EMITTABLE = (*INTERMEDIATE, *LAUNCHERS, "dep")

# Steps that proofs of one instance may take: five seconds at most (`tilec.integers.budget`).
DEFAULT_PROOF_BUDGET = 7_000_000

IN_KERNEL_CHECKS = "in-kernel-checks"
DENIABLE = (IN_KERNEL_CHECKS,)


@dataclass(frozen=True)
class Options:
    """Everything beside the sources that decides what comes out."""

    targets: tuple[str, ...] = DEFAULT_TARGETS
    defines: tuple[str, ...] = ()  # `-D`, as written: "NAME=VALUE"
    instances: tuple[str, ...] = ()  # `--instance`, as written: "matmul<T=f16,BM=64>"
    emit: tuple[str, ...] = ()
    prefix: str = ""  # before every public name of launchers
    checked: bool = False  # trap on what is defined, but hardly meant (docs/language.md)
    fatbin: bool = False  # whether to join the cubins of all targets in one file
    report: bool = False  # whether to say what was proved
    deny: tuple[str, ...] = ()  # what of `DENIABLE` is an error
    proof_budget: int = DEFAULT_PROOF_BUDGET  # steps that proofs of one instance may take


@dataclass(frozen=True)
class KernelReport:
    """What was proved of one instance of a kernel.

    `shortfalls` say of tensors that are not known to be written in full why not.
    """

    symbol: str
    accesses: tuple[Access, ...]
    coverage: tuple[Coverage, ...]
    shortfalls: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Compiled:
    """What came of one file: its outputs, or errors among the diagnostics and no outputs.

    Guarantees: `used` names every source file that was read, the file itself first. `texts` are
                what diagnostics point into beside source files: options, by the name they have
                there. `unmatched` are the options that no kernel of the file takes. `reports` are
                there where they were asked for. `timings` say what each stage took, where
                something was compiled (`tilec.stages`)
    """

    outputs: Mapping[str, bytes] = field(default_factory=dict)  # by file name
    diagnostics: tuple[Diagnostic, ...] = ()
    used: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    reports: tuple[KernelReport, ...] = ()
    timings: Mapping[str, Spent] = field(default_factory=dict, compare=False)

    @property
    def is_refused(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.diagnostics)


@dataclass(frozen=True)
class Executed:
    """What came of running a kernel on the CPU.

    `symbol` is the instance that ran, if one did. `written` are `.npy` files by the tensor's name,
    `shown` what changed, for reading. `broken`
    says what of the launch's contract does not hold, `findings` what a sanitized launch did wrong;
    nothing is written then.
    """

    compiled: Compiled
    written: Mapping[str, bytes] = field(default_factory=dict)
    shown: str = ""
    broken: str | None = None
    findings: tuple[Diagnostic, ...] = ()
    symbol: str = ""
