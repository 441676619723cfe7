"""Times of a pipeline's launches, as a benchmark wrote them."""

from __future__ import annotations

import json

from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import read_regular_text

_LONGEST_US = 1e15  # thirty years


def read_times(file: str) -> dict[int, float]:
    """Microseconds by the launch's number; a JSON object, whose keys are numbers as text.

    Raises:   SetupError if the file cannot be read, or is no such object
    """
    try:
        document = json.loads(read_regular_text(file))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{file}`: {reason}") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"`{file}` is no JSON: {error}") from error
    expected = 'expected microseconds by the numbers of launches: `{"0": 1.5}`'
    if not isinstance(document, dict):
        raise SetupError(f"`{file}` has no times", help=expected)
    times: dict[int, float] = {}
    for key, value in document.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not key.isdecimal() or not is_number or not 0 <= value <= _LONGEST_US:
            raise SetupError(f"`{file}` has the time `{key}`: {value!r}", help=expected)
        times[int(key)] = float(value)
    return times
