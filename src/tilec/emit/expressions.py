"""Expressions of a manifest in a language, on 128 bits.

Noted are divisions by zero, and what does not fit in 64 bits where it should.
Values are `v[i]`: those of a kernel's `Dim`s, then those of its parameters. What notes something
takes `e`. Operands are evaluated only where docs/abi.md says so. What languages write differently
is a `Language`; all else is here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilec.artifact.expression import WIDEST, Expression, is_conversion, must_fit, text_of
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import NumberKind as Kind
from tilec.artifact.signature import number_kind

COMPARING = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NOTING = frozenset({"abs", "add", "sub", "mul", "div", "rem", "ceildiv", "shl"})
_BITS = {"bitand": "&", "bitor": "|", "bitxor": "^"}
_JOINING = {"and": "&&", "or": "||"}


class Code(NamedTuple):
    """An expression in a language, which binds tighter than any operator."""

    text: str
    kind: Kind


@dataclass(frozen=True)
class Language:
    """How a language writes what is not the same in all; texts have `{}` for each operand."""

    truths: tuple[str, str]  # what is false, what is true
    truth_value: str  # whether a `whole` of the values is not 0
    whole: Callable[[int], str]
    real: str
    zeros: tuple[str, str]  # of whole and of real numbers
    select: str
    kept_real: str  # leaves a real number in `e`, and is 0
    converted: Callable[[Kind, Code], str]  # an operand where a number of that kind must stand
    as_bits: Callable[[Code], str]
    as_whole: Callable[[Code], str]  # on 128 bits; not 0 where it holds
    call: Callable[[str, Kind, Sequence[str]], str]  # an operation on numbers of a kind

    def truth(self, code: Code) -> str:
        if code.kind == "truth":
            return code.text
        return f"({code.text} != {self.zeros[code.kind == 'real']})"


class Expressions:
    """The expressions of one kernel, by number."""

    def __init__(self, kernel: Kernel, language: Language) -> None:
        self._language = language
        self._names = names_of(kernel, language)
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []

    def rows(self) -> Iterator[tuple[int, str, str]]:
        """The number of each, its code, and the expression in words."""
        for (code, number), text in zip(self._numbers.items(), self._texts, strict=True):
            yield number, code, text

    def number(self, expression: Expression, *, is_exact: bool = False) -> int:
        """`is_exact`: its numbers may be of any size."""
        code = code_of(expression, self._names, self._language, is_exact=is_exact)
        return self._numbered(self._language.as_whole(code), expression)

    def value(self, expression: Expression) -> int:
        """As `number`, but that a real number is kept in `real`."""
        code = code_of(expression, self._names, self._language)
        if code.kind != "real":
            return self.number(expression)
        return self._numbered(self._language.kept_real.format(code.text), expression)

    def kind(self, expression: Expression) -> Kind:
        return code_of(expression, self._names, self._language).kind

    def _numbered(self, code: str, expression: Expression) -> int:
        if code not in self._numbers:
            self._numbers[code] = len(self._texts)
            self._texts.append(text_of(expression))
        return self._numbers[code]


def names_of(kernel: Kernel, language: Language) -> dict[str, Code]:
    """The value that each name of a kernel's expressions stands for."""
    found = {dim: Code(f"v[{i}].whole", "whole") for i, dim in enumerate(kernel.dims)}
    for i, parameter in enumerate(kernel.parameters, len(kernel.dims)):
        if parameter.is_tensor:
            continue
        kind = number_kind(parameter.element)
        text = f"v[{i}].{'real' if kind == 'real' else 'whole'}"
        found[parameter.name] = Code(
            language.truth_value.format(text) if kind == "truth" else text, kind
        )
    return found


def code_of(
    expression: Expression,
    names: Mapping[str, Code],
    language: Language,
    *,
    is_exact: bool = False,
    is_converted: bool = False,
) -> Code:
    """An expression in a language.

    `is_exact`: its numbers may be of any size; `is_converted`: it is what a conversion is of
    """
    if isinstance(expression, str):
        return names[expression]
    if isinstance(expression, bool):
        return Code(language.truths[expression], "truth")
    if isinstance(expression, int):
        return Code(language.whole(expression), "whole")
    if isinstance(expression, float):
        return Code(language.real.format(repr(expression)), "real")
    name, *operands = expression
    assert isinstance(name, str), "a manifest's expressions are checked when it is read"
    below = is_conversion(name)
    codes = [
        code_of(one, names, language, is_exact=is_exact, is_converted=below) for one in operands
    ]
    if is_converted and not is_exact and name in WIDEST:
        texts = [language.converted("whole", one) for one in codes]
        return Code(language.call(f"low_{name}", "whole", texts), "whole")
    code = _operation(name, codes, language)
    if is_exact or code.kind != "whole" or not must_fit(name, is_converted=is_converted):
        return code
    return Code(language.call("in_64", "whole", [code.text, "e"]), "whole")


def _operation(name: str, operands: list[Code], language: Language) -> Code:
    if name in _JOINING:
        left, right = map(language.truth, operands)
        return Code(f"({left} {_JOINING[name]} {right})", "truth")
    if name == "not":
        return Code(f"(!{language.truth(operands[0])})", "truth")
    if name == "select":
        kind = _common(operands[1:])
        yes, no = (language.converted(kind, one) for one in operands[1:])
        return Code(language.select.format(language.truth(operands[0]), yes, no), kind)
    if name in _BITS:
        left, right = map(language.as_bits, operands)
        return Code(f"({left} {_BITS[name]} {right})", "whole")
    kind = _common(operands)
    if kind == "truth" and name not in COMPARING:
        kind = "whole"
    texts = [language.converted(kind, one) for one in operands]
    if name == "neg" and kind == "real":
        return Code(f"(-{texts[0]})", kind)
    if name == "neg":
        name, texts = "sub", ["0", *texts]
    if name in _NOTING and kind != "real":
        texts.append("e")
    return Code(language.call(name, kind, texts), "truth" if name in COMPARING else kind)


def _common(operands: Sequence[Code]) -> Kind:
    kinds = {one.kind for one in operands}
    if "real" in kinds:
        return "real"
    return "truth" if kinds == {"truth"} else "whole"
