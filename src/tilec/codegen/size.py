"""How many operations one thread's code may have: what LLVM and ptxas take grows with it."""

from __future__ import annotations

from mlir import ir

# Five times as many as the largest kernel of the library has. LLVM and ptxas take some 0.1 to
# 0.2 ms for each, so that a variant takes no more than a quarter of a minute.
MOST_OPERATIONS = 1 << 16


class TooLargeError(Exception):
    """The code of a kernel is larger than what is compiled; becomes E0702 at the kernel."""

    def __init__(self, location: ir.Location, count: int, limit: int) -> None:
        super().__init__(f"{count} operations, of {limit}")
        self.location = location
        self.count = count
        self.limit = limit


def expect_within_size(function: ir.OpView, location: ir.Location) -> None:
    """`location` is that of the kernel that the function of threads was made of.

    Raises:   TooLargeError
    """
    count = 0

    def counted(_: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    function.operation.walk(counted)
    if count > MOST_OPERATIONS:
        raise TooLargeError(location, count, MOST_OPERATIONS)
