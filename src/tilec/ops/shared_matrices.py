"""Matrices between shared memory and registers: `ldmatrix` and `stmatrix`.

A fragment's registers are taken as the words that they fill, so that nothing is packed or unpacked
where an instruction for matrices gives what another takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import llvm, nvvm, scf, vector
from tilec.layout.matrix_access import WORD_BYTES, MatrixAccesses
from tilec.ops.between_threads import Address, takes_part
from tilec.ops.fragments import bit_width, pack, select_registers, unpack
from tilec.ops.lowering import Lowering


def read_matrices(
    buffer: ir.Value, accesses: MatrixAccesses, element: ir.Type, lowering: Lowering
) -> ir.Value:
    """What each thread loads, as in memory: the registers of all accesses in ascending order."""
    size = bit_width(element) // 8
    address = Address(buffer, accesses, size, lowering)
    per_word = WORD_BYTES // size
    found: dict[tuple[int, ...], ir.Value] = {}
    for access in accesses.accesses:
        loaded = _load(address.of(access.xor, access.add), accesses)
        for number, word in enumerate(loaded):
            found[access.registers[number * per_word : (number + 1) * per_word]] = word
    held = sorted(found)
    registers = [register for word in held for register in word]
    kind = ir.VectorType.get([len(registers)], element)
    fragment = vector.bitcast(kind, pack([found[word] for word in held]))
    places = {register: place for place, register in enumerate(registers)}
    return select_registers(fragment, [places[r] for r in sorted(registers)])


def write_matrices(
    buffer: ir.Value, accesses: MatrixAccesses, fragment: ir.Value, lowering: Lowering
) -> None:
    """Store a fragment, its elements as in memory, where the plan says."""
    taking_part = takes_part(accesses, lowering)
    if taking_part is None:
        _write(buffer, accesses, fragment, lowering)
        return
    # A whole warp takes part or none of it.
    branch = scf.IfOp(taking_part)
    with ir.InsertionPoint(branch.then_block):
        _write(buffer, accesses, fragment, lowering)
        scf.yield_([])


def _write(
    buffer: ir.Value, accesses: MatrixAccesses, fragment: ir.Value, lowering: Lowering
) -> None:
    element = ir.VectorType(fragment.type).element_type
    size = bit_width(element) // 8
    registers = [register for access in accesses.accesses for register in access.registers]
    words = ir.VectorType.get(
        [len(registers) * size // WORD_BYTES], ir.IntegerType.get_signless(8 * WORD_BYTES)
    )
    held = unpack(_bitcast(words, select_registers(fragment, registers)))
    address = Address(buffer, accesses, size, lowering)
    for number, access in enumerate(accesses.accesses):
        first = number * accesses.matrices
        nvvm.stmatrix(
            address.of(access.xor, access.add),
            held[first : first + accesses.matrices],
            *_form(accesses),
        )


def _load(pointer: ir.Value, accesses: MatrixAccesses) -> Sequence[ir.Value]:
    word = ir.IntegerType.get_signless(8 * WORD_BYTES)
    count = accesses.matrices
    words = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>") if count > 1 else word
    loaded = nvvm.ldmatrix(words, pointer, count, *_form(accesses))
    if count == 1:
        return [loaded]
    return [llvm.extractvalue(word, loaded, ir.DenseI64ArrayAttr.get([i])) for i in range(count)]


def _form(accesses: MatrixAccesses) -> tuple[ir.Attribute, ir.Attribute, ir.Attribute]:
    """The attributes `layout`, `shape` and `eltType`."""
    texts = (
        f"#nvvm.mma_layout<{'col' if accesses.transposed else 'row'}>",
        "#nvvm.ld_st_matrix_shape<m = 8, n = 8>",
        "#nvvm.ld_st_matrix_elt_type<b16>",
    )
    layout, shape, element = map(ir.Attribute.parse, texts)
    return layout, shape, element


def _bitcast(kind: ir.Type, fragment: ir.Value) -> ir.Value:
    return fragment if fragment.type == kind else vector.bitcast(kind, fragment)
