"""Whatever the input, a command ends with 0, 1 or 2: never a traceback, never a partial file.

2,000 inputs: mutations of the programs of `tests/cases` and `kernels`, and text of random tokens.
Each goes through the function that a child process of the command runs; those that are refused
in a surprising way, and a sample of all, through the command itself.
"""

from __future__ import annotations

import random
import re
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from built_files import files_in

from tilec.children import RECURSION_LIMIT, Crashed, run_in_children
from tilec.compilation import Options
from tilec.sources import read_sources

ROOT = Path(__file__).parents[2]
INSTANCES = re.compile(r"(#\[instance\(.*\)\]\n)(?:#\[instance\(.*\)\]\n)+")
PROGRAMS = [
    # One instance of each kernel is enough to build: the first, which is of the smallest tiles.
    INSTANCES.sub(r"\1", path.read_text(encoding="utf-8"))
    for folder in ("tests/cases/accept", "tests/cases/reject", "kernels")
    for path in sorted((ROOT / folder).glob("*.tile"))
]
INPUTS = 400
BATCHES = 20
THROUGH_THE_COMMAND = 40
WORDS = """fn pub let mut for in if else while loop match return use const unsafe as ( ) [ ] { } < >
    :: -> => = == + - * / % & && | || ^ ! << >> .. ..= . , ; : # #[kernel] Tile Tensor Part Dim Num
    T N
B x y f32 bf16 usize 0 1 1024 -1 1.5 1e400 0x 1_ true 99999999999999999999999 'a ' " "s" // /* */
    /// //! r# \\ $ store load_like sum::<0> requires! assert! é \u202e \U0001f600 \ufeff"""
TOKENS = [*WORDS.split(), "#[instance(T = f32, B = 4)]", "\r", "\t", "\n", "\x0c", "\x7f"]
# An input takes milliseconds; a compiler that hangs shall not hang the tests.
HANGS_AFTER_S = 60


def inputs(count: int) -> list[bytes]:
    """As many inputs, always the same."""
    rng = random.Random(20)
    return [_mutated(rng) if i % 4 else _random_text(rng) for i in range(count)]


def _random_text(rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(200))
    separator = rng.choice(["", " ", "\n"])
    return separator.join(rng.choices(TOKENS, k=rng.randrange(60))).encode()


def _mutated(rng: random.Random) -> bytes:
    text = rng.choice(PROGRAMS)
    for _ in range(rng.choice([1, 1, 2, 5])):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice([0, 1, 1, 3, 30, 200]))
        other = rng.choice(PROGRAMS)
        cut = rng.randrange(len(other) + 1)
        piece = other[cut : cut + rng.choice([5, 50])]
        token = rng.choice(TOKENS)
        put = rng.choice(["", token, f" {token} ", text[start:end] * 2, piece])
        text = text[:start] + put + text[end:]
    data = text.encode()
    if rng.random() < 0.05:
        position = rng.randrange(len(data) + 1)
        data = data[:position] + rng.randbytes(rng.randrange(1, 3)) + data[position:]
    return data


def nested(depth: int) -> list[str]:
    """Programs that nest deeply, in each way that there is."""
    head = "#[kernel]\npub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 16>) {\n"
    tile = "Tile::<f32, 16>::zeros()"
    return [
        "(" * depth,
        "[" * depth + "]" * depth,
        f"{head} let t = {'(' * depth}{tile}{')' * depth}; z.store(t);\n}}",
        f"{head} z.store({'{' * depth}{tile}{'}' * depth});\n}}",
        f"{head} z.store({'-' * depth}{tile});\n}}",
        f"{head} z.store({tile}{'.abs()' * depth});\n}}",
        f"{head} z.store({f'{tile} + ' * depth}{tile});\n}}",
        f"{head} {'if true {' * depth}{'}' * depth}\n}}",
        f"{head} {'let t = 1; ' * depth} z.store({tile});\n}}",
        f"fn f(x: {'Tile<' * depth}{'>' * depth}) {{}}",
        f"fn f(x: {'(' * depth}f32{',)' * depth}) {{}}",
        "/*" * depth + "*/" * depth,
        f"#[a({'(' * depth}{')' * depth})]\nfn f() {{}}",
    ]


