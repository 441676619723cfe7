"""What a name of another system is written as here: an expression made of its operands, or a note.

The tables stand in `functions_elsewhere.py` and `names_elsewhere.py`; the text of the help is put
together here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ATOM = re.compile(r"[\w.:]+")
_INTEGER = re.compile(r"-?\d[\d_]*")
_PLACE = re.compile(r"\{(\w+)\}")
# What only floats have: a literal with a point, a function of floats.
_OF_FLOATS = re.compile(
    r"\d\.\d|\.(exp|exp2|exp_m1|ln|ln_1p|log2|log10|sqrt|rsqrt|sin|cos|tan|tanh|erf|sigmoid|floor"
    r"|ceil|round|trunc|recip|mul_add|is_nan|is_inf|pow\{)"
)
_LONGEST = 32
# Each opens what the other closes; `::<` opens what `>` closes.
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Way:
    """How something is written here.

    `code` replaces the whole use. In it `{0}`, `{1}` stand for the operands, the receiver first;
    `{last}` for the last of them as a generic argument, `{axis}` for the axis that is given,
    `{power}` for `i` or `f` by the second operand, `{shape}` and `{count}` for the type of the
    first operand as `f32, 16, 64` and its extent along the axis as a float.
    `example` are operands that the code fits, for the tests.
    """

    code: str | None
    note: str | None = None
    example: tuple[str, ...] = ("t", "u", "v")


def ways(names: str, code: str, example: tuple[str, ...] = ("t", "u", "v")) -> dict[str, Way]:
    """The same code for several names, which spaces part."""
    return dict.fromkeys(names.split(), Way(code, example=example))


def notes(names: str, *note: str) -> dict[str, Way]:
    """The same note for several names, which spaces part."""
    return dict.fromkeys(names.split(), Way(None, "".join(note)))


@dataclass(frozen=True)
class Use:
    """A use of a foreign name: its operands as they are written, and what is known of the first."""

    operands: tuple[str, ...]
    axis: str | None = None
    shape: tuple[object, ...] | None = None  # element, extents
    is_integer: bool = False

    @property
    def _axis(self) -> str:
        if self.axis is not None:
            return self.axis
        given = self.operands[-1] if len(self.operands) > 1 else ""
        if not _INTEGER.fullmatch(given):
            return "{-1}"
        return f"{{{given}}}" if given.startswith("-") else given

    def text(self, way: Way) -> str:
        """The help that says it."""
        if way.code is None:
            assert way.note is not None, "a way says something"
            return way.note
        written = f"write `{self.written(way.code)}`"
        return f"{written}: {way.note}" if way.note else written

    def written(self, code: str) -> str:
        """A code with its operands."""
        return _PLACE.sub(lambda found: self._place(code, found), code)

    def _place(self, code: str, found: re.Match[str]) -> str:
        match found[1]:
            case "axis":
                return self._axis
            case "last":
                return _braced(self.operands[-1]) if self.operands else "…"
            case "power":
                is_whole = self.is_integer or _INTEGER.fullmatch("".join(self.operands[1:2]))
                return "i" if is_whole else "f"
            case "shape":
                return ", ".join(map(str, self.shape)) if self.shape else "…"
            case "count":
                return self._count()
            case number:
                return self._operand(int(number), code, found)

    def _count(self) -> str:
        axis = int(self._axis.strip("{}")) if _INTEGER.fullmatch(self._axis.strip("{}")) else -1
        extents = (self.shape or ())[1:]
        return f"{extents[axis]}.0" if -len(extents) <= axis < len(extents) else "…"

    def _operand(self, number: int, code: str, found: re.Match[str]) -> str:
        if number >= len(self.operands):
            return "…"
        text = self.operands[number]
        alone = code[: found.start()].endswith(("(", ", ", "= ")) or not found.start()
        alone = alone and code[found.end() :].startswith((")", ",", ";"))
        if len(text) > _LONGEST or "\n" in text:
            return "…"
        if number == 0 and self.is_integer and _OF_FLOATS.search(code):
            return f"{text if is_atom(text) else f'({text})'}.to::<f32>()"
        return text if alone or is_atom(text) else f"({text})"


def _braced(text: str) -> str:
    return text if _ATOM.fullmatch(text) else f"{{{text}}}"


def is_atom(text: str) -> bool:
    """Whether a method may be called on an expression without parentheses around it."""
    open_brackets: list[str] = []
    position = 0
    while position < len(text):
        if text.startswith("::<", position):
            open_brackets.append(">")
            position += 3
            continue
        one = text[position]
        if one in _BRACKETS:
            open_brackets.append(_BRACKETS[one])
        elif open_brackets and one == open_brackets[-1]:
            open_brackets.pop()
        elif not open_brackets and not _ATOM.fullmatch(one):
            return False
        position += 1
    return True


def of_signature(signature: str, operands: Sequence[str]) -> str:
    """A code for an operation of the language by its signature: `a.max(b)`, `t.sum::<AXIS>()`."""
    _, dot, rest = signature.partition(".")
    code = f"{{0}}.{rest}" if dot else signature
    code = code.replace("::<AXIS>", "::<{axis}>")
    taken = re.fullmatch(r"(.*)\(([a-z, ]+)\)", code)
    if taken is None:
        return code
    first = 1 if dot else 0
    names = taken[2].split(", ")
    places = [
        f"{{{first + i}}}" if first + i < len(operands) else name for i, name in enumerate(names)
    ]
    return f"{taken[1]}({', '.join(places)})"
