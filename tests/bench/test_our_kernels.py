"""Which of our kernels a case launches."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilec.runtime as rt
from tilec.bench import Kernels, fitting
from tilec.bench.target import target_of


class Plan:
    def __init__(self, symbol):
        self.variant = type("Variant", (), {"symbol": symbol})


class Launcher:
    def __init__(self, name, longest):
        self.name, self.longest, self.launches = name, longest, 0

    def plan(self, row):
        if row > self.longest:
            raise rt.ContractError(f"{self.name} takes no {row}")
        return Plan(f"{self.name}__v16")

    def launch(self, row):
        self.launches += 1


def kernels(*launchers):
    found = {launcher.name: launcher for launcher in launchers}

    def load(path):
        name, target, _ = path.name.split(".")
        assert target == "sm_90a"
        if name not in found:
            raise FileNotFoundError(path)
        manifest = type("Manifest", (), {"toolchain": "a toolchain"})
        return type("Module", (), {"manifest": manifest, "__getitem__": lambda _, n: found[n]})()

    return Kernels(Path("build"), "sm_90a", load)


def test_the_first_that_takes_the_arguments_is_launched_each_time():
    short, long = Launcher("short", 10), Launcher("long", 100)
    ours = kernels(short, long)
    launch = fitting("short", "long")(ours)
    launch(20)
    launch(20)
    assert (short.launches, long.launches) == (0, 2)
    assert ours.used == ["long__v16"]


def test_a_kernel_that_is_not_needed_need_not_be_there():
    short = Launcher("short", 10)
    fitting("short", "long")(kernels(short))(5)
    assert short.launches == 1


def test_none_that_fits_is_the_contracts_error():
    with pytest.raises(rt.ContractError, match="short takes no 11"):
        fitting("short")(kernels(Launcher("short", 10)))(11)


def test_a_cubin_that_is_missing_is_an_error_of_the_file():
    with pytest.raises(FileNotFoundError):
        fitting("none")(kernels())(1)


@pytest.mark.parametrize(
    ("capability", "target"), [((8, 0), "sm_80"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")]
)
def test_the_target_of_a_gpu(capability, target):
    assert target_of(capability) == target