def statuses(paths: list[str], command: str) -> list[int]:
    """What the command's child would answer for each file: 0 or 1; raises what it would raise."""
    from tilec.driver import check_sources, compile_sources

    act = {"check": check_sources, "build": compile_sources}[command]
    signal.signal(signal.SIGALRM, _hang)
    found = []
    for path in paths:
        signal.alarm(HANGS_AFTER_S)
        try:
            compiled = act(read_sources(path), Options())
        except Exception as error:
            raise AssertionError(f"{command} {path}: {type(error).__name__}: {error}") from error
        assert not (compiled.is_refused and compiled.outputs), path
        found.append(int(compiled.is_refused))
    return found


def _hang(signal_number: int, frame: object) -> None:
    raise TimeoutError("hangs")


def in_children(paths: list[str], command: str) -> list[int]:
    """`statuses`, in batches of forked children, so that an abort is found and costs one batch."""
    import tilec.outputs  # noqa: F401 (imported once, before the forks)

    size = -(-len(paths) // BATCHES)
    batches = [paths[i : i + size] for i in range(0, len(paths), size)]
    found: dict[int, list[int]] = {}
    for i, answer in run_in_children([partial(statuses, b, command) for b in batches], 2):
        assert not isinstance(answer, Crashed), f"{answer.reason}\n{answer.details}"
        found[i] = answer
    return [status for i in range(len(batches)) for status in found[i]]


@pytest.fixture(scope="module", autouse=True)
def warm():
    """The parser's tables, made once: every child here starts with them."""
    from tilec.driver import warm_up

    warm_up(read_sources(str(ROOT / "kernels" / "add.tile")))


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    found = [str(folder / f"i{number}.tile") for number in range(INPUTS)]
    for path, content in zip(found, inputs(INPUTS), strict=True):
        Path(path).write_bytes(content)
    return found


def test_no_input_raises_or_aborts(paths):
    refused = in_children(paths, "check")
    # The inputs are worth something: some are still programs, most are not.
    assert 0 < refused.count(0) < refused.count(1)
    # `build` does what `check` does and goes on, so what `check` refuses needs no second look, nor
    # what differs from another in its comments and spaces alone.
    accepted = [path for path, is_refused in zip(paths, refused, strict=True) if not is_refused]
    distinct = {
        _without_comments(Path(path).read_text(encoding="utf-8")): path for path in accepted
    }
    in_children([*distinct.values(), *paths[:: INPUTS // THROUGH_THE_COMMAND]], "build")


def _without_comments(text: str) -> str:
    return " ".join(re.sub("//.*", "", text).split())


@pytest.mark.parametrize("command", ["check", "build"])
def test_the_command_ends_with_0_1_or_2_and_leaves_no_partial_file(
    tilec, paths, command, workplace
):
    for path in paths[:: INPUTS // THROUGH_THE_COMMAND]:
        ended = tilec(command, path)
        assert ended.status in (0, 1), (path, ended)
        assert "Traceback" not in ended.out + ended.err
        assert ended.status == 0 or "error[E" in ended.err
        stem = Path(path).stem
        written = [name for name in files_in(workplace) if Path(name).name.startswith((stem, "."))]
        assert command == "build" or not written
        assert ended.status == 0 or not written
        assert not any(name.endswith(".tmp") for name in written)


def test_any_number_of_bad_files_is_reported_in_one_run(tilec_process, paths):
    ended = tilec_process("check", *paths[:30])
    assert ended.status == 1
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("number", range(len(nested(1))))
@pytest.mark.parametrize("depth", [200, 3000])
def test_deep_nesting_is_refused_or_compiled(tilec, number, depth):
    Path("deep.tile").write_text(nested(depth)[number])
    ended = tilec("check", "deep.tile")
    assert ended.status in (0, 1), ended.err[:500]
    assert "Traceback" not in ended.err


def test_the_limit_on_recursion_is_the_childs_own(tilec):
    before = sys.getrecursionlimit()
    Path("a.tile").write_text("")
    tilec("check", "a.tile")
    assert sys.getrecursionlimit() == before != RECURSION_LIMIT
