"""What an emitter gets and gives: the cubins of one program in, the files of a language out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tilec.artifact.architecture import preference
from tilec.artifact.manifest import Manifest


@dataclass(frozen=True)
class Artifact:
    """A cubin, and the manifest that is embedded in it."""

    manifest: Manifest
    cubin: bytes

    @property
    def preference(self) -> tuple[int, int, int]:
        """Sorts the cubins of several targets: the first that runs on a device is for it."""
        return preference(self.manifest.target)


@dataclass(frozen=True)
class EmitOptions:
    """`prefix` stands before every public name of the files."""

    prefix: str = ""


# The cubins of one program, one for each target; the stem of the files' names; how. Gives the
# content of each file by its name.
Emitter: TypeAlias = Callable[[Sequence[Artifact], str, EmitOptions], Mapping[str, bytes]]
