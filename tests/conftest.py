"""What every test can ask for: whether to rewrite what users read (`make bless`)."""

from __future__ import annotations

import gc

import pytest

# Operations and arrays are many, and few of them cycles: looking for these takes time.
gc.set_threshold(50_000, 20, 100)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the expected output")


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--bless"))
