"""What make, ninja and CMake need to know of a build: which files were read for which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tilec.diagnostics.setup_error import SetupError

# Of these make has no spelling in the name of a file, or not every version of it: `;` and `=`,
# control characters, a backslash at the end of a name or beside what patterns of the shell hold.
_UNNAMEABLE = re.compile(r"[;=\x00-\x1f\x7f]|\\$|\\(?=.*[*?[])|[*?[](?=.*\\)")

# What outputs that builds ask for by another one come after.
_LAST = {suffix: place for place, suffix in enumerate((".fatbin", ".cubin", ".json"))}


def make_rules(outputs: Sequence[Path], read: Sequence[str]) -> bytes:
    """`build/add.sm_90a.cubin build/add.json: kernels/add.tile kernels/helper.tile`, for make.

    Ninja, and CMake with it, ask that the first target is the first one of their own rule (and that
    this has them all): that is what `--emit` adds, if anything, then a fat binary, then cubins.

    The first file read is the program's own. Each other one has a rule of its own that does
    nothing: where it was deleted or renamed, make builds again what was made of it, and finds out
    whether it is still asked for, instead of looking for a way to make it.

    Raises:   SetupError if make cannot name one of the files
    """
    ordered = sorted(outputs, key=lambda path: _LAST.get(path.suffix, -1))
    targets = " ".join(_word(str(path), "%") for path in ordered)
    sources = " ".join(_word(path, "|") for path in read)
    rules = [f"{targets}: {sources}", *(f"{_word(path, '%')}:" for path in read[1:])]
    return "".join(f"{rule}\n" for rule in rules).encode("utf-8", "surrogateescape")


def _word(path: str, special: str) -> str:
    """A name as make reads it: `special` means something else on this side of a rule."""
    if found := _UNNAMEABLE.search(path):
        raise SetupError(
            f"make cannot name `{path}`, which has {found[0]!r} in it",
            help="rename it, or build without `--emit dep`",
        )
    # Backslashes before what one escapes are escaped too; elsewhere they stand for themselves.
    escaped = re.sub(rf"(\\*)([ #:{special}])", r"\1\1\\\2", path)
    return escaped.replace("$", "$$")
