"""A loop whose turns several blocks share out, and what is done once all of their sums are there.

for k in 0..n { c = a b + c }; store c

first, end = share 0 n 1
for k in first..end { c = a b + c }
o = offer c; join o; t = total o c; join o
if leads { store t }
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import scf
from tilec.ops.lower_control import terminator_of
from tilec.roles.of_roles import made
from tilec.schedule.split import is_zero

# With more blocks, each adds up a part.
_FEW = 2


def split_loop(block: ir.Block, loop: ir.OpView, blocks: int) -> None:
    """Rewrites the entry block of a function, in which the loop stands, for so many blocks.

    Assumes:  the loop only adds to what it carries, and nothing is written before its end
    """
    ops = list(block.operations)
    after = ops[ops.index(loop) + 1 : -1]
    lower, upper, step, *starts = loop.operands
    index = ir.IndexType.get()
    with loop.location, ir.InsertionPoint(loop):
        share = ir.Operation.create(
            "warp.share", results=[index, index], operands=[lower, upper, step]
        )
        starts = [
            one if is_zero(one) else made("warp.start", [one], str(one.type)) for one in starts
        ]
    for place, value in enumerate((*share.results, step, *starts)):
        loop.operands[place] = value
    results = list(loop.results)
    with loop.location, ir.InsertionPoint(terminator_of(block)):
        offered = ir.Operation.create(
            "warp.offer", results=[ir.Type.parse("!warp.offered")], operands=results
        )
        [place] = offered.results
        ir.Operation.create("warp.join", operands=[place])
        kinds = [one.type for one in results]
        elements = {ir.RankedTensorType(kind).element_type for kind in kinds}
        attributes: dict[str, ir.Attribute] = {}
        if blocks > _FEW and len(elements) == 1:
            ir.Operation.create("warp.add", operands=[place])
            ir.Operation.create("warp.join", operands=[place])
            attributes["of_parts"] = ir.UnitAttr.get()
        total = ir.Operation.create(
            "warp.total", results=kinds, operands=[place, *results], attributes=attributes
        )
        ir.Operation.create("warp.join", operands=[place])
        leading = scf.IfOp(made("warp.leads", [], "i1"))
        with ir.InsertionPoint(leading.then_block):
            end = scf.yield_([])
    for result, whole in zip(results, total.results, strict=True):
        result.replace_all_uses_except(whole, [offered, total])
    for op in after:
        op.operation.move_before(end)
