"""A GPU of the tests: arrays of NumPy, and a clock that contenders set forward themselves."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

_DTYPE = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8, "u8": np.uint8}


class Broken(Exception):  # noqa: N818  (a state)
    """What a GPU raises from some fault on."""


class FakeGpu:
    """As `tilec.bench.gpu.Gpu` says. A copy takes 1 µs for each 1000 bytes read and written."""

    capability = (9, 0)
    l2_bytes = 1000

    def __init__(self):
        self.now_us = 0.0
        self.is_capturing = False
        self.captures = 0
        self.broken = False
        self.compilations = 0

    def spend(self, us):
        self.now_us += us

    def free_bytes(self):
        return 1 << 20

    def operations_per_us(self, unit):
        return {"f32": 100.0}.get(unit, 0.0)

    def environment(self):
        return {"card": "A Fake Card"}

    def filled(self, spec, seed):
        rng = np.random.default_rng(seed)
        if spec.span is None:
            return rng.normal(size=spec.shape).astype(_DTYPE[spec.element])
        return rng.uniform(*spec.span, spec.shape).astype(_DTYPE[spec.element])

    def empty(self, spec):
        return np.zeros(spec.shape, _DTYPE[spec.element])

    def poison(self, array):
        array.view(np.uint8)[...] = 0xFF

    def wide(self, array):
        return array.astype(np.float64) if array.dtype.kind == "f" else array

    def error(self, found, exact, spec):
        difference = np.abs(found - exact) / (
            spec.absolute + spec.relative * np.abs(exact) + 1e-300
        )
        return float("inf") if np.isnan(difference).any() else float(difference.max(initial=0))

    def magnitude(self, array):
        return float(np.sqrt(np.mean(np.square(array.astype(np.float64))))) if array.size else 0.0

    def copy(self, target, source):
        target[...] = source
        self.spend(2 * source.nbytes / 1000)

    def compiled(self, function):
        self.compilations += 1
        return function

    def time_us(self, enqueue):
        start = self.now_us
        enqueue()
        return self.now_us - start

    def captured(self, enqueue):
        with self._capturing():
            enqueue()
        self.captures += 1
        return enqueue

    @contextmanager
    def _capturing(self):
        self.is_capturing = True
        try:
            yield
        finally:
            self.is_capturing = False

    def synchronise(self):
        if self.broken:
            raise Broken("the GPU takes no more work")
