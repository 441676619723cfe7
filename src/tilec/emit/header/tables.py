"""What a header says of its kernels as data: the structs of `support/tables.h`, filled in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilec.artifact.expression import Expression, text_of
from tilec.artifact.family import Cost
from tilec.artifact.manifest import Kernel, Variant
from tilec.artifact.signature import Parameter
from tilec.emit.expressions import Expressions
from tilec.emit.header.expressions import C
from tilec.emit.header.text import braced, filled, in_comment, string
from tilec.emit.messages import asks, required
from tilec.emit.names import identifier
from tilec.emit.numbering import extent_numbers, value_numbers
from tilec.emit.sets import Group


class Arrays:
    """The constant arrays of a header, each content once.

    `lines` are definitions that are not yet taken; `unit` begins all their names.
    """

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.lines: list[str] = []
        self._known: dict[tuple[str, tuple[str, ...]], str] = {}
        self._taken: set[str] = set()

    def array(self, kind: str, what: str, rows: Sequence[str]) -> str:
        """The name of an array with these rows; `NULL` for none."""
        if not rows:
            return "NULL"
        key = (kind, tuple(rows))
        if key not in self._known:
            self._known[key] = name = self._free(f"{self.unit}_{what}")
            self.lines += [f"static const {kind} {name}[] = {{", *_indented(rows), "};"]
        return self._known[key]

    def _free(self, wanted: str) -> str:
        """The name, with a number if other rows have it."""
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name

    def taken(self) -> list[str]:
        """The definitions since the last call."""
        lines, self.lines = self.lines, []
        return lines


def _indented(rows: Iterable[str]) -> list[str]:
    return [f"    {row}," for row in rows]


def add_kernel(
    kernel: Kernel,
    cubin: str,
    arrays: Arrays,
    first_entry: int,
    expressions: Expressions | None = None,
) -> str:
    """Adds what belongs to a kernel to the arrays; gives the name of its `tilec_kernel`.

    `first_entry` is the number of its first variant in the cubin. `expressions` may have some that
    are evaluated beside the kernel's own.
    """
    own = identifier(kernel.symbol)
    expressions = expressions or Expressions(kernel, C)
    parameters = arrays.array(
        "tilec_parameter", f"parameters_{own}", [_parameter(p, kernel) for p in kernel.parameters]
    )
    dims = arrays.array("char *const", f"dims_{own}", [string(dim) for dim in kernel.dims])
    requirements = [
        claim(r.expression, required(r.text, r.expression), kernel, expressions, arrays)
        for r in kernel.requires
    ]
    grid = [claim(x, text_of(x), kernel, expressions, arrays) for x in kernel.grid]
    held = arrays.array("tilec_claim", f"requires_{own}", requirements)
    extents = arrays.array("tilec_claim", f"grid_{own}", grid)
    variants = arrays.array(
        "tilec_variant",
        f"variants_{own}",
        [
            _variant(variant, kernel, first_entry + i, expressions, arrays)
            for i, variant in enumerate(kernel.variants)
        ],
    )
    evaluate = f"{arrays.unit}_evaluate_{own}"
    arrays.lines += _expression_lines(expressions, evaluate)
    name = f"{arrays.unit}_kernel_{own}"
    counts = (
        len(kernel.parameters), len(kernel.dims), len(kernel.requires), len(kernel.grid),
        len(kernel.variants),
    )  # fmt: skip
    fields = (string(kernel.symbol), f"&{cubin}", *counts, parameters, dims, held, extents)
    arrays.lines += [
        filled(f"static const tilec_kernel {name} = {{", (*fields, variants, evaluate), "};"),
        "",
    ]
    return name


def _expression_lines(expressions: Expressions, name: str) -> list[str]:
    """The function that evaluates them."""
    parameters = ("int which", "const tilec_value *v", "tilec_evaluation *e")
    return [
        filled(f"static tilec_wide {name}(", parameters, ")"),
        "{",
        "    (void)v, (void)e;",
        "    switch (which) {",
        *(
            f"    case {number}: return {code}; /* {in_comment(text)} */"
            for number, code, text in expressions.rows()
        ),
        "    }",
        "    return 0;",
        "}",
    ]


def _parameter(parameter: Parameter, kernel: Kernel) -> str:
    extents = extent_numbers(parameter, kernel)
    return braced(
        (string(parameter.name), parameter.rank if parameter.is_tensor else -1,
         dtype(parameter.element),
         int(parameter.is_written), braced(extents or [0]))
    )  # fmt: skip


def dtype(element: str) -> str:
    """The `tilec_dtype` of an element type."""
    return f"TILEC_{element.upper()}"


def claim(
    expression: Expression, text: str, kernel: Kernel, expressions: Expressions, arrays: Arrays
) -> str:
    """A `tilec_claim`."""
    return claim_of(expressions.number(expression), expression, text, kernel, arrays)


def claim_of(number: int, expression: Expression, text: str, kernel: Kernel, arrays: Arrays) -> str:
    """A `tilec_claim` of an expression that has a number."""
    numbers = value_numbers(expression, kernel)
    named = arrays.array(
        "int32_t", f"named_{'_'.join(map(str, numbers))}", [braced_row([*numbers, -1])]
    )
    return braced((number, string(text), named))


def braced_row(numbers: Iterable[int]) -> str:
    """Numbers of one array, in one line."""
    return ", ".join(map(str, numbers))


def _variant(
    variant: Variant, kernel: Kernel, entry: int, expressions: Expressions, arrays: Arrays
) -> str:
    own = identifier(variant.symbol)
    place = {p.name: i for i, p in enumerate(kernel.parameters)}
    preconditions = arrays.array(
        "tilec_precondition",
        f"preconditions_{own}",
        [
            braced(
                (place[p.param], p.base_alignment_bytes, p.stride_multiple_bytes, p.row_multiple)
            )
            for p in variant.preconditions
        ],
    )
    maps = arrays.array(
        "tilec_wanted_map",
        f"maps_{own}",
        [
            braced((place[m.param], m.swizzle, int(m.writes), int(m.rounds), braced(m.box[::-1])))
            for m in variant.tensor_maps
        ],
    )
    cost = arrays.array(
        "tilec_cost", f"cost_{own}", [_cost(variant.cost, own, expressions, arrays)]
    )
    return braced(
        (string(variant.symbol), string(asks(variant)), variant.threads,
         variant.static_smem_bytes, variant.dynamic_smem_bytes, braced(variant.cluster),
         variant.persistent_blocks_per_sm or 0, variant.split, len(variant.preconditions),
         len(variant.tensor_maps), preconditions, maps, cost, entry, int(variant.starts_early))
    )  # fmt: skip


def _cost(cost: Cost, own: str, expressions: Expressions, arrays: Arrays) -> str:
    parts = arrays.array(
        "tilec_part",
        f"parts_{own}",
        [
            braced(
                (
                    expressions.number(part.turns, is_exact=True),
                    *part.busy_cycles,
                    part.alone_cycles,
                )
            )
            for part in cost.parts
        ],
    )
    return braced(
        (cost.blocks_per_sm, cost.start_cycles, cost.blocks_per_program, cost.cluster_blocks,
         expressions.number(cost.memory_cycles, is_exact=True),
         expressions.number(cost.first_cycles, is_exact=True),
         len(cost.parts), parts)
    )  # fmt: skip


def table_rows(group: Group, arrays: Arrays) -> list[str]:
    """The `tilec_table` of each card that the members were measured on."""
    found = []
    own = identifier(group.family.name) if group.family else ""
    for number, (card, measured) in enumerate(group.measured()):
        name = arrays.array("int64_t", f"measured{number}_{own}", list(map(braced_row, measured)))
        found.append(braced((string(card), name, len(measured))))
    return found
