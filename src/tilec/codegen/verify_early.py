"""Whether a kernel that may start early waits: the independent check of what `start_early` did.

It knows nothing of how that placed waits, and reads what LLVM made of them: PTX. From the entry it
follows all paths that have not waited. None of them may touch memory that others see, or end.

Of memory there is what instructions name in brackets. What a block or thread has for itself, and
parameters, are its own; so are descriptions of tensors, which are parameters. A call may do
anything, but for CUDA's assertion, after which nothing of the launch counts.

Source:   PTX ISA, "State Spaces", "Operands" (addresses stand in brackets), "Control Flow
          Instructions", "griddepcontrol"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WAIT = "griddepcontrol.wait"
_OWN = {"param", "shared", "shared::cta", "shared::cluster", "local", "const"}
_FETCHES_DESCRIPTION = "prefetch.tensormap"
_ASSERTION = "__assertfail"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Directives of lines, which no semicolon ends.
_LINE = re.compile(r"^\s*\.(?:loc|file|section)\b.*$", re.MULTILINE)
_LABEL = re.compile(r"\s*([\w$]+):(?!:)")
_GUARD = re.compile(r"@!?[\w%$]+\s+")


@dataclass(frozen=True)
class _Step:
    """An instruction, and whether a predicate decides if it is done."""

    text: str
    is_guarded: bool

    @property
    def name(self) -> str:
        return self.text.split(None, 1)[0] if self.text else ""


def problems_of(ptx: str, symbol: str) -> Iterator[str]:
    """All that is wrong with an entry that may start early, each as the instruction and why."""
    steps, labels, targets = _read(_body_of(ptx, symbol))
    waiting, seen = [0], {0}
    while waiting:
        place = waiting.pop()
        if place == len(steps):
            yield "the end: reached without a wait"
            continue
        step = steps[place]
        if (what := _problem(step)) is not None:
            yield f"{step.text}: {what}"
        for following in _following(step, place, labels, targets):
            if following not in seen:
                seen.add(following)
                waiting.append(following)


def _problem(step: _Step) -> str | None:
    kind, *parts = step.name.split(".")
    if kind in ("ret", "exit"):
        return "a thread ends without a wait"
    if kind == "call" and _ASSERTION not in step.text:
        return "a call without a wait before"
    if "[" not in step.text or step.name.startswith(_FETCHES_DESCRIPTION):
        return None
    if "global" not in parts and _OWN.intersection(parts):
        return None
    return "an access without a wait before"


def _following(
    step: _Step, place: int, labels: dict[str, int], targets: dict[str, tuple[str, ...]]
) -> list[int]:
    """Where a thread that has not waited may go on."""
    kind = step.name.split(".")[0]
    further: list[int] = []
    if step.name == _WAIT or kind in ("ret", "exit", "trap") or _ASSERTION in step.text:
        return [place + 1] if step.is_guarded else []
    if kind == "bra":
        further = [labels[step.text.split()[-1]]]
    elif kind == "brx":
        further = [labels[one] for one in targets[step.text.split()[-1]]]
    else:
        return [place + 1]
    return [*further, place + 1] if step.is_guarded else further


def _body_of(ptx: str, symbol: str) -> str:
    _, entry, rest = ptx.partition(f".entry {symbol}(")
    assert entry, f"{symbol} is an entry"
    text, depth = _LINE.sub("", _COMMENT.sub("", rest.partition("\n{")[2])), 1
    for brace in re.finditer("[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[: brace.start()]
    raise AssertionError(f"{symbol} ends")


def _read(body: str) -> tuple[list[_Step], dict[str, int], dict[str, tuple[str, ...]]]:
    """Instructions in order, where labels are, and what lists of labels name."""
    steps: list[_Step] = []
    labels: dict[str, int] = {}
    targets: dict[str, tuple[str, ...]] = {}
    for statement in body.split(";"):
        rest, named = statement.strip(), ""
        while True:
            rest = rest.lstrip("{}").lstrip()
            label = _LABEL.match(rest)
            if label is None:
                break
            named = label[1]
            labels[named] = len(steps)
            rest = rest[label.end() :].lstrip()
        if rest.startswith(".branchtargets"):
            targets[named] = tuple(re.findall(r"[\w$]+", rest.partition(" ")[2]))
        if not rest or rest.startswith("."):
            continue
        guard = _GUARD.match(rest)
        text_of_step = " ".join(rest[guard.end() if guard else 0 :].split())
        steps.append(_Step(text_of_step, guard is not None))
    return steps, labels, targets
