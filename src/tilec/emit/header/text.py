"""Words of C: identifiers, literals, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tilec.emit.names import distinct, identifier

_KEYWORDS = frozenset((
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await",
    "co_return", "co_yield", "compl", "concept", "const", "const_cast", "consteval",
    "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "linux", "long", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected",
    "public", "register", "reinterpret_cast", "requires", "restrict", "return", "short",
    "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
    "typeof", "typeof_unqual", "union", "unix", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
))  # fmt: skip
# What system headers have as macros and types, and what is the compiler's or the support's. With
# one underscore more, each is another name.
_MACROS = frozenset({"I", "complex", "errno", "math_errhandling", "noreturn"})
_RESERVED = r"_[_A-Z]\w*(?<!_)|__\w*[^_]__"
_OTHERS = re.compile(rf"([A-Z][A-Z0-9_]+|[A-Z]_\w+|\w+_t|tilec_\w+)(?<!_)|{_RESERVED}")
# What functions have beside the parameters.
_OWN = frozenset((
    "arguments", "graph", "plan", "plan_count", "plan_room", "plans", "status", "stream",
    "stream_count", "streams", "workspace", "workspace_bytes",
))  # fmt: skip
# What may be no function of C++ either: the macros that most programs have, and the types of
# numbers. A macro that is not here is put aside over the functions, and is their callers' matter.
_SYSTEM = _MACROS | frozenset((
    "EOF", "HUGE_VAL", "INFINITY", "NAN", "NULL", "_Bool", "assert", "int16_t", "int32_t",
    "int64_t", "int8_t", "size_t", "stderr", "stdin", "stdout", "uint16_t", "uint32_t", "uint64_t",
    "uint8_t",
))  # fmt: skip
_NO_FUNCTION = re.compile(rf"(tilec|TILEC)_\w+(?<!_)|{_RESERVED}")
# What namespace tilec of C++ has already.
_TAKEN = frozenset((
    "bf16", "context", "element", "element_number", "f16", "f8e4m3", "f8e5m2", "graph",
    "machine_code", "status", "stream", "stream_list", "tensor", "tensor_of",
))  # fmt: skip
# Headers of C and of POSIX, and those that they include and that go with CUDA: one of ours that is
# called so would be found in their place.
_HEADERS = frozenset((
    "alloca", "assert", "complex", "ctype", "cuda", "cuda_bf16", "cuda_fp16", "cuda_fp8",
    "cuda_runtime", "dlfcn", "endian", "errno", "fcntl", "features", "fenv", "float", "inttypes",
    "iso646", "limits", "locale", "math", "memory", "poll", "pthread", "sched", "search",
    "semaphore", "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbit", "stdbool",
    "stdckdint", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings",
    "tgmath", "threads", "time", "uchar", "unistd", "wchar", "wctype",
))  # fmt: skip
_LONGEST = 4095  # bytes of a literal (C99, 5.2.4.1)
_WIDTH = 112
_HEADING = 117
_INDENT = " " * 8
_SIMPLE = {'"': '\\"', "\\": "\\\\", "?": "\\?", "\n": "\\n"}  # no `??`: it begins a trigraph


def header_file(stem: str) -> str:
    """The name of the header of a program, which is that of no other header."""
    return f"{stem}_.h" if stem in _HEADERS else f"{stem}.h"


def parameter_names(names: Sequence[str]) -> list[str]:
    """Parameters' names that mean nothing else in any version of C and C++, nor in the function.

    No caller writes them, so that one more name that is taken for taken costs nothing.
    """
    return distinct(names, identifier, _is_no_parameter)


def _is_no_parameter(name: str) -> bool:
    return name in _KEYWORDS | _MACROS | _OWN or _OTHERS.fullmatch(name) is not None


def function_names(names: Sequence[str], words: Sequence[Sequence[str]]) -> list[str]:
    """The names of functions of C++ in namespace tilec, each followed by these words."""
    return distinct(names, identifier, _is_no_function, words)


def _is_no_function(name: str) -> bool:
    return name in _KEYWORDS | _SYSTEM | _TAKEN or _NO_FUNCTION.fullmatch(name) is not None


def string(text: str) -> str:
    """A string literal; what is not ASCII goes as the bytes of UTF-8. Of a text that is longer than
    compilers must take, and than a message has room for, the end is left out."""
    encoded = text.encode()
    if len(encoded) > _LONGEST:
        encoded = encoded[: _LONGEST - 3].decode(errors="ignore").encode() + b"..."
    return '"' + "".join(map(_escaped, encoded)) + '"'


def _escaped(byte: int) -> str:
    character = chr(byte)
    if character in _SIMPLE:
        return _SIMPLE[character]
    return character if 32 <= byte < 127 else f"\\{byte:03o}"


def in_comment(text: str) -> str:
    """Text that neither ends a comment nor warns in one."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def heading(text: str) -> list[str]:
    """A comment over a part of a file, as those of the support have it."""
    start = f"/* ---- {in_comment(text)} "
    return [start + "-" * (_HEADING - len(start)) + " */", ""]


def braced(items: Iterable[object]) -> str:
    """An initialiser, over several lines if it is long."""
    return filled("{", items, "}")


def returned(call: str, made: str = "") -> str:
    """`return CALL;`, over several lines if it is long; with `made`, what is made of it."""
    function, _, given = call.removesuffix(")").partition("(")
    opening, closing = (f"{made}(", "))") if made else ("", ")")
    return filled(f"    return {opening}{function}(", given.split(", "), f"{closing};")


def filled(opening: str, items: Iterable[object], closing: str) -> str:
    """A list between two texts; lines after the first are indented."""
    lines = [opening]
    texts = [str(item) for item in items]
    for index, text in enumerate(texts):
        word = text + (", " if index + 1 < len(texts) else closing)
        if len(lines[-1]) + len(word.rstrip()) > _WIDTH and index > 0:
            lines.append(_INDENT)
        lines[-1] += word
    if not texts:
        lines[-1] += closing
    return "\n".join(line.rstrip() for line in lines)
