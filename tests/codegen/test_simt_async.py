"""What the simulator finds: a program that loses one of its waits, arrivals or fences is at fault.

And barriers in memory, as the PTX ISA writes them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lowered import ALIGNED, FIRST_ADDRESS, program
from mlir import ir
from overlapped import EARLY, LATE, Timing, small, wide
from simt import Code
from simt_barriers import MBarrier
from simt_copies import PIECE, MappedTensor
from simt_memory import SimtError

from tilec.ir.walk import operations
from tilec.layout.swizzled import SwizzledTile

TEXT = """#[hint(stages = 2, cluster = 1)]
#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 128, 32>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, 128, 32>::zeros();
    for k in 0..K.div_ceil(16) {
        sum = dot(x.load::<128, 16>([z.id(0), k]), y.load::<16, 32>([k, z.id(1)]), sum);
    }
    z.store(sum.t().flip::<1>().t());
}"""

# Each loses all of the operations of a name (or the first, or last of them).
ALL, FIRST, LAST = slice(None), slice(1), slice(-1, None)
LOSSES: list[tuple[str, slice, str]] = [
    ("nvvm.mbarrier.init", FIRST, "there is no barrier"),
    ("nvvm.fence.mbarrier.init", ALL, "may not have seen it made"),
    ("nvvm.barrier", FIRST, "may not have seen it made"),
    ("nvvm.barrier", LAST, "may not have seen it made"),
    ("nvvm.barrier.arrive", ALL, "nobody can go on"),
    ("nvvm.mbarrier.arrive.expect_tx", ALL, "nobody can go on"),
    ("scf.while", FIRST, "have not waited|what nobody wrote|nobody said so"),
    ("scf.while", LAST, "nobody said so|is under way reads|have not waited|arrive at"),
    ("nvvm.inline_ptx", FIRST, "nobody can go on"),
    ("nvvm.wgmma.fence.aligned", ALL, "without a fence"),
    ("nvvm.wgmma.commit.group.sync.aligned", ALL, "is under way reads"),
    ("nvvm.wgmma.wait.group.sync.aligned", ALL, "nobody said so|is under way reads"),
    ("nvvm.cp.async.bulk.tensor.shared.cluster.global", FIRST, "nobody can go on"),
    ("nvvm.barrier", slice(1, -1), "without a barrier"),
]


@pytest.mark.parametrize("timing", [LATE, EARLY, Timing(seed=5, split=True)], ids=str)
@pytest.mark.parametrize(("name", "which", "told"), LOSSES, ids=str)
def test_what_is_left_out_is_found(name: str, which: slice, told: str, timing: Timing) -> None:
    def lose(found: list) -> None:
        for op in found[which]:
            op.operation.erase()

    with pytest.raises(SimtError, match=told):
        _run(name, lose, timing)


@pytest.mark.parametrize("timing", [LATE, EARLY, Timing(seed=5, split=True)], ids=str)
def test_a_wait_for_one_product_too_few_is_found(timing: Timing) -> None:
    def change(found: list) -> None:
        for op in found:
            op.attributes["group"] = ir.IntegerAttr.get(op.attributes["group"].type, 2)

    with pytest.raises(SimtError, match=r"nobody said so|is under way reads"):
        _run("nvvm.wgmma.wait.group.sync.aligned", change, timing)


@pytest.mark.parametrize("timing", [LATE, EARLY, Timing(seed=5, split=True)], ids=str)
def test_what_is_as_it_was_is_right(timing: Timing) -> None:
    _run("nvvm.barrier", lambda _: None, timing)


def _run(name: str, change: Callable[[list], None], timing: Timing) -> None:
    """Changes the operations of a name before the kernel runs; then it gives the product."""
    x, y, z = small(128, 16 * 7), small(16 * 7, 32), small(128, 32, element="f32")
    with program(TEXT) as threads:
        point, _ = threads.lowered("k", ALIGNED)
        function = list(threads.body.operations)[-1]
        found = [op for op in operations(function) if op.operation.name == name]
        assert found, f"no {name}"
        change(found)
        threads._lowered["k", ALIGNED] = point, Code(function)
        threads.run("k", {"x": x, "y": y, "z": z}, ALIGNED, timing=timing)
    np.testing.assert_array_equal(wide(z), (wide(x) @ wide(y))[::-1])


# ---- barriers ------------------------------------------------------------------------------------


def test_a_phase_ends_with_the_last_arrival_and_the_last_byte() -> None:
    barrier = MBarrier(0, 2, 0)
    assert barrier.is_over(1) and not barrier.is_over(0)
    barrier.arrive({1: 3})
    barrier.complete(64, {-1: 0})  # bytes may come before they are expected
    barrier.expect(64)
    assert not barrier.is_over(0)
    barrier.expect(32)
    barrier.arrive({2: 5})
    assert not barrier.is_over(0)
    with pytest.raises(SimtError, match="more than 2 arrive"):
        barrier.arrive({})
    barrier.complete(32, {-2: 0})
    assert barrier.is_over(0) and not barrier.is_over(1)
    assert barrier.ended == {1: 3, -1: 0, 2: 5, -2: 0}
    barrier.arrive({})
    barrier.arrive({})
    assert barrier.phase == 2


# ---- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(16, 64), (8, 32), (4, 16), (3, 2, 64), (64,)], ids=str)
@pytest.mark.parametrize("first", [0, -1, 3])
def test_copies_lie_as_tiles_do(shape: tuple[int, ...], first: int) -> None:
    array = np.arange(1, 1 + 20 ** len(shape), dtype=np.int16).reshape((20,) * len(shape))
    array = np.concatenate([array] * 4, axis=-1)
    tile = SwizzledTile.of(shape, 2)
    assert tile is not None and tile.box == shape
    strides = tuple(160 * 20**n for n in reversed(range(len(shape) - 1)))
    tensor = MappedTensor(array, FIRST_ADDRESS, strides, tile.box, tile.swizzle)
    memory = np.zeros((4096 // PIECE, PIECE), np.uint8)
    memory[tensor.pieces(1024)] = tensor.content((first,) * len(shape))
    for place in np.ndindex(shape):
        start = 1024 + tile.offset_of(place)
        value = memory.reshape(-1)[start : start + 2].view(np.int16)[0]
        at = tuple(first + i for i in place)
        inside = all(0 <= i < n for i, n in zip(at, array.shape, strict=True))
        assert value == (array[at] if inside else 0)
