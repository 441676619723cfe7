"""The least that a kernel must move, by its parameters and what is known of its accesses."""

from __future__ import annotations

from dataclasses import replace

from manifest_samples import add_kernel, copy_kernel

from tilec.artifact.expression import evaluate
from tilec.artifact.floor import Transfer, floor_of
from tilec.artifact.manifest import Access
from tilec.artifact.signature import Coverage, Parameter


def test_inputs_are_read_and_outputs_are_written_once():
    floor = floor_of(add_kernel("bf16"))
    moved = [(one.tensor, one.direction) for one in floor.transfers]
    assert moved == [("z", "written"), ("x", "read"), ("y", "read")]
    assert [evaluate(one.bytes, {"N": 100}) for one in floor.transfers] == [200] * 3
    assert floor.partial == ()


def test_static_extents_are_part_of_the_number():
    [read] = floor_of(copy_kernel()).transfers
    assert read == Transfer("source", "read", ("mul", 64, "M"))


def test_what_is_written_in_part_has_no_number():
    assert floor_of(copy_kernel()).partial == ("target",)


def test_an_output_that_is_read_first_is_read_and_written():
    kernel = replace(add_kernel(), coverage=(Coverage("z", writes_all=True, reads_first=True),))
    directions = [one.direction for one in floor_of(kernel).transfers if one.tensor == "z"]
    assert directions == ["read", "written"]


def test_rows_that_indices_choose_have_no_number():
    table = Parameter("table", "tensor", "f32", ("N",), "shared")
    kernel = add_kernel()
    kernel = replace(
        kernel,
        parameters=(*kernel.parameters, table),
        accesses=(*kernel.accesses, Access("add.tile", 9, 9, "gather", "table", "in-kernel")),
    )
    assert floor_of(kernel).partial == ("table",)


def test_a_tensor_that_nobody_touches_is_not_moved():
    kernel = replace(add_kernel(), accesses=())
    assert [one.tensor for one in floor_of(kernel).transfers] == ["z"]
