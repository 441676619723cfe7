"""Kernels that may start while the kernels before them on their stream still run.

A launcher may start such a kernel early (`Variant.starts_early`): its blocks then come as those of
the grid before end, not when all that these wrote has arrived, and do what needs no memory that
others see: find their program, make barriers, meet their cluster. Before anything else each thread
waits until the grid before is done, and what that wrote is there.

    before:   number = ...                      after:   number = ...
              if number < count {                        if number < count {
                place = ...                                place = ...
                t = load place                             wait
                ...                                        t = load place
              }                                            ...
                                                         } else { wait }

Every thread of every block waits, once, whatever way it takes: stores too must not come before what
the grid before reads there, and a grid that is done must mean that all before it are, for the next
one waits for this one only.

A grid lets the next one come when its blocks end, or, if that is slow to begin, when all of its
blocks have begun (`griddepcontrol.launch_dependents`): only where there are so few that each has a
multiprocessor to itself. Blocks that come while many others run lie where these leave room, many on
one multiprocessor and none on others (docs/notes.md has figures).

Before:   threads, with shared memory resolved: `scf` and what LLVM takes
After:    the same; `verify_early.py` holds PTX against it
Source:   PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent Launch"
"""

from __future__ import annotations

from functools import reduce

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf

# The unit attributes of kernels that a pipeline launches after another one of its launches, and
# right before one that is slow to begin.
FOLLOWS, PRECEDES = "tile.follows", "tile.precedes"
WAIT = "griddepcontrol.wait;"
SIGNAL = "griddepcontrol.launch_dependents;"

_BRANCH = "scf.if"
_ADDRESSING = "llvm.getelementptr"
_GLOBAL = "!llvm.ptr<1>"
# What touches no memory but a block's own. Of `math`, functions may read tables; what is not named
# here waits, which is never wrong.
_OF_BLOCK = (
    "arith.", "vector.", "cf.assert", "nvvm.read.ptx.sreg.", "nvvm.mbarrier.", "nvvm.barrier",
    "nvvm.bar.", "nvvm.cluster.", "nvvm.fence.", "nvvm.setmaxregister", "nvvm.prefetch",
    "nvvm.mapa", "nvvm.shfl.", "scf.yield",
)  # fmt: skip
_UNKNOWN = ("llvm.call", "llvm.inline_asm", "llvm.return")


def start_early(function: ir.OpView) -> None:
    """Let a function of threads start early."""
    [body] = function.regions[0].blocks
    with function.location:
        _wait_in(body)


def let_start_early(function: ir.OpView, most_blocks: int) -> None:
    """Let what follows a function of threads start when its blocks have begun, if they are few."""
    [body] = function.regions[0].blocks
    words = (nvvm.read_ptx_sreg_nctaid_x, nvvm.read_ptx_sreg_nctaid_y, nvvm.read_ptx_sreg_nctaid_z)
    short, long = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    with function.location, ir.InsertionPoint.at_block_begin(body):
        count = reduce(arith.muli, [arith.extui(long, read(short)) for read in words])
        few = arith.cmpi(arith.CmpIPredicate.ule, count, arith.constant(long, most_blocks))
        with ir.InsertionPoint(scf.IfOp(few).then_block):
            llvm.inline_asm(None, [], SIGNAL, "", has_side_effects=True)
            scf.yield_([])


def _wait_in(block: ir.Block) -> None:
    """On all paths through a block: before the first access, or at its end."""
    for op in block.operations:
        if not _may_access(op):
            continue
        if op.operation.name == _BRANCH:
            _wait_in_ways(op)
        else:
            with ir.InsertionPoint(op), op.location:
                _wait()
        return
    with ir.InsertionPoint.at_block_terminator(block):
        _wait()


def _wait_in_ways(branch: ir.OpView) -> None:
    then, other = branch.regions
    if not len(other.blocks):
        with ir.InsertionPoint(other.blocks.append()):
            scf.yield_([])
    for way in (then, other):
        _wait_in(way.blocks[0])


def _wait() -> None:
    """The intrinsic would do, but LLVM takes it to leave memory alone, and moves loads across."""
    llvm.inline_asm(None, [], WAIT, "~{memory}", has_side_effects=True)


def _may_access(op: ir.OpView) -> bool:
    """Whether it may touch memory that others see, or end the thread."""
    name = op.operation.name
    if len(op.regions):
        return any(_may_access(inner) for r in op.regions for b in r.blocks for inner in b)
    if name.startswith(_OF_BLOCK):
        return False
    if name.startswith("llvm.") and name not in _UNKNOWN:
        return name != _ADDRESSING and any(str(v.type) == _GLOBAL for v in op.operands)
    return True
