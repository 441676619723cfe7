"""When output is coloured."""

from __future__ import annotations

import os
from typing import TextIO


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour what goes to this stream.

    Source:   https://no-color.org, https://force-color.org, https://bixense.com/clicolors; where
              they disagree, no colour wins
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
        return False
    return stream.isatty()
