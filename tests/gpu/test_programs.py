"""The programs of `tests/programs` on the GPU: the same bits as the CPU execution gives, and no
byte touched that is not the program's. What is expected was packed where the compiler is."""

from __future__ import annotations

from functools import cache
from itertools import groupby

import numpy as np
import pytest
from cubins import CUBINS, FOLDER
from distance import distance
from packed import read, symbols
from placement import PLACEMENTS
from red_zones import RedZones

USED = (PLACEMENTS[0], PLACEMENTS[-1])


@cache
def launches(file):
    """The launches of a file by kernel."""
    found = sorted(read(CUBINS / FOLDER / f"{file}.npz"), key=lambda launch: launch.symbol)
    groups = groupby(found, lambda launch: kernel_of(launch.symbol))
    return {kernel: list(group) for kernel, group in groups}


def kernel_of(symbol):
    return symbol.partition("__")[0]


def kernels():
    files = sorted(path.stem for path in (CUBINS / FOLDER).glob("*.npz"))
    found = {file: symbols(CUBINS / FOLDER / f"{file}.npz") for file in files}
    return [(file, name) for file in files for name in dict.fromkeys(map(kernel_of, found[file]))]


@pytest.mark.parametrize(("file", "kernel"), kernels())
def test_same_as_the_cpu_execution(load, file, kernel, count):
    module = load(f"{FOLDER}/{file}")
    faults = []
    for launch in launches(file)[kernel]:
        for placement in USED:
            count("launches of programs", 1)
            count("results of them compared", len(launch.after))
            found = fault(module[launch.symbol], launch, placement)
            if found:
                faults.append(f"{file}: {launch} [{placement.name}]: {found}")
    assert not faults, f"{len(faults)} launches are wrong:\n" + "\n".join(faults[:12])


def fault(kernel, launch, placement):
    """What is wrong with one launch, or None."""
    zones = RedZones()
    arguments = {n: placed(zones, n, launch, placement) for n in launch.arguments}
    kernel(**arguments)
    wrong = [
        first_difference(name, launch, arguments[name].bits(), expected)
        for name, expected in launch.after.items()
    ]
    try:
        zones.verify()
    except AssertionError as error:
        wrong.append(str(error))
    return "; ".join(filter(None, wrong)) or None


def placed(zones, name, launch, placement):
    """One argument as the launcher takes it."""
    value = launch.arguments[name]
    if name not in launch.elements:
        return value
    element, is_output = launch.elements[name], name in launch.after
    where = placement.of(value.shape, element, is_output=is_output)
    return zones.of_bits(value, element, is_written=is_output, name=f"`{name}`", **where)


def first_difference(name, launch, bits, expected):
    element = launch.elements[name]
    steps = distance(bits, expected, element)
    wrong = np.argwhere(steps > launch.ulps)
    if not len(wrong):
        return None
    where = tuple(map(int, wrong[0]))
    return (
        f"`{name}` ({element}) is wrong at {len(wrong)} of {bits.size} places, "
        f"first {list(where)}: expected {shown(expected[where], element)}, "
        f"got {shown(bits[where], element)}"
    )


def shown(bits, element):
    from element_bits import from_bits

    value = from_bits(np.array([bits]), element)[0]
    return f"{value!r} ({int(bits):#x})"
