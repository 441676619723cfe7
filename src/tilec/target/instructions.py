"""Since which compute capability there is an instruction: 90 for 9.0.

Source:   PTX ISA, "Target ISA Notes" of each.
"""

from __future__ import annotations

STMATRIX = 90
CVT_F8 = 89  # cvt with .e4m3x2 and .e5m2x2
