"""Checked builds on a GPU: what is wrong ends the launch and says where, what is right is as ever.

A trap leaves CUDA unusable for its process, so each has one of its own.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from cubins import CUBINS, FOLDER
from host_driver import DRY_RUN
from placement import PLACEMENTS
from test_kernels import fault

import tilec.runtime as rt
from tests.kernels.cases import problems, symbols

CHECKED = f"{FOLDER}/checked"

# Kernel, arguments, the line of `trapping.tile`, what it says.
WRONG = [
    ("asserts", "z('f4', 600), 600", 7, 'assert!(n < N, "too long")'),
    ("divides", "z('i4', 600), of([1] * 600), of([1] * 599 + [0])", 19, "the divisor is not 0"),
    ("divides", "z('i4', 2), of([1, -2**31]), of([1, -1])", 19, "the quotient fits its type"),
    ("scalars", "z('i4', 1), 7, 0", 25, "n % m: the divisor is not 0"),
    ("scalars", "z('i4', 1), -2**31, -1", 25, "n % m: the quotient fits its type"),
    ("vouches", "z('f4', 256), z('f4', 600), 2", 31, "every element is inside of the tensor"),
    ("vouches", "z('f4', 256), z('f4', 600), 2**50", 31, "every element is inside of the tensor"),
]

LAUNCH = """
import numpy as np
import tilec.runtime as rt

def z(kind, count):
    return rt.to_device(np.zeros(count, kind))

def of(numbers):
    return rt.to_device(np.array(numbers, 'i4'))

try:
    rt.load({cubin!r}).{kernel}({arguments})
except rt.Trapped as trapped:
    print(trapped)
"""


@pytest.mark.skipif(DRY_RUN, reason="a dry run executes the source, which does not trap")
@pytest.mark.parametrize(("kernel", "arguments", "line", "text"), WRONG)
def test_what_is_wrong_ends_the_launch_and_says_where(load, target, kernel, arguments, line, text):
    load(f"{CHECKED}/trapping")  # skips where it does not run
    cubin = str(CUBINS / CHECKED / f"trapping.{target}.cubin")
    program = LAUNCH.format(cubin=cubin, kernel=kernel, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.startswith(f"`{kernel}` failed on the GPU"), done.stdout + done.stderr
    assert "CUDA_ERROR_ASSERT" in done.stdout
    said = done.stderr.splitlines()
    assert any(f"trapping.tile:{line}: {kernel}" in x and f"{text}` failed" in x for x in said), (
        done.stderr
    )


def test_the_same_kernels_do_not_trap_where_they_are_right(load):
    module = load(f"{CHECKED}/trapping")
    z = rt.to_device(np.zeros(600, np.float32))
    module.asserts(z, 599)
    assert (z.numpy() == 1).all()
    numbers = np.arange(-300, 300, dtype=np.int32)
    quotients = rt.to_device(np.zeros(600, np.int32))
    divisors = np.where(numbers == 0, 7, numbers).astype(np.int32)
    module.divides(quotients, rt.to_device(numbers * 5), rt.to_device(divisors))
    np.testing.assert_array_equal(quotients.numpy(), np.where(numbers == 0, 0, 5))
    one = rt.to_device(np.zeros(1, np.int32))
    module.scalars(one, -7, 3)
    assert one.numpy() == [-1]
    x = np.arange(600, dtype=np.float32)
    tile = rt.to_device(np.zeros(256, np.float32))
    module.vouches(tile, rt.to_device(x), 1)
    np.testing.assert_array_equal(tile.numpy(), x[256:512])


@pytest.mark.parametrize(("file", "symbol"), symbols())
def test_the_kernel_library_is_right(load, file, symbol):
    kernel = load(f"{CHECKED}/{file}")[symbol]
    faults = [fault(kernel, problem, PLACEMENTS[0]) for problem in problems(symbol)]
    assert not any(faults), "\n".join(filter(None, faults))
