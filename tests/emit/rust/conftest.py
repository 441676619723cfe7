"""The fixtures of tests of headers, with functions of Rust in the place of those of C."""

from __future__ import annotations

from random import Random

import pytest

from tests.emit.launching import reset
from tests.emit.pipeline_samples import pipelined
from tests.emit.rust.calling import RustLaunchers
from tests.emit.rust.probe import RustProbe, probe_text
from tests.emit.test_support import LIMITED_EXPRESSIONS, truth, whole


@pytest.fixture(scope="session")
def expressions():
    random = Random("expressions")
    return [*LIMITED_EXPRESSIONS, *((whole, truth)[i % 2](random, i % 4) for i in range(300))]


@pytest.fixture(scope="session")
def _headers(tools, expressions):
    inside = probe_text(("n", "m", "k"), expressions)
    made = RustLaunchers([pipelined()], tools / "rust", tools, inside)
    assert made.use_driver() == 0
    return made


@pytest.fixture
def headers(_headers):
    """The functions of `pipelined`, with a fake driver that has seen nothing."""
    reset(_headers.fake)
    _headers.describe()
    _headers.driver.fake_enter(-1)
    return _headers


@pytest.fixture
def fresh(_headers):
    """The functions of `pipelined` as a program that was just started has them."""
    return _headers.anew()


@pytest.fixture
def probe(_headers):
    return RustProbe(_headers.library)


@pytest.fixture
def pipelines(headers):
    headers.driver.fake_forget()
    return headers
