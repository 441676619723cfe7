"""The command line's say in what is built: `-D NAME=VALUE`, `--instance 'name<T=f16,B=64>'`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.bindings import Constant
from tilec.frontend.refusal import refusal
from tilec.source import SourceFile, Span
from tilec.types import BOOL, ELEMENTS, Element


@dataclass(frozen=True)
class Options:
    """What the command line says: `defines` as `NAME=VALUE`, `instances` as `name<N=V,…>`."""

    defines: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """An instance that the command line asks for; places point into the option's own text."""

    kernel: str
    span: Span
    values: tuple[tuple[ast.Name, str, Span], ...]


@dataclass(frozen=True)
class ParsedOptions:
    """The command line's instances and values; `sources` has the options as texts to point at."""

    defines: dict[str, tuple[str, Span]]
    requests: tuple[Request, ...]
    sources: dict[str, SourceFile]


_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_PAIR = re.compile(rf"\s*({_WORD})\s*=\s*([^,<>=]+?)\s*(?:,|$)")
_REQUEST = re.compile(rf"\s*({_WORD})\s*(?:<(.*)>)?\s*$")


def parse_options(options: Options) -> tuple[ParsedOptions, list[Diagnostic]]:
    """The options read, and E0204 for each that is not of the form `NAME=VALUE` or `f<N=V,…>`."""
    found: list[Diagnostic] = []
    sources: dict[str, SourceFile] = {}
    defines: dict[str, tuple[str, Span]] = {}
    requests: list[Request] = []
    for text in options.defines:
        source = _option_source("-D", text, sources)
        match = _PAIR.fullmatch(text)
        if match:
            defines[match[1]] = (match[2], Span(source.name, *match.span(2)))
        else:
            found.append(_malformed(source, "expected `NAME=VALUE`"))
    for text in options.instances:
        source = _option_source("--instance", text, sources)
        request = _request(text, source)
        if request:
            requests.append(request)
        else:
            found.append(_malformed(source, "expected `kernel<NAME=VALUE, …>`"))
    return ParsedOptions(defines, tuple(requests), sources), found


def _option_source(option: str, text: str, sources: dict[str, SourceFile]) -> SourceFile:
    source = SourceFile(f"{option} {text}", text)
    sources[source.name] = source
    return source


def _request(text: str, source: SourceFile) -> Request | None:
    match = _REQUEST.fullmatch(text)
    if not match:
        return None
    start, end = match.span(2)
    values: list[tuple[ast.Name, str, Span]] = []
    while start >= 0 and text[start:end].strip():
        pair = _PAIR.match(text, start, end)
        if not pair:
            return None
        name = ast.Name(Span(source.name, *pair.span(1)), pair[1])
        values.append((name, pair[2], Span(source.name, *pair.span(2))))
        start = pair.end()
    return Request(match[1], Span(source.name, 0, len(text)), tuple(values))


def _malformed(source: SourceFile, text: str) -> Diagnostic:
    label = Label(Span(source.name, 0, len(source.text)), text)
    return Diagnostic("E0204", "malformed option", (label,))


def parse_value(text: str, span: Span) -> Element | Constant:
    """An element type, boolean or number on the command line. Raises CompileError E0204."""
    if text in ELEMENTS:
        return ELEMENTS[text]
    if text in ("true", "false"):
        return Constant(text == "true", BOOL)
    for kind in (int, float):
        try:
            return Constant(kind(text.replace("_", "")))
        except ValueError:
            continue
    raise refusal("E0204", "expected an element type or a number", span, f"got `{text}`")
