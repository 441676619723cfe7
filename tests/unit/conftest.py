"""Each test begins with nothing under way: launches of one on another's streams would conflict."""

from __future__ import annotations

import pytest

from tilec.runtime.launch import UNDER_WAY


@pytest.fixture(autouse=True)
def _nothing_under_way_before():
    UNDER_WAY.__init__()
