"""A source file with every file that it may `use`, read once: a key and a compile see the same.

Which files those are is found without parsing: any identifier of a file that has the word `use`
and is the name of a `.tile` file in a searched folder. That may be too many, never too few.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilec.diagnostics.diagnostic import Diagnostic, Label
from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import TEXT_LIMIT, read_regular
from tilec.source import SourceFile, Span

_USE = re.compile(r"\buse\b")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Sources:
    """The file to compile and what it may use.

    `digests` are SHA-256 of the bytes on disk. `problems` are the files that are no text; nothing
    can be compiled when there are any. `tuning` is the text of the tuning file that a build reads,
    `used_tuning` that of each other file that has one.
    """

    root: SourceFile
    files: Mapping[str, SourceFile]  # by the file's name, the root among them
    digests: Mapping[str, str]
    modules: Mapping[tuple[str, str], str]  # (importing file, module) -> the module's file
    problems: tuple[Diagnostic, ...] = ()
    tuning: str | None = None
    used_tuning: Mapping[str, str] = field(default_factory=dict)  # by the source file's name

    def module(self, name: str, importer: SourceFile) -> SourceFile | None:
        """The file that `use name::…;` in `importer` reads, or None if there is none."""
        found = self.modules.get((importer.name, name))
        return self.files[found] if found else None


@dataclass(frozen=True)
class _Read:
    source: SourceFile
    digest: str
    problems: tuple[Diagnostic, ...] = ()


def read_sources(path: str, include: Sequence[str] = ()) -> Sources:
    """The file and all that it may use: from its own folder, then from each of `include`.

    Raises:   SetupError if a file cannot be read
    """
    root = _read(path)
    read = {path: root}
    modules: dict[tuple[str, str], str] = {}
    unvisited = [root.source]
    while unvisited:
        importer = unvisited.pop()
        for module, name in _candidates(importer, include).items():
            if name not in read:
                try:
                    read[name] = _read(name)
                except SetupError:
                    if _says_use(importer, module):
                        raise
                    continue  # a word that happens to be the name of what cannot be read
                unvisited.append(read[name].source)
            modules[importer.name, module] = name
    return Sources(
        root.source,
        {name: file.source for name, file in read.items()},
        {name: file.digest for name, file in read.items()},
        modules,
        tuple(problem for file in read.values() for problem in file.problems),
    )


def _read(path: str) -> _Read:
    """The text of a file, without byte order mark and with `\\n` for line ends."""
    if not _is_text(path):
        raise SetupError(f"cannot read `{path}`: its name is not UTF-8", help="rename it")
    try:
        data = read_regular(path, TEXT_LIMIT)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{path}`: {reason}") from error
    digest = hashlib.sha256(data).hexdigest()
    try:
        source = SourceFile(path, _lines(data.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        # The place is counted in the bytes after the mark, if there is one.
        position = error.start + (len(data) - len(error.object))
        before = _lines(data[:position].decode("utf-8-sig"))
        label = Label(Span(path, len(before), len(before) + 1), f"byte {data[position]:#04x}")
        source = SourceFile(path, _lines(data.decode("utf-8-sig", "replace")))
        return _Read(source, digest, (Diagnostic("E0101", "the file is not UTF-8", (label,)),))
    null = source.text.find("\0")
    if null < 0:
        return _Read(source, digest)
    label = Label(Span(path, null, null + 1), "NUL character")
    return _Read(source, digest, (Diagnostic("E0101", "the file is not text", (label,)),))


def _is_text(path: str) -> bool:
    """Whether a file's name can stand in messages and outputs: Python keeps other bytes as such."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _candidates(importer: SourceFile, include: Sequence[str]) -> dict[str, str]:
    """The modules that a file may mean, each with its file: the first folder that has it wins."""
    if not _USE.search(importer.text):
        return {}
    words = set(_IDENTIFIER.findall(importer.text))
    found: dict[str, str] = {}
    # `os.path` and not `Path`, which would make "./a.tile" another name than users gave.
    for folder in (os.path.dirname(importer.name), *include):  # noqa: PTH120
        for module in sorted(words & _modules_in(folder)):
            found.setdefault(module, os.path.join(folder, f"{module}.tile"))  # noqa: PTH118
    return found


def _says_use(importer: SourceFile, module: str) -> bool:
    return re.search(rf"\buse\s+{module}\b", importer.text) is not None


def _modules_in(folder: str) -> set[str]:
    try:
        with os.scandir(folder or ".") as entries:
            named = [entry for entry in entries if entry.name.endswith(".tile")]
            return {entry.name.removesuffix(".tile") for entry in named if _is_there(entry)}
    except OSError:  # an `-I` folder that is not there has no modules
        return set()


def _is_there(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is meant as a file: what is none, as a pipe, is refused when it is read.

    A link that leads nowhere, or to itself, hides nothing that lies beside it.
    """
    try:
        return not entry.is_dir() and (entry.is_file() or not entry.is_symlink())
    except OSError:
        return False
