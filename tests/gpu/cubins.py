"""Where the cubins are that the tests run, and what belongs to them."""

from __future__ import annotations

import os
from pathlib import Path

CUBINS = Path(os.environ.get("TILEC_CUBINS") or Path(__file__).parents[2] / "build")
FOLDER = "gpu-tests"  # of the tests' own programs, and of what these must give
