"""Contenders of the tests, by name: what `module:function` finds. Times are of the fake GPU."""

from __future__ import annotations

import numpy as np
from fake_gpu import FakeGpu

from tilec.bench import tuned

gpu = FakeGpu()


def doubled(x):
    gpu.spend(20)
    return 2 * x


def tripled(x):
    return 3 * x


def fails(x):
    raise RuntimeError("no such thing\nand more")


def fails_in_capture(x):
    if gpu.is_capturing:
        raise RuntimeError("not while a graph is captured")
    return 2 * x


def breaks(x):
    gpu.broken = True
    raise RuntimeError("an illegal address")


def leaves_out(y, x):
    y[1:] = 2 * x[1:]


@tuned([{"us": 30}, {"us": 0}, {"us": 12}])
def in_place(y, x, *, us):
    """The second choice cannot be launched."""
    if not us:
        raise ValueError("too many registers")
    gpu.spend(us)
    np.multiply(x, 2, out=y)


@tuned(lambda y, x: [{"rows": x.shape[0]}])
def by_shape(y, x, *, rows):
    assert rows == x.shape[0]
    np.multiply(x, 2, out=y)
    gpu.spend(5)


def largest_at(x):
    """The last of the largest."""
    gpu.spend(1)
    return (x.size - 1 - np.argmax(x[::-1])).reshape(1)


def first_largest_at(x):
    gpu.spend(1)
    return np.argmax(x).reshape(1)


def at(x, index):
    return x[index]
