"""Several PTX modules of one target as one: as LLVM would have written it, but for labels' numbers.

What stands at the top level has a name each: entries, functions, variables. What has the same name
and text in two modules (the functions of libdevice, shared memory) stands once; where only the name
is the same (texts of `assert!`), the later one gets another. Files are numbered anew.

Source:   PTX ISA, "Source Format", "Identifiers", "Directives" (.file, .loc, .section)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_NAMED = re.compile(
    r"^\.(?:visible |extern |weak |common )*\.?(?:entry|func|global|shared|const)\b", re.M
)
_FUNCTION = re.compile(r"\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)")
_VARIABLE = re.compile(r"\.(?:global|shared|const)\b[^;={\[]*?([\w$]+)\s*(?:\[[^\]]*\]\s*)*[;=]")
_FILE = re.compile(r'^\s*\.file\s+(\d+) (".*")$')
_FILE_NAME = re.compile(r'^(\t\.file\t\d+ ")(.*)"$', re.MULTILINE)
_PLACE = re.compile(r"^(\s*\.loc\s+)(\d+)\b", re.M)
_SECTION = "\t.section"
_HEADER_END = ".address_size"


def join_ptx(modules: Sequence[str]) -> str:
    """One module of all; each is as LLVM writes it.

    Assumes:  entries have names of their own; all have one header
    """
    modules = [_with_names_of_files(module) for module in modules]
    if len(modules) == 1:
        return modules[0]
    joined = _Joined()
    for number, module in enumerate(modules):
        joined.add(module, number)
    return joined.text()


class _Joined:
    def __init__(self) -> None:
        self.header: list[str] = []
        self.items: list[str] = []
        self.named: dict[str, set[str]] = {}  # the texts that a name has stood for
        self.files: dict[str, int] = {}
        self.sections: dict[str, None] = {}

    def add(self, module: str, number: int) -> None:
        lines = module.split("\n")
        [end] = [place for place, line in enumerate(lines) if line.startswith(_HEADER_END)]
        header, rest = lines[: end + 1], lines[end + 1 :]
        assert self.header in ([], header), "modules of one target"
        self.header = header
        tail = next((i for i, line in enumerate(rest) if _is_of_tail(line)), len(rest))
        text = self._with_files("\n".join(rest[:tail]), rest[tail:])
        items = list(_items(text))
        for name in self._taken(items):
            text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{name}_{number}", text)
        for item in _items(text):
            named = _name_of(item)
            if named is not None:
                known, plain = self.named.setdefault(named, set()), _plain(item)
                if plain in known:
                    continue
                known.add(plain)
            self.items.append(item)

    def text(self) -> str:
        files = [f"\t.file\t{number} {name}" for name, number in self.files.items()]
        return "\n".join([*self.header, *self.items, *self.sections, *files, ""])

    def _taken(self, items: Sequence[str]) -> Iterator[str]:
        """Names that stand for something else already.

        A declaration and a definition are two texts of one name, so all of a name are compared.
        """
        mine: dict[str, set[str]] = {}
        for item in items:
            name = _name_of(item)
            if name is not None:
                mine.setdefault(name, set()).add(_plain(item))
        for name, texts in mine.items():
            if name in self.named and self.named[name] != texts:
                yield name

    def _with_files(self, text: str, tail: Sequence[str]) -> str:
        """A module's text with the numbers that files have here; takes its sections too."""
        numbers: dict[str, str] = {}
        for line in tail:
            if found := _FILE.match(line):
                known = self.files.setdefault(found[2], len(self.files) + 1)
                numbers[found[1]] = str(known)
            elif line.strip():
                self.sections[line] = None
        if all(old == new for old, new in numbers.items()):
            return text
        return _PLACE.sub(lambda found: found[1] + numbers[found[2]], text)


def _with_names_of_files(module: str) -> str:
    """A module whose names of files are text that ptxas reads.

    PTX has no way to say `"` in a text, and LLVM does not ask.
    """
    return _FILE_NAME.sub(lambda line: line[1] + line[2].replace('"', "'") + '"', module)


def _is_of_tail(line: str) -> bool:
    return line.startswith(_SECTION) or _FILE.match(line) is not None


def _items(text: str) -> Iterator[str]:
    """What stands at the top level, each with the comments and blank lines before it."""
    item: list[str] = []
    depth = 0
    for line in text.split("\n"):
        item.append(line)
        is_directive = line.strip() and not line.lstrip().startswith("//")
        if not is_directive:
            continue
        depth += line.count("{") - line.count("}")
        if depth == 0 and (line.endswith(";") or line.rstrip() == "}"):
            yield "\n".join(item)
            item = []
    if any(line.strip() for line in item):
        yield "\n".join(item)


def _plain(item: str) -> str:
    """Without comments, which say what follows."""
    return "\n".join(line for line in item.split("\n") if not line.lstrip().startswith("//"))


def _name_of(item: str) -> str | None:
    for pattern in (_FUNCTION, _VARIABLE):
        if _NAMED.search(item) and (found := pattern.search(item)):
            return found[1]
    return None
