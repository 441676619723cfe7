"""A folder for what compilers make, and the header of `samples.everything` and `pipelined`."""

from __future__ import annotations

import pytest

from tests.emit.launching import Headers, reset
from tests.emit.noting import Pipelines
from tests.emit.pipeline_samples import pipelined
from tests.emit.samples import everything


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    return tmp_path_factory.mktemp("emit")


@pytest.fixture(scope="session")
def _headers(tools):
    made = Headers([everything()], tools / "everything", tools)
    assert made.use_driver() == 0
    return made


@pytest.fixture
def headers(_headers):
    """The functions of `everything`, with a fake driver that has seen nothing."""
    reset(_headers.fake)
    _headers.describe()
    _headers.driver.fake_enter(-1)
    return _headers


@pytest.fixture
def fresh(_headers):
    """The functions of `everything` as a program that was just started has them."""
    return _headers.anew()


@pytest.fixture(scope="session")
def _pipelines(tools):
    made = Pipelines([pipelined()], tools / "pipelined", tools)
    assert made.use_driver() == 0
    return made


@pytest.fixture
def pipelines(_pipelines):
    """The functions of `pipelined`, with a fake driver that has seen nothing."""
    reset(_pipelines.fake)
    _pipelines.describe()
    _pipelines.driver.fake_forget()
    _pipelines.driver.fake_enter(-1)
    return _pipelines
