"""Arguments of kernels at random: mostly right, some with one thing wrong."""

from __future__ import annotations

import math
from random import Random

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.manifest import Kernel
from tilec.artifact.signature import Parameter
from tilec.runtime.array import Array

_EXTENTS = (0, 1, 2, 3, 7, 8, 16, 63, 64, 65, 96, 100, 127, 128, 129, 256, 500, 1000, 1024, 4096)
_RARE = (70_000, 2**20, 2**31 + 8, 2**40, 2**40 + 1)
_NUMBERS = (0, 1, 2, 3, 5, 100, 127)
_BASE = 2**34  # bytes from one tensor to the next: apart, unless something is done to them


def arguments_of(kernel: Kernel, random: Random, is_spoilt: bool) -> list[object]:
    """What a caller may pass; if spoilt, one tensor or scalar is changed in some way."""
    dims = {dim: _extent(random) for dim in kernel.dims}
    given: list[object] = []
    for number, parameter in enumerate(kernel.parameters):
        if parameter.is_tensor:
            given.append(_tensor(parameter, number + 1, dims, random))
        else:
            given.append(_number(parameter.element, random))
    tensors = [i for i, one in enumerate(given) if isinstance(one, Array)]
    if is_spoilt and tensors:
        chosen = random.choice(tensors)
        given[chosen] = _spoilt(given[chosen], given[random.choice(tensors)], random)
    return given


def _extent(random: Random) -> int:
    return random.choice(_RARE if random.random() < 0.03 else _EXTENTS)


def _tensor(parameter: Parameter, number: int, dims: dict[str, int], random: Random) -> Array:
    shape = tuple(x if isinstance(x, int) else dims[x] for x in parameter.extents)
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.insert(0, stride)
        stride *= max(extent, 1)
        if random.random() < 0.3:
            multiple = random.choice((1, 2, 8, 64))
            stride = -(-(stride + random.choice((0, 1, 8))) // multiple) * multiple
    size = ELEMENT_BYTES[parameter.element]
    offset = random.choice((0, 0, 0, 128, 32, 16, 8, 4, size))
    return Array(
        _BASE * number + offset // size * size, parameter.element, shape, tuple(strides), 0
    )


def _spoilt(array: object, other: object, random: Random) -> Array:
    assert isinstance(array, Array) and isinstance(other, Array)
    axis = random.randrange(len(array.shape) or 1)

    def changed(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
        return (*numbers[:axis], number, *numbers[axis + 1 :])

    of_any = (
        lambda: array._replace(element=random.choice(("f64", "i64", "u8", "f8e4m3"))),
        lambda: array._replace(shape=(*array.shape, 2), strides=(*array.strides, 1)),
        lambda: array._replace(pointer=array.pointer + random.choice((1, 2, 4, 8))),
        lambda: array._replace(pointer=0),
        lambda: array._replace(device=1),
        lambda: array._replace(
            pointer=other.pointer + random.choice((0, 8, 16, 64, 640, -16, -64, 4096))
        ),
    )
    of_axes = (
        lambda: array._replace(shape=array.shape[1:], strides=array.strides[1:]),
        lambda: array._replace(shape=changed(array.shape, array.shape[axis] + 1)),
        lambda: array._replace(shape=changed(array.shape, 0)),
        lambda: array._replace(strides=changed(array.strides, -array.strides[axis])),
        lambda: array._replace(strides=changed(array.strides, 0)),
        lambda: array._replace(strides=changed(array.strides, array.strides[axis] + 3)),
    )
    return random.choice((*of_any, *(of_axes if array.shape else ())))()


def hostile_arguments_of(kernel: Kernel, random: Random) -> list[object]:
    """Tensors as no caller means them: numbers at the ends of their types, or near."""
    given = arguments_of(kernel, random, is_spoilt=False)
    tensors = [i for i, one in enumerate(given) if isinstance(one, Array)]
    for _ in range(random.choice((1, 1, 2, 3))):
        chosen = random.choice(tensors)
        array = given[chosen]
        assert isinstance(array, Array)
        given[chosen] = _hostile(array, random)
    if random.random() < 0.5:
        return given
    return [
        one if isinstance(one, Array) else _at_an_end(parameter.element, random)
        for one, parameter in zip(given, kernel.parameters, strict=True)
    ]


_ENDS = (
    -(2**63), -(2**63) + 1, -(2**62), -(2**40), -2, -1, 0, 1, 2, 2**31, 2**40, 2**40 + 1, 2**60,
    2**61, 2**62, 2**63 - 2, 2**63 - 1,
)  # fmt: skip
_ADDRESSES = (0, 1, 2, 3, 2**63 - 1, 2**63, 2**63 + 4, 2**64 - 4096, 2**64 - 16, 2**64 - 1)


# Each is a number of f32, so that all languages pass it on as it is.
_REALS = (
    0.0, -0.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**-126), 2.0**-24, 2.0**-25, 65504.0,
    65519.99609375, 65520.0, -65520.0, 3.3895313892515355e38, 3.4028234663852886e38,
    1.0009765625, 1.00048828125, 1.001953125, 1.00390625,
)  # fmt: skip


def _at_an_end(element: str, random: Random) -> object:
    """A number of a type that is its smallest or its largest, or is rounded as few are."""
    if element == "bool":
        return random.random() < 0.5
    if element in ("f16", "bf16", "f32", "f64"):
        return random.choice(_REALS)
    bits = 64 if element == "usize" else int(element[1:])
    least = -(2 ** (bits - 1)) if element[0] == "i" else 0
    most = 2 ** (bits - (element[0] == "i" or element == "usize")) - 1
    return random.choice((least, least + 1, 0, 1, most - 1, most))


def _hostile(array: Array, random: Random) -> Array:
    """The same with one address, one stride or one extent that is odd, or all of them."""
    rank = len(array.shape)

    def with_ends(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
        changed = set(random.sample(range(rank), min(count, rank)))
        return tuple(random.choice(_ENDS) if i in changed else x for i, x in enumerate(numbers))

    kind = random.randrange(6)
    if kind == 0:
        return array._replace(pointer=random.choice(_ADDRESSES))
    if kind == 1:
        return array._replace(strides=with_ends(array.strides, 1))
    if kind == 2:
        return array._replace(strides=with_ends(array.strides, rank))
    if kind == 3:
        return array._replace(shape=with_ends(array.shape, 1))
    if kind == 4:  # one that has no elements may lie anywhere
        shape = tuple(0 if i == random.randrange(rank) else x for i, x in enumerate(array.shape))
        return array._replace(
            pointer=random.choice(_ADDRESSES), shape=shape, strides=with_ends(array.strides, rank)
        )
    return array._replace(
        pointer=random.choice(_ADDRESSES), shape=with_ends(array.shape, 1),
        strides=with_ends(array.strides, rank),
    )  # fmt: skip


def _number(element: str, random: Random) -> object:
    if element == "bool":
        return random.random() < 0.5
    if element in ("f16", "bf16", "f32", "f64"):
        return random.choice((0.0, -0.0, 1.0, 0.5, -2.25, 1 / 1024, 100.0, 2.0**-20))
    return random.choice(_NUMBERS)
