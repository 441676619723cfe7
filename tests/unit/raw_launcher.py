"""A launcher written from docs/abi.md alone: of tilec it uses nothing, of a build only the JSON.

It gives what would be handed to `cuLaunchKernelEx`. Sections in comments are those of the page.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

Json = Any

BYTES = {
    "bool": 1, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2,
    "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8, "usize": 8,
}  # fmt: skip
MAP_TYPES = {
    "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "i16": "UINT16",
    "u16": "UINT16", "i32": "INT32", "u32": "UINT32", "i64": "INT64", "usize": "INT64",
    "u64": "UINT64", **dict.fromkeys(("bool", "i8", "u8", "f8e4m3", "f8e5m2"), "UINT8"),
}  # fmt: skip
GRID_LIMITS = (2147483647, 65535, 65535)


class Refused(Exception):  # noqa: N818
    """The contract does not hold, or no variant can be launched."""


class Undecided(Exception):  # noqa: N818
    """Whether two tensors share bytes is too much to count here."""


class Tensor(NamedTuple):
    address: int
    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    device: int

    @property
    def is_empty(self) -> bool:
        return 0 in self.extents


@dataclass(frozen=True)
class Launch:
    """`parameters` are numbers of 64 bits, the bytes of scalars, and what maps are told."""

    symbol: str
    grid: tuple[int, int, int]
    threads: int
    cluster: tuple[int, int, int]
    shared_bytes: int
    parameters: tuple[object, ...]


def launch(kernel: Json, arguments: list[object], sm_count: int) -> Launch | None:
    """The launch of one instance; None if there is nothing to launch."""
    variant = variant_for(kernel, arguments, sm_count)
    values = check_contract(kernel, arguments)
    extents = [evaluate(one, values) for one in kernel["grid"]]
    if math.prod(extents) == 0:
        return None
    return Launch(
        variant["symbol"],
        grid_of(variant, extents, sm_count),
        variant["threads"],
        tuple(variant["cluster"]),
        variant["dynamic_smem_bytes"],
        tuple(slot_value(slot, kernel, variant, arguments, values) for slot in variant["slots"]),
    )


# Entry points


def variant_for(
    kernel: Json, arguments: list[object], sm_count: int, is_aligned: bool = False
) -> Json:
    """The first variant that can be launched; `is_aligned` takes addresses for granted."""
    values = check_contract(kernel, arguments, addresses=not is_aligned)
    extents = [evaluate(one, values) for one in kernel["grid"]]
    tensors = tensors_of(kernel, arguments)
    for variant in kernel["variants"]:
        asked = [is_met(one, tensors[one["param"]], is_aligned) for one in variant["preconditions"]]
        maps = [is_mappable(m, tensors[m["param"]], is_aligned) for m in variant["tensor_maps"]]
        if not all(asked) or not all(maps):
            continue
        if math.prod(extents) == 0 or grid_of(variant, extents, sm_count) is not None:
            return variant
    raise Refused("no variant")


def is_met(asked: Json, tensor: Tensor, is_aligned: bool) -> bool:
    if tensor.extents and tensor.extents[-1] % asked["row_multiple"]:
        return False
    if tensor.is_empty:
        return True
    size = BYTES[tensor.element]
    return (is_aligned or tensor.address % asked["base_alignment_bytes"] == 0) and all(
        stride * size % asked["stride_multiple_bytes"] == 0
        for extent, stride in zip(tensor.extents[:-1], tensor.strides[:-1], strict=True)
        if extent > 1
    )


def tensors_of(kernel: Json, arguments: list[object]) -> dict[str, Tensor]:
    return {
        parameter["name"]: Tensor(*given[:5])
        for parameter, given in zip(kernel["parameters"], arguments, strict=True)
        if parameter["kind"] == "tensor"
    }


# Parameters


def slot_value(
    slot: Json, kernel: Json, variant: Json, arguments: list[object], values: dict[str, object]
) -> object:
    tensors = tensors_of(kernel, arguments)
    name = slot["name"]
    if slot["kind"] == "pointer":
        return tensors[name].address
    if slot["kind"] == "stride":
        # Without meaning along an axis of extent 0 or 1.
        tensor, axis = tensors[name], slot["axis"]
        return tensor.strides[axis] if tensor.extents[axis] > 1 else 0
    if slot["kind"] == "extent":
        return values[name]
    if slot["kind"] == "scalar":
        return bits_of(slot["element"], values[name])
    [wanted] = [one for one in variant["tensor_maps"] if one["param"] == name]
    return map_of(wanted, tensors[name])


def bits_of(element: str, value: Any) -> bytes:
    if element == "bf16":
        [bits] = struct.unpack("<I", struct.pack("<f", value))
        return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).to_bytes(2, "little")
    form = {"f16": "e", "f32": "f", "f64": "d", "bool": "B", "usize": "q"}.get(element)
    if form is None:
        form = {1: "b", 2: "h", 4: "i", 8: "q"}[BYTES[element]]
        form = form.upper() if element[0] == "u" else form
    return struct.pack(f"<{form}", value)


def rounded(element: str, value: Any) -> Any:
    """A number after rounding to its own type."""
    form = {"f16": "<e", "f32": "<f"}.get(element)
    if element == "bf16":
        return struct.unpack("<f", b"\0\0" + bits_of(element, value))[0]
    return struct.unpack(form, struct.pack(form, value))[0] if form else value


# Launch geometry


def grid_of(variant: Json, extents: list[int], sm_count: int) -> tuple[int, int, int] | None:
    """None where the hardware, or the variant, has no such grid."""
    count = math.prod(extents)
    cluster = variant["cluster"]
    if variant["tensor_maps"] and count > 67108864:
        return None
    if variant["persistent_blocks_per_sm"] is not None:
        blocks = variant["persistent_blocks_per_sm"] * sm_count
        wide = cluster[0]
        x = min(-(-count // wide) * wide, blocks // wide * wide)
        return max(x, wide), 1, 1
    if variant["split"] > 1:
        x, y, z = plain_grid(extents)
        x *= variant["split"]
        return (x, y, z) if x <= GRID_LIMITS[0] else None
    if cluster == [1, 1, 1]:
        return plain_grid(extents)
    padded = [1, 1, *extents]
    own = (padded[-1], padded[-2], math.prod(padded[:-2]))
    rounded = tuple(-(-n // c) * c for n, c in zip(own, cluster, strict=True))
    return rounded if _is_within(rounded) else None


def plain_grid(extents: list[int]) -> tuple[int, int, int]:
    padded = [1, 1, *extents]
    grid = (padded[-1], padded[-2], math.prod(padded[:-2]))
    if grid[1] != 1 and _is_within(grid):
        return grid
    count = math.prod(extents)
    x = min(count, 2147483647)
    return x, 1, -(-count // x)


def _is_within(grid: tuple[int, ...]) -> bool:
    return all(n <= limit for n, limit in zip(grid, GRID_LIMITS, strict=True))


# Tensor maps


def map_of(wanted: Json, tensor: Tensor) -> tuple[object, ...]:
    """What `cuTensorMapEncodeTiled` is told: data type, address, extents, strides, box, swizzle,
    promotion."""
    strides = map_strides(tensor)
    promotion = 256 if all(stride % 128 == 0 for stride in strides) else 128
    return (
        "TFLOAT32" if wanted["rounds"] else MAP_TYPES[tensor.element],
        tensor.address,
        tensor.extents[::-1],
        strides,
        tuple(wanted["box"][::-1]),
        wanted["swizzle"],
        promotion,
    )


def map_strides(tensor: Tensor) -> tuple[int, ...]:
    pairs = list(zip(tensor.extents, tensor.strides, strict=True))[:-1]
    size = BYTES[tensor.element]
    return tuple(stride * size if extent != 1 else 128 for extent, stride in reversed(pairs))


def is_mappable(wanted: Json, tensor: Tensor, is_aligned: bool) -> bool:
    strides = map_strides(tensor)
    row_bytes = tensor.extents[-1] * BYTES[tensor.element]
    return (
        all(0 < extent <= 2147483647 for extent in tensor.extents)
        and (is_aligned or tensor.address % 16 == 0)
        and all(stride % 16 == 0 and 0 < stride < 2**40 for stride in strides)
        and (not wanted["writes"] or row_bytes % 16 == 0)
    )


# Expressions


class DividesByZero(Exception):  # noqa: N818
    pass


def evaluate(
    expression: Json,
    values: dict[str, Any],
    strict: bool = False,
    below: str = "",
    exact: bool = False,
) -> Any:
    """The value; `strict` tells of divisions by zero instead of giving one.

    `below` is the operation around it; `exact` numbers are of any size.
    """
    if isinstance(expression, str):
        return values[expression]
    if not isinstance(expression, list):
        return expression
    name, *operands = expression

    def value(number: int) -> Any:
        return evaluate(operands[number], values, strict, name, exact)

    if name == "and":
        return bool(value(0)) and bool(value(1))
    if name == "or":
        return bool(value(0)) or bool(value(1))
    if name == "select":
        return value(1) if value(0) else value(2)
    a = value(0)
    if name in ("neg", "abs", "not"):
        made = {"neg": lambda: -a, "abs": lambda: abs(a), "not": lambda: not a}[name]()
        return made if exact else _of_64_bits(made, below)
    if name[0] in "iu" and name[1:].isdigit():
        bits = int(name[1:])
        low = a % 2**bits
        return low - 2**bits if name[0] == "i" and low >= 2 ** (bits - 1) else low
    b = value(1)
    if name in ("div", "rem", "ceildiv") and b == 0:
        if strict:
            raise DividesByZero
        return a if name == "rem" else 0
    made = BINARY[name](a, b)
    return made if exact else _of_64_bits(made, below)


def _of_64_bits(made: Any, below: str) -> Any:
    """Nothing is launched with larger numbers, but for those of which a conversion keeps bits."""
    is_converted = below[:1] in ("i", "u") and below[1:].isdigit()
    if not is_converted and not isinstance(made, float):
        _ask(-(2**63) <= made < 2**63, "numbers of 64 bits")
    return made


def truncated(a: int, b: int) -> int:
    return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


def extreme(a: float, b: float, sign: int) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return max(a, b, key=lambda x: (sign * x, sign * math.copysign(1, x)))


BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": truncated, "rem": lambda a, b: a - truncated(a, b) * b,
    "ceildiv": lambda a, b: -((-a) // b),
    "min": lambda a, b: extreme(a, b, -1), "max": lambda a, b: extreme(a, b, 1),
    "shl": lambda a, b: a << (b % 64), "shr": lambda a, b: a >> (b % 64),
    "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b, "bitxor": lambda a, b: a ^ b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


# Families


def member_for(
    manifest: Json, family: Json, arguments: list[object], sm_count: int, card: str
) -> Json:
    """The member to launch."""
    kernels = {kernel["symbol"]: kernel for kernel in manifest["kernels"]}
    usable: list[tuple[Json, Json]] = []
    for symbol in family["members"]:
        try:
            variant = variant_for(kernels[symbol], arguments, sm_count, is_aligned=True)
        except Refused:
            continue
        usable.append((kernels[symbol], variant))
    if not usable:
        raise Refused("no member")
    values = check_contract(usable[0][0], arguments, addresses=False)
    for table in family["tables"]:
        for measured in table["measured"] if table["card"] == card else ():
            if measured["extents"] == [values[dim] for dim in family["dims"]]:
                for kernel, _ in usable:
                    if kernel["symbol"] == measured["member"]:
                        return kernel
    if not all(variant["cost"]["parts"] for _, variant in usable):
        return usable[0][0]
    return min(usable, key=lambda pair: cycles(*pair, values, sm_count))[0]


def cycles(kernel: Json, variant: Json, values: dict[str, Any], sms: int) -> int:
    cost = variant["cost"]
    programs = math.prod(evaluate(one, values) for one in kernel["grid"])
    turns = [max(0, evaluate(part["turns"], values, exact=True)) for part in cost["parts"]]
    units = ("tensor_cycles", "shared_cycles", "memory_cycles", "thread_cycles")
    pairs = list(zip(turns, cost["parts"], strict=True))
    busy = max(sum(n * part[unit] for n, part in pairs) for unit in units)
    alone = sum(n * part["alone_cycles"] for n, part in pairs)
    wide = cost["blocks_per_program"] > 2 or cost["cluster_blocks"] > 2
    s = sms - sms // 16 if wide else sms
    blocks = programs * cost["blocks_per_program"]
    k = -(-blocks // s)
    resident = min(blocks, s * cost["blocks_per_sm"])
    first = evaluate(cost["first_cycles"], values, exact=True) // max(1, resident)
    hidden = max(k * busy, evaluate(cost["memory_cycles"], values, exact=True), first)
    part = cost["parts"][0]
    last = max(0, part["alone_cycles"] - max(part[unit] for unit in units)) if hidden else 0
    return cost["start_cycles"] + max(-(-k // cost["blocks_per_sm"]) * alone, hidden + last)


# Pipelines


class Step(NamedTuple):
    """One launch of a pipeline, and the numbers of those that are done before it."""

    launch: Launch | None
    after: frozenset[int]


def steps_of(
    manifest: Json, pipeline: Json, arguments: list[object], workspace: int, machine: Json
) -> list[Step]:
    """What is launched for these arguments, with temporaries in the workspace at an address."""
    values = check_contract(pipeline, arguments)
    tensors = {**tensors_of(pipeline, arguments)}
    sizes = workspace_parts(pipeline, values)
    for temporary in pipeline["temporaries"]:
        extents = tuple(evaluate(one, values) for one in temporary["extents"])
        address = workspace + sum(sizes[: temporary["slot"]])
        strides = tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))
        tensors[temporary["name"]] = Tensor(address, temporary["element"], extents, strides, 0)
    steps: list[Step] = []
    for one in pipeline["launches"]:
        given = [argument_of(argument, tensors, values) for argument in one["arguments"]]
        kernel = by_name(manifest, one["instances"], given, machine)
        before = frozenset(one["after"]).union(*(steps[n].after for n in one["after"]))
        steps.append(Step(launch(kernel, given, machine["sms"]), before))
    return steps


def workspace_parts(pipeline: Json, values: dict[str, Any]) -> list[int]:
    """The bytes of each slot of the workspace."""
    parts: dict[int, int] = {}
    for temporary in pipeline["temporaries"]:
        count = math.prod(evaluate(one, values) for one in temporary["extents"])
        size = -(-count * BYTES[temporary["element"]] // 256) * 256
        parts[temporary["slot"]] = max(size, parts.get(temporary["slot"], 0))
    return [parts[slot] for slot in range(len(parts))]


def argument_of(argument: Json, tensors: dict[str, Tensor], values: dict[str, Any]) -> object:
    if argument["tensor"] is None:
        return evaluate(argument["value"], values)
    tensor = tensors[argument["tensor"]]
    axes = argument["axes"] or range(len(tensor.extents))
    return tensor._replace(
        extents=tuple(tensor.extents[axis] for axis in axes),
        strides=tuple(tensor.strides[axis] for axis in axes),
    )


def by_name(manifest: Json, symbols: list[str], arguments: list[object], machine: Json) -> Json:
    """The instance of several that is launched."""
    family_of = {member: one for one in manifest["families"] for member in one["members"]}
    tried: list[str] = []
    for kernel in manifest["kernels"]:
        if kernel["symbol"] not in symbols or kernel["symbol"] in tried:
            continue
        family = family_of.get(kernel["symbol"], {"members": [kernel["symbol"]], "tables": []})
        members = [member for member in family["members"] if member in symbols]
        tried += members
        try:
            of_these = {**family, "members": members}
            return member_for(manifest, of_these, arguments, machine["sms"], machine["card"])
        except Refused:
            continue
    raise Refused("no instance")


# The contract


def check_contract(kernel: Json, arguments: list[object], addresses: bool = True) -> dict[str, Any]:
    """The values of `Dim`s and scalars, if the contract holds (of addresses only if asked)."""
    tensors = tensors_of(kernel, arguments)
    parameters = {parameter["name"]: parameter for parameter in kernel["parameters"]}
    values: dict[str, Any] = {}
    for parameter, given in zip(kernel["parameters"], arguments, strict=True):
        if parameter["kind"] == "scalar":
            values[parameter["name"]] = rounded(parameter["element"], given)
    for name, tensor in tensors.items():  # 1
        extents = parameters[name]["extents"]
        _ask(tensor.element == parameters[name]["element"], "element type")
        _ask(len(tensor.extents) == len(extents), "rank")
        for wanted, extent in zip(extents, tensor.extents, strict=True):
            if isinstance(wanted, str):
                wanted = values.setdefault(wanted, extent)
            _ask(wanted == extent, "extent")
    for tensor in tensors.values():  # 2
        _ask(max(tensor.extents, default=0) <= 2**40, "extent above the limit")
        _ask(math.prod(max(n, 1) for n in tensor.extents) <= 2**60, "too many elements")
    for requirement in kernel["requires"]:  # 3
        try:
            _ask(evaluate(requirement["expression"], values, strict=True), "requires")
        except DividesByZero:
            raise Refused("requires") from None
    grid = [evaluate(one, values) for one in kernel.get("grid", ())]
    _ask(all(0 <= one <= 2**40 for one in grid) and math.prod(grid) <= 2**40, "grid")
    for name, tensor in tensors.items():
        if tensor.is_empty:
            continue
        axes = [(n, s) for n, s in zip(tensor.extents, tensor.strides, strict=True) if n > 1]
        _ask(
            not tensor.extents or tensor.extents[-1] == 1 or tensor.strides[-1] == 1, "last stride"
        )  # 4
        _ask(all(stride >= 0 for _, stride in axes), "negative stride")
        _ask(_last_byte(tensor) <= 2**63, "span")
        if addresses:
            _ask(tensor.address and tensor.address % BYTES[tensor.element] == 0, "address")
            _ask(tensor.address + _last_byte(tensor) <= 2**64, "end of addresses")
        if parameters[name]["own"] in ("mut", "part", "atomic"):  # 5
            span = 1
            for extent, stride in sorted(axes, key=lambda axis: axis[1]):
                _ask(stride >= span, "self-overlap")
                span += (extent - 1) * stride
    if addresses:  # 6
        for name, other in product(tensors, tensors):
            if name != other and parameters[name]["own"] in ("mut", "part", "atomic"):
                _ask(not share_bytes(tensors[name], tensors[other]), "overlap")
    _ask(len({tensor.device for tensor in tensors.values()}) <= 1, "device")  # 7
    return values


def share_bytes(one: Tensor, other: Tensor) -> bool:
    """Counted element by element, where byte ranges meet."""
    if one.is_empty or other.is_empty:
        return False
    ends = [t.address + _last_byte(t) for t in (one, other)]
    if ends[0] <= other.address or ends[1] <= one.address:
        return False
    if max(math.prod(one.extents), math.prod(other.extents)) > 2**16:
        raise Undecided
    return bool(np.intersect1d(_bytes_of(one), _bytes_of(other)).size)


def _last_byte(tensor: Tensor) -> int:
    size = BYTES[tensor.element]
    return size + size * sum(
        (n - 1) * stride for n, stride in zip(tensor.extents, tensor.strides, strict=True)
    )


def _bytes_of(tensor: Tensor) -> np.ndarray:
    places = np.zeros(1, np.int64)
    for extent, stride in zip(tensor.extents, tensor.strides, strict=True):
        places = (places[:, None] + np.arange(extent) * stride).ravel()
    size = BYTES[tensor.element]
    return (tensor.address + (places[:, None] * size + np.arange(size))).ravel()


def _ask(holds: object, what: str) -> None:
    if not holds:
        raise Refused(what)
