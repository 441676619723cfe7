"""Tokens that start something of Python or C that no rule of the grammar takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilec.frontend.foreign import Foreign
from tilec.source import Span

if TYPE_CHECKING:
    from tilec.frontend.syntax_errors import Situation

_TYPES = frozenset(
    ("int", "float", "double", "half", "bool", "char", "unsigned", "long", "size_t", "uint32_t")
) | {"int32_t", "int64_t", "uint64_t", "auto", "var", "val", "f32", "f64", "i32", "u32", "usize"}
_QUALIFIERS = {
    "__global__": "a kernel is `#[kernel] pub fn name(…)`",
    "__device__": "a function that kernels call is `fn name(…) -> …`",
    "__host__": "a function that kernels call is `fn name(…) -> …`",
    "__shared__": "a tile is a value, `let s = t;`, and the compiler says where it lies",
    "__constant__": "a constant is `const NAME: f32 = 1.0;`",
    "__restrict__": "references say who writes: `&Tensor<…>`, `&mut Tensor<…>`",
    "template": "generics stand behind the function's name: `fn f<T: Float>(…)`",
}
_WORDS = {
    "def": Foreign("functions with `def`", "write `fn name(…) -> … { … }`"),
    "import": Foreign("imports", "a use takes names from a file: `use other::name;`"),
    "from": Foreign("imports", "a use takes names from a file: `use other::name;`"),
    "lambda": Foreign("lambdas", "a combiner is `|a, b| a + b`; anything else is a function"),
    "elif": Foreign("branches with `elif`", "write `else if`"),
    "not": Foreign("negations with `not`", "write `!`"),
}
_NAMED = Foreign(
    "named arguments", "an axis is a generic, `t.max::<1>()`; all others stand in their order"
)
_SEVERAL = Foreign(
    "several indices in brackets",
    "one element of a tile is `t.at([i, j])`; of a tensor a tile is read, "
    "`x.load::<16, 64>([i, j])`",
)
_SLICES = Foreign(
    "slices",
    "an axis is added by `t.expand::<0>()`; a smaller tile is loaded, `x.load::<16, 64>([i, j])`",
)
_STEPS = Foreign("`++` and `--`", "write `i += 1`")


def other_syntax(at: Situation) -> Foreign | None:
    """The construct of Python or C that the unexpected token belongs to."""
    words = [str(token) for token in at.previous]
    found = (rule(at, str(at.token), words) for rule in _RULES)
    return next((one for one in found if one is not None), None)


def _is_operand_over(at: Situation) -> bool:
    """Whether what stands before the token may be a whole operand."""
    return "PLUS" in at.expected


def _in_brackets(at: Situation, text: str, words: list[str]) -> Foreign | None:
    bracket = str(at.open_bracket) if at.open_bracket is not None else ""
    if text == "=" and bracket == "(" and len(words) > 1 and words[-2] in ("(", ","):
        return _NAMED
    if text == "=" and bracket == "(" and "PLUS" not in at.expected and ":" in words:
        return Foreign("defaults of parameters", "give the value where it is called")
    if bracket != "[":
        return None
    if text == "," and "RSQB" in at.expected and "COMMA" not in at.expected:
        return _SEVERAL
    starts_expression = "IF" in at.expected
    return _SLICES if text == ":" and (_is_operand_over(at) or starts_expression) else None


def _where(at: Situation, text: str, words: list[str]) -> Foreign | None:
    if text != "where" or not ("IF" in at.expected or words[-1:] == ["."]):
        return None
    return Foreign("calls of `where`", "write `select(condition, a, b)`")


def _word(at: Situation, text: str, words: list[str]) -> Foreign | None:
    """A word of Python where an operator, an item or a statement was to be."""
    if text in ("and", "or") and _is_operand_over(at):
        help = "conditions are joined by `&&` and `||`, masks by `&` and `|`"
        return Foreign("`and` and `or`", help)
    if text == "if" and _is_operand_over(at):
        return Foreign("choices with the value first", "write `if n > 0 { a } else { b }`")
    if text in ("def", "import", "from") and "FN" in at.expected:
        return _WORDS[text]
    if words and at.previous[-1].type == "NAME" and _is_operand_over(at):
        return _qualified(words[-1], _place_before(at)) or _WORDS.get(words[-1])
    return None


def _qualified(word: str, place: Span | None) -> Foreign | None:
    if word not in _QUALIFIERS:
        return None
    return Foreign(f"qualifiers like `{word}`", _QUALIFIERS[word], place)


def _declaration(at: Situation, text: str, words: list[str]) -> Foreign | None:
    if not words or words[-1] not in _TYPES or at.token.type != "NAME":
        return _qualified(text, None) if "FN" in at.expected else None
    if words[-2:-1] == ["("]:
        return Foreign("loops in three parts", "write `for i in 0..n { … }`", _place_before(at))
    what = "declarations with the type first"
    return Foreign(what, f"write `let mut {text} = …;`", _place_before(at))


def _cast(at: Situation, text: str, words: list[str]) -> Foreign | None:
    if len(words) < 3 or (words[-3], words[-1]) != ("(", ")") or words[-2] not in _TYPES:
        return None
    if at.token.type not in ("NAME", "INTEGER", "FLOAT"):
        return None
    return Foreign("casts before the value", f"write `{text} as f32`, or `t.to::<f32>()`")


def _operator(at: Situation, text: str, words: list[str]) -> Foreign | None:
    if (text in "+-" and words[-1:] == [text]) or (text == ";" and words[-2:] == ["-", "-"]):
        return _STEPS
    if text == "@" and _is_operand_over(at):
        return Foreign("products with `@`", "write `a.dot(b)`")
    if text == "@" and "FN" in at.expected:
        return Foreign("decorators", "a kernel is marked by `#[kernel]`")
    if text == ">" and words[-1:] == ["-"]:
        return Foreign("members behind pointers", "methods follow a dot: `t.exp()`")
    if words[-1:] == ["#"] and text in ("include", "define", "pragma", "ifdef", "if", "endif"):
        constant, use = "a constant is `const NAME: f32 = 1.0;`", "items: `use other::name;`"
        help = constant if text == "define" else f"a use names {use}"
        return Foreign("directives of a preprocessor", help)
    if text == "." and "FLOAT" in at.expected:
        return Foreign("numbers that start with a point", "write `0.5`")
    if text == "=" and words[-1:] == [":"]:
        return Foreign("assignments with `:=`", "write `let a = …;`")
    return None


def _place_before(at: Situation) -> Span | None:
    before = at.previous[-1]
    if before.start_pos is None or before.end_pos is None:
        return None
    return Span(at.source.name, before.start_pos, before.end_pos)


_Rule = Callable[["Situation", str, list[str]], Foreign | None]
_RULES: tuple[_Rule, ...] = (_in_brackets, _where, _declaration, _cast, _operator, _word)
