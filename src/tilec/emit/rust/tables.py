"""What a file says of its kernels as data: the structs of `support/tables.rs`, filled in."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.artifact.expression import Expression, text_of
from tilec.artifact.family import Cost
from tilec.artifact.manifest import Kernel, Precondition, TensorMap, Variant
from tilec.artifact.signature import Parameter
from tilec.emit.expressions import Expressions
from tilec.emit.messages import asks, required
from tilec.emit.numbering import extent_numbers, value_numbers
from tilec.emit.rust.expressions import RUST
from tilec.emit.rust.text import boolean, in_comment, listed, string, structure
from tilec.emit.sets import Group


def kernel_lines(
    kernel: Kernel, own: str, first_entry: int, expressions: Expressions | None = None
) -> Iterator[str]:
    """The `Kernel` called `KERNEL_own`, and the function of its expressions, with those given.

    `first_entry` is the number of its first variant in the cubin.
    """
    expressions = expressions or Expressions(kernel, RUST)
    value = structure(
        "Kernel",
        symbol=string(kernel.symbol),
        parameters=listed(_parameter(p, kernel) for p in kernel.parameters),
        dims=listed(map(string, kernel.dims)),
        requirements=listed(
            claim(r.expression, required(r.text, r.expression), kernel, expressions)
            for r in kernel.requires
        ),
        grid=listed(claim(x, text_of(x), kernel, expressions) for x in kernel.grid),
        variants=listed(
            _variant(variant, kernel, first_entry + i, expressions)
            for i, variant in enumerate(kernel.variants)
        ),
        evaluate=f"evaluate_{own}",
    )
    yield f"static KERNEL_{own}: Kernel = {value};"
    yield from _expression_lines(expressions, f"evaluate_{own}")
    yield ""


def _expression_lines(expressions: Expressions, name: str) -> Iterator[str]:
    """The function that evaluates them."""
    yield f"fn {name}(which: u32, v: &[Value], e: &mut Evaluation) -> i128 {{"
    yield "    match which {"
    for number, code, text in expressions.rows():
        yield f"        {number} => {code}, // {in_comment(text)}"
    yield "        _ => 0,"
    yield "    }"
    yield "}"


def dtype(element: str) -> str:
    """The `Dtype` of an element type."""
    return f"Dtype::{'Usize' if element == 'usize' else element.upper().replace('BOOL', 'Bool')}"


def _parameter(parameter: Parameter, kernel: Kernel) -> str:
    return structure(
        "Parameter",
        name=string(parameter.name),
        dtype=dtype(parameter.element),
        is_written=boolean(parameter.is_written),
        extents=listed(extent_numbers(parameter, kernel)),
    )


def claim(
    expression: Expression,
    text: str,
    kernel: Kernel,
    expressions: Expressions,
    *,
    is_value: bool = False,
) -> str:
    """The `Claim` of an expression; of one that `is_value`, a real number is kept."""
    return structure(
        "Claim",
        expression=(expressions.value if is_value else expressions.number)(expression),
        text=string(text),
        named=listed(value_numbers(expression, kernel)),
    )


def _variant(variant: Variant, kernel: Kernel, entry: int, expressions: Expressions) -> str:
    place = {p.name: i for i, p in enumerate(kernel.parameters)}
    return structure(
        "Variant",
        symbol=string(variant.symbol),
        asks=string(asks(variant)),
        threads=variant.threads,
        static_bytes=variant.static_smem_bytes,
        dynamic_bytes=variant.dynamic_smem_bytes,
        cluster=list(variant.cluster),
        persistent=variant.persistent_blocks_per_sm or 0,
        split=variant.split,
        starts_early=boolean(variant.starts_early),
        preconditions=listed(_precondition(p, place[p.param]) for p in variant.preconditions),
        maps=listed(_wanted_map(m, place[m.param]) for m in variant.tensor_maps),
        cost=_cost(variant.cost, expressions),
        entry=entry,
    )


def _precondition(precondition: Precondition, place: int) -> str:
    return structure(
        "Precondition",
        parameter=place,
        base_bytes=precondition.base_alignment_bytes,
        stride_bytes=precondition.stride_multiple_bytes,
        row_elements=precondition.row_multiple,
    )


def _wanted_map(wanted: TensorMap, place: int) -> str:
    return structure(
        "WantedMap",
        parameter=place,
        swizzle=wanted.swizzle,
        writes=boolean(wanted.writes),
        rounds=boolean(wanted.rounds),
        extents=listed(wanted.box[::-1]),
    )


def _cost(cost: Cost, expressions: Expressions) -> str:
    return structure(
        "Cost",
        blocks_per_sm=cost.blocks_per_sm,
        start=cost.start_cycles,
        blocks_per_program=cost.blocks_per_program,
        cluster_blocks=cost.cluster_blocks,
        memory=expressions.number(cost.memory_cycles, is_exact=True),
        first=expressions.number(cost.first_cycles, is_exact=True),
        parts=listed(
            structure(
                "Part",
                turns=expressions.number(part.turns, is_exact=True),
                busy=list(part.busy_cycles),
                alone=part.alone_cycles,
            )
            for part in cost.parts
        ),
    )


def table_rows(group: Group) -> Iterator[str]:
    """The `Table` of each card that the members were measured on."""
    for card, measured in group.measured():
        yield structure("Table", card=string(card), rows=listed(map(listed, measured)))
