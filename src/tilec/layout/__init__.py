"""Linear layouts: which thread and register holds which element of a tile, and how to move them.

Pure integer mathematics. `layout` has the class, `blocked` the usual constructor, `views` the
layouts of the same data under another shape, `facts` what code generation asks, `conversion` and
`reduction` the plans that move and combine elements, `simulate` what those plans mean.
Source: "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2"
(arXiv 2505.23819).
"""

from tilec.layout.blocked import blocked
from tilec.layout.facts import contiguous_elements, register_permutation, unique_holders
from tilec.layout.layout import LANE_BITS, LANES, Layout, LayoutError
from tilec.layout.views import View, dropped, expanded, projected, reshaped, transposed

__all__ = [
    "LANES",
    "LANE_BITS",
    "Layout",
    "LayoutError",
    "View",
    "blocked",
    "contiguous_elements",
    "dropped",
    "expanded",
    "projected",
    "register_permutation",
    "reshaped",
    "transposed",
    "unique_holders",
]
