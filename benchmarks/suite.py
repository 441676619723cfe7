"""What the descriptions of the suite share: its rivals, tolerances, and names of cases."""

from __future__ import annotations

from tilec.bench import Output, Rival

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


def product_output(
    element: str, m: int, n: int, k: int, *, count: int = 0, scale: float = 1.0, more: float = 0.0
) -> Output:
    """A product of normal numbers, that is then scaled; `more` is what else it may be off.

    k times a sum of magnitude √k is cut to 24 bits: k√k 2^-24 if all errors point one way, of which
    8 / √k has been seen at most. Then it is rounded once.
    """
    shape = (count, m, n) if count else (m, n)
    absolute = scale * k * 2.0**-21 + more
    return Output(shape, element, absolute=absolute, relative=ROUNDING[element])


def product_rivals(operation: str) -> tuple[Rival, ...]:
    """cuBLAS by PyTorch, and in Triton by pointers and by descriptors of tensors."""
    kernels = (("triton", operation), ("triton tma", f"{operation}_tma"))
    return (
        Rival("torch", f"torch_operations:{operation}", "function"),
        *(Rival(n, f"triton_products:{o}", "kernel", needs=("triton",)) for n, o in kernels),
    )
