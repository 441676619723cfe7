"""Each test begins with nothing under way: launches of one on another's streams would conflict.

Tests that launch ask for `launch_path`, and run twice: launches go by C, then by Python alone.
"""

from __future__ import annotations

import pytest

from tilec.runtime import native
from tilec.runtime.launch import UNDER_WAY


@pytest.fixture(autouse=True)
def _nothing_under_way_before():
    UNDER_WAY.__init__()


@pytest.fixture(params=["by C", "by Python"])
def launch_path(request, monkeypatch):
    if request.param == "by Python":
        monkeypatch.setattr(native, "_BUILT", None)
    elif native.built() is None:
        pytest.skip("hot_path.c was not built: there was no C compiler")
