"""What must hold inside a manifest beyond its structure, so that readers can rely on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from tilec.artifact.abi import ELEMENT_BYTES, slots_of
from tilec.artifact.architecture import capability_of
from tilec.artifact.expression import Expression, names_in, text_of
from tilec.artifact.families import faults_of_families
from tilec.artifact.geometry import CLUSTER_LIMIT
from tilec.artifact.manifest import Kernel, Manifest, TensorMap, Touched, Variant
from tilec.artifact.number_kinds import fault_of_number, real_names
from tilec.artifact.pipelines import faults_of_pipelines
from tilec.artifact.signature import Parameter
from tilec.artifact.tensor_maps import BOX_LIMIT, MULTIPLE_BYTES, RANK_LIMIT


def faults_of(manifest: Manifest) -> Iterator[str]:
    """What is wrong in a manifest, each with the instance it is in; nothing if it can be used."""
    if capability_of(manifest.target) == (0, 0, ""):
        yield f"the target `{manifest.target}` is none: expected one such as `sm_90a`"
    symbols = [v.symbol for kernel in manifest.kernels for v in kernel.variants]
    yield from _repeated("variant", symbols)
    yield from _repeated("instance", [kernel.symbol for kernel in manifest.kernels])
    first: dict[str, Kernel] = {}
    for kernel in manifest.kernels:
        yield from (f"`{kernel.symbol}`: {fault}" for fault in _faults_of_kernel(kernel))
        model = first.setdefault(kernel.name, kernel)
        if _signature(kernel) != _signature(model):
            yield f"`{kernel.symbol}` has not the parameters of `{model.symbol}`"
    yield from faults_of_families(manifest)
    yield from faults_of_pipelines(manifest)


def _signature(kernel: Kernel) -> list[tuple[str, str]]:
    return [(p.name, p.kind) for p in kernel.parameters]


def _faults_of_kernel(kernel: Kernel) -> Iterator[str]:
    # Expressions name both.
    yield from _repeated("name", [*(p.name for p in kernel.parameters), *kernel.dims])
    for parameter in kernel.parameters:
        yield from _faults_of_parameter(parameter, kernel.dims)
    yield from _faults_of_expressions(kernel)
    for touched in kernel.touched:
        yield from _faults_of_touched(touched, kernel)
    if not kernel.variants:
        yield "there is no variant"
    for variant in kernel.variants:
        yield from _faults_of_variant(variant, kernel)


def _faults_of_parameter(parameter: Parameter, dims: tuple[str, ...]) -> Iterator[str]:
    if parameter.element not in ELEMENT_BYTES:
        yield f"`{parameter.name}` has the unknown element type `{parameter.element}`"
    if parameter.is_tensor and parameter.own is None:
        yield f"the tensor `{parameter.name}` has no ownership"
    if not parameter.is_tensor and (parameter.extents or parameter.own or parameter.block):
        yield f"the scalar `{parameter.name}` has extents, a block or an ownership"
    for extent in parameter.extents:
        if isinstance(extent, str) and extent not in dims:
            yield f"`{parameter.name}` names the unknown `Dim` `{extent}`"
        if isinstance(extent, int) and extent < 0:
            yield f"`{parameter.name}` has the negative extent {extent}"


def _faults_of_touched(touched: Touched, kernel: Kernel) -> Iterator[str]:
    ranks = {p.name: p.rank for p in kernel.parameters if p.is_tensor}
    if ranks.get(touched.tensor) != len(touched.extents):
        yield f"`{touched.tensor}` has no such axes as are said to be touched"
    names = dict.fromkeys(n for extent in touched.extents for n in names_in(extent))
    yield from (f"what is touched names the unknown `{n}`" for n in names if n not in kernel.dims)


def _faults_of_expressions(kernel: Kernel) -> Iterator[str]:
    scalars = (p.name for p in kernel.parameters if not p.is_tensor)
    bound = {x for p in kernel.parameters for x in p.extents if isinstance(x, str)}
    yield from (f"no tensor binds the `Dim` `{dim}`" for dim in kernel.dims if dim not in bound)
    known = {*kernel.dims, *scalars}
    used: list[Expression] = [*kernel.grid, *(r.expression for r in kernel.requires)]
    for name in dict.fromkeys(n for expression in used for n in names_in(expression)):
        if name not in known:
            yield f"an expression names the unknown `{name}`"
    reals = real_names(kernel.parameters)
    for expression in used:
        fault = fault_of_number(expression, reals, may_be_real=expression not in kernel.grid)
        if fault is not None:
            yield f"`{text_of(expression)}` {fault}"


def _faults_of_variant(variant: Variant, kernel: Kernel) -> Iterator[str]:
    tensors = {p.name for p in kernel.parameters if p.is_tensor}
    if variant.slots != slots_of(kernel.parameters, kernel.dims, variant.tensor_maps):
        yield f"the slots of `{variant.symbol}` are not those of its parameters"
    if not 0 < variant.threads <= 1024:
        yield f"`{variant.symbol}` has {variant.threads} threads a block"
    yield from (f"`{variant.symbol}` {fault}" for fault in _faults_of_geometry(variant))
    for one in variant.tensor_maps:
        named = next((p for p in kernel.parameters if p.name == one.param and p.is_tensor), None)
        faults = ["which is no tensor"] if named is None else _faults_of_map(one, named)
        yield from (f"`{variant.symbol}` has a map of `{one.param}`, {fault}" for fault in faults)
    for precondition in variant.preconditions:
        if precondition.param not in tensors:
            yield f"`{variant.symbol}` asks for the alignment of `{precondition.param}`"
        asked = (
            precondition.base_alignment_bytes,
            precondition.stride_multiple_bytes,
            precondition.row_multiple,
        )
        if min(asked) < 1:
            yield f"`{variant.symbol}` asks `{precondition.param}` for a multiple of less than 1"
    yield from _faults_of_report(variant, kernel)


def _faults_of_geometry(variant: Variant) -> Iterator[str]:
    if min(variant.cluster) < 1 or prod(variant.cluster) > CLUSTER_LIMIT:
        yield f"has the cluster {variant.cluster}"
    blocks = variant.persistent_blocks_per_sm
    if variant.split < 1 or (variant.split > 1 and variant.cluster != (variant.split, 1, 1)):
        yield f"splits programs among {variant.split} blocks, of the cluster {variant.cluster}"
    if blocks is None:
        return
    if variant.split != 1:
        yield "is persistent, and splits programs"
    if blocks < 1:
        yield f"has {blocks} persistent blocks for each multiprocessor"
    if variant.cluster[1:] != (1, 1):
        yield f"is persistent and has the cluster {variant.cluster}, which is not along x"


def _faults_of_map(one: TensorMap, tensor: Parameter) -> Iterator[str]:
    if tensor.element not in ELEMENT_BYTES:
        return  # told of the parameter
    if len(one.box) != tensor.rank or not 1 <= tensor.rank <= RANK_LIMIT:
        yield f"whose box is {one.box}"
        return
    if min(one.box) < 1 or max(one.box) > BOX_LIMIT:
        yield f"whose box is {one.box}"
    row_bytes = one.box[-1] * ELEMENT_BYTES[tensor.element]
    if row_bytes % MULTIPLE_BYTES or (one.swizzle and row_bytes > one.swizzle):
        yield f"whose rows of {row_bytes} bytes have no {one.swizzle}-byte swizzle"
    if one.writes and not tensor.is_written:
        yield "which it does not write"
    if one.rounds and (one.writes or tensor.element != "f32"):
        yield "which does not round it to tf32"


def _faults_of_report(variant: Variant, kernel: Kernel) -> Iterator[str]:
    told = variant.lowering
    layouts = [access.layout for access in told.accesses]
    layouts += [number for one in told.movements for number in (one.source, one.target)]
    layouts += [n for one in told.products for n in (one.left, one.right, one.sums)]
    for number in dict.fromkeys(layouts):
        if not 0 <= number < len(kernel.layouts):
            yield f"`{variant.symbol}` names the unknown layout {number}"
    tensors = {p.name for p in kernel.parameters if p.is_tensor}
    for access in told.accesses:
        if access.tensor not in tensors:
            yield f"`{variant.symbol}` accesses the unknown `{access.tensor}`"
    if any(one.bank_conflicts < 0 for one in told.movements):
        yield f"`{variant.symbol}` has fewer wavefronts than the least"
    if told.buffers:
        needed = max(buffer.offset + buffer.bytes for buffer in told.buffers)
        if needed > variant.static_smem_bytes + variant.dynamic_smem_bytes:
            yield f"`{variant.symbol}` has buffers outside its shared memory"


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"the {what} `{name}` occurs twice"
        seen.add(name)
