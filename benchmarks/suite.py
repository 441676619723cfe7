"""What the descriptions of the suite share: its rivals, tolerances, and names of cases."""

from __future__ import annotations

from tilec.bench import Rival

# The rounding of a result to its type: half a unit in the last place.
ROUNDING = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}


def rivals(operation: str, *, triton: bool = True) -> tuple[Rival, ...]:
    """PyTorch as it is, compiled by it, and a kernel in Triton, each of this name."""
    in_torch = f"torch_operations:{operation}"
    found = (
        Rival("torch", in_torch, "function"),
        # Its code is Triton's, which it therefore needs.
        Rival("compile", in_torch, "compiled", needs=("triton",)),
    )
    if not triton:
        return found
    return (*found, Rival("triton", f"triton_kernels:{operation}", "kernel", needs=("triton",)))


def named(element: str, *extents: int) -> str:
    """The name of a case: `bf16 4096x1024`."""
    return f"{element} {'x'.join(map(str, extents))}"
