"""What development and CI install is locked: one version and its hashes, wherever tilec runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
LOCKS = {"compiler": ("clone", "compiler"), "dev": ("clone", "compiler", "dev")}
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")


def text_of(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")


def pins(name: str) -> list[Requirement]:
    lines = text_of(name).replace("\\\n", " ").splitlines()
    return [Requirement(line.partition("--hash")[0]) for line in lines if line[:1].isalnum()]


def asked_for(name: str) -> list[Requirement]:
    texts = [*PROJECT["project"]["dependencies"], *(x for e in LOCKS[name] for x in EXTRAS[e])]
    return [Requirement(text) for text in texts if not text.startswith("tilec")]


def installed(name: str, python: str, machine: str) -> dict[str, str]:
    """What pip would install there, the version by the name."""
    place = {
        "python_version": python, "python_full_version": f"{python}.1",
        "platform_machine": machine, "sys_platform": "linux", "platform_system": "Linux",
        "os_name": "posix", "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }  # fmt: skip
    found: dict[str, str] = {}
    for pin in pins(name):
        if pin.marker is None or pin.marker.evaluate(place):
            [exact] = pin.specifier
            assert exact.operator == "==" and canonicalize_name(pin.name) not in found
            found[canonicalize_name(pin.name)] = exact.version
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("python", VERSIONS)
@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_has_what_the_project_asks_for(name, python, machine):
    there = installed(name, python, machine)
    for wanted in asked_for(name):
        version = there.get(canonicalize_name(wanted.name))
        assert version is not None, f"`make lock`: {wanted} has no version for Python {python}"
        assert wanted.specifier.contains(version), f"`make lock`: {wanted}, not {version}"


@pytest.mark.parametrize("name", LOCKS)
def test_every_version_has_its_hashes_and_no_host_a_name(name):
    text = text_of(name)
    entries = re.split(r"\n(?=\w)", text.partition("\n#    make lock\n")[2])
    assert len(entries) == len(pins(name)) > 10
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries)
    assert "://" not in text and "index" not in text


def test_both_locks_agree():
    compiler, dev = ({str(pin) for pin in pins(name)} for name in LOCKS)
    assert compiler <= dev


def test_every_dependency_has_a_least_and_a_first_unknown_version():
    texts = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    texts += [text for extra in EXTRAS.values() for text in extra]
    for wanted in map(Requirement, texts):
        if wanted.name != "tilec":
            operators = sorted(one.operator for one in wanted.specifier)
            assert operators == ["<", ">="], str(wanted)
    assert EXTRAS["clone"] == PROJECT["build-system"]["requires"]
