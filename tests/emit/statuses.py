"""The status codes as the support part declares them."""

from __future__ import annotations

import re

from tilec.emit.header.emit import support

STATUS = {
    name: int(number)
    for name, number in re.findall(r"\b(TILEC_SUCCESS|TILEC_ERROR_\w+) = (\d+)[,\n]", support())
}
