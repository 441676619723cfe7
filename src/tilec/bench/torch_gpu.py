"""A GPU through PyTorch: the only file that knows it, imported when a benchmark is to run.

PyTorch is found at run time and has no types here, hence `Any`.
"""

from __future__ import annotations

import platform
import subprocess
from datetime import datetime, timezone
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tilec.bench.description import Input, Output, Tensor
from tilec.bench.gpu import Array, Enqueue
from tilec.bench.rates import Unit, operations_per_us
from tilec.diagnostics.setup_error import SetupError

_SLEEP_CYCLES = 400_000  # about 0.2 ms: more than queueing a sample takes
_DTYPE = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip
_QUERY = "name,driver_version,clocks.max.sm,clocks.max.memory,power.limit"


def torch_gpu() -> TorchGpu:
    """The current device of PyTorch.

    Raises:   SetupError without PyTorch or a device
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise SetupError(
            f"measuring needs the package torch, which cannot be imported: {error}",
            help="`tilec bench --list` shows what there is without it",
        ) from None
    if not torch.cuda.is_available():
        raise SetupError("measuring needs a GPU, and torch finds none")
    return TorchGpu(torch)


class TorchGpu:
    """As `tilec.bench.gpu.Gpu` says."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._device = torch.device("cuda", torch.cuda.current_device())
        self._properties = torch.cuda.get_device_properties(self._device)

    @property
    def capability(self) -> tuple[int, int]:
        return self._properties.major, self._properties.minor

    @property
    def l2_bytes(self) -> int:
        return int(self._properties.L2_cache_size)

    def free_bytes(self) -> int:
        self._torch.cuda.empty_cache()
        free, _ = self._torch.cuda.mem_get_info(self._device)
        return int(free)

    def operations_per_us(self, unit: Unit) -> float:
        clock_mhz = float(str(_facts_of_card()["max_sm_clock"]).split()[0])
        sms = self._properties.multi_processor_count
        return operations_per_us(self.capability, sms, clock_mhz, unit)

    def environment(self) -> dict[str, object]:
        triton = import_module("triton").__version__ if find_spec("triton") else None
        return {
            **_facts_of_card(),
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "torch": self._torch.__version__,
            "triton": triton,
            "cuda": self._torch.version.cuda,
            "python": platform.python_version(),
        }

    def filled(self, spec: Input, seed: int) -> Array:
        torch = self._torch
        generator = torch.Generator(self._device).manual_seed(seed)
        made = {"device": self._device, "generator": generator}
        dtype = getattr(torch, _DTYPE[spec.element])
        if spec.values is not None:
            return torch.tensor(spec.values, dtype=dtype, device=self._device).reshape(spec.shape)
        if dtype.is_floating_point and spec.span is None:
            return torch.randn(spec.shape, **made).to(dtype)
        if spec.span is None:
            raise ValueError(f"expected a span for an input of `{spec.element}`")
        low, high = spec.span
        if dtype.is_floating_point:
            return torch.rand(spec.shape, **made).mul_(high - low).add_(low).to(dtype)
        return torch.randint(int(low), int(high), spec.shape, dtype=dtype, **made)

    def empty(self, spec: Tensor) -> Array:
        dtype = getattr(self._torch, _DTYPE[spec.element])
        return self._torch.empty(spec.shape, dtype=dtype, device=self._device)

    def poison(self, array: Any) -> None:
        # All bits set: NaN in floats, -1 in integers.
        array.view(self._torch.uint8).fill_(0xFF)

    def wide(self, array: Any) -> Array:
        return array.double() if array.dtype.is_floating_point else array

    def error(self, found: Any, exact: Any, spec: Output) -> float:
        if tuple(found.shape) != tuple(exact.shape):
            raise ValueError(f"expected shape {tuple(exact.shape)}, got {tuple(found.shape)}")
        exact = exact.double()
        found = found.double()
        allowed = exact.abs().mul_(spec.relative).add_(spec.absolute)
        # Equal infinities are right; what is exact has no tolerance to divide by.
        difference = (found - exact).abs_().masked_fill_(found == exact, 0)
        worst = (difference / allowed).masked_fill_(difference == 0, 0).max().item()
        return float(worst) if worst == worst else float("inf")

    def magnitude(self, array: Any) -> float:
        numbers = array.double()
        numbers = numbers[self._torch.isfinite(numbers)]
        return float(numbers.square().mean().sqrt().item()) if numbers.numel() else 0.0

    def copy(self, target: Any, source: Any) -> None:
        target.copy_(source)

    def compiled(self, function: Any) -> Any:
        # What was compiled for earlier cases counts towards PyTorch's limit of recompilations.
        self._torch._dynamo.reset()
        return self._torch.compile(function, dynamic=False)

    def time_us(self, enqueue: Enqueue) -> float:
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._torch.cuda._sleep(_SLEEP_CYCLES)
        start.record()
        enqueue()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def captured(self, enqueue: Enqueue) -> Enqueue:
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph, capture_error_mode="thread_local"):
            enqueue()
        replay: Enqueue = graph.replay
        return replay

    def synchronise(self) -> None:
        self._torch.cuda.synchronize(self._device)


def _facts_of_card() -> dict[str, object]:
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader", "-i", "0"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    card, driver, sm_clock, memory_clock, power = (x.strip() for x in answer.split(","))
    return {
        "card": card,
        "driver": driver,
        "max_sm_clock": sm_clock,
        "max_memory_clock": memory_clock,
        "power_limit": power,
    }
