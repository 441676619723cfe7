"""A result as the bytes of a cache's file, with a seal over all of it and the key it is kept by."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict
from typing import Any

from tilec.compilation import Compiled
from tilec.diagnostics.diagnostic import Diagnostic, Label, Severity
from tilec.source import Span

_MAGIC = b"tilec result 2\n"
_SEAL_DIGITS = 64


def encoded(compiled: Compiled, key: str, secret: bytes) -> bytes:
    """The bytes that `decoded` gives back for this key and secret alone."""
    header = {
        "outputs": [[name, len(data)] for name, data in compiled.outputs.items()],
        "diagnostics": [{**asdict(d), "severity": d.severity.value} for d in compiled.diagnostics],
        "used": compiled.used,
        "texts": dict(compiled.texts),
        "unmatched": compiled.unmatched,
    }
    body = json.dumps(header).encode() + b"\n" + b"".join(compiled.outputs.values())
    return _MAGIC + _seal(body, key, secret) + b"\n" + body


def decoded(content: bytes, key: str, secret: bytes) -> Compiled | None:
    """The result, or None if it was not kept by this key with this secret, or is not whole."""
    start = len(_MAGIC) + _SEAL_DIGITS + 1
    seal, body = content[len(_MAGIC) : start - 1], content[start:]
    if not content.startswith(_MAGIC):
        return None
    if not hmac.compare_digest(seal, _seal(body, key, secret)):
        return None
    try:
        return _compiled(body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # sealed, so another version of tilec wrote it, or somebody who shares a cache


def _seal(body: bytes, key: str, secret: bytes) -> bytes:
    """Without a secret (a cache that is shared) it is a hash, which finds damage only."""
    return hmac.new(secret, key.encode() + b"\n" + body, hashlib.sha256).hexdigest().encode()


def _compiled(body: bytes) -> Compiled:
    line, _, data = body.partition(b"\n")
    header = json.loads(line)
    outputs: dict[str, bytes] = {}
    position = 0
    for name, size in header["outputs"]:
        outputs[_text(name)] = data[position : position + _count(size)]
        position += size
    if position != len(data):
        raise ValueError("the outputs are not those that are listed")
    return Compiled(
        outputs,
        tuple(_diagnostic(stored) for stored in header["diagnostics"]),
        _texts(header["used"]),
        {_text(name): _text(text) for name, text in header["texts"].items()},
        _texts(header["unmatched"]),
    )


def _diagnostic(stored: dict[str, Any]) -> Diagnostic:
    labels = tuple(Label(_span(one["span"]), _text(one["text"])) for one in stored["labels"])
    if not labels:
        raise ValueError("a diagnostic has no place")
    return Diagnostic(
        _text(stored["code"]),
        _text(stored["message"]),
        labels,
        _texts(stored["notes"]),
        None if stored["help"] is None else _text(stored["help"]),
        Severity(stored["severity"]),
    )


def _span(stored: dict[str, Any]) -> Span:
    return Span(_text(stored["file"]), _count(stored["start"]), _count(stored["end"]))


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return tuple(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("expected a count")
    return value
