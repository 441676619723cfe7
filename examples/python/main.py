"""A kernel in PyTorch: called, compiled, and as part of a module; and by `tilec.runtime` alone.

`make run` builds `build/gated_torch.py` and what it needs first.
"""

from __future__ import annotations

import torch
from gated_torch import gated, gated_out

import tilec.runtime as rt


class GatedLinear(torch.nn.Module):
    """Two projections, and the kernel between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, inner)
        self.gate = torch.nn.Linear(width, inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate(x), self.up(x)
        return gated(gate.flatten(), up.flatten()).view_as(gate)


def backward(context, gradient):
    """What PyTorch needs to differentiate the operation, if a program does: ordinary PyTorch."""
    gate, up = context.saved_tensors
    s = torch.sigmoid(gate)
    return gradient * up * s * (1 + gate * (1 - s)), gradient * gate * s


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def expected(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate) * up


def main() -> None:
    if not torch.cuda.is_available():
        print("there is no GPU here")
        return
    torch.manual_seed(0)
    gate, up = (torch.randn(100_000, device="cuda") for _ in range(2))

    y = gated(gate, up)
    torch.testing.assert_close(y, expected(gate, up))
    gated_out(y, up, gate)
    torch.testing.assert_close(y, expected(up, gate))
    print("called: as expected")

    module = GatedLinear(64, 128).cuda()
    x = torch.randn(32, 64, device="cuda")
    with torch.no_grad():
        by_hand = expected(module.gate(x), module.up(x))
        torch.testing.assert_close(torch.compile(module, fullgraph=True)(x), by_hand)
    print("compiled, in one graph: as expected")

    torch.library.register_autograd("tilec_gated::gated", backward, setup_context=setup_context)
    module(x).sum().backward()
    found = module.up.weight.grad.clone()
    module.zero_grad()
    expected(module.gate(x), module.up(x)).sum().backward()
    torch.testing.assert_close(found, module.up.weight.grad)
    print("differentiated: as expected")

    try:
        gated(gate, up[:50])
    except rt.ContractError as error:
        print(f"a shorter one: {str(error).splitlines()[1].strip()}")

    # Without PyTorch: the same cubin, by `tilec.runtime`.
    import gated as kernels

    own = rt.to_device(gate.cpu().numpy())
    result = rt.empty(own.shape, "f32")
    kernels.gated.launch(result, own, own).wait()
    torch.testing.assert_close(torch.from_numpy(result.numpy()), expected(gate, gate).cpu())
    own.free()
    try:
        kernels.gated(result, own, own)
    except rt.BorrowError as error:
        print(f"after own.free(): {error}")


if __name__ == "__main__":
    main()
