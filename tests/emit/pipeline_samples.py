"""A manifest whose pipelines have between them everything that their launchers must know."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.emit.samples import everything
from tests.unit.manifest_samples import add_kernel, mapped_kernel
from tests.unit.pipeline_samples import sums
from tilec.artifact.manifest import Kernel, Manifest
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.signature import Parameter, Requirement

_FAMILY = ("matmul__bf16_128_256", "matmul__bf16_64_64", "matmul__bf16_64_128")
_SCALARS = {
    "bool_": ("lt", "A", 5), "i8_": ("sub", "n", 1), "u8_": ("min", "A", 200), "i16_": ("neg", "n"),
    "u16_": 3, "i32_": "n", "u32_": ("mul", "A", "B"), "i64_": ("i64", ("shl", "n", 40)),
    "u64_": 2**63, "usize_": ("ceildiv", "A", 7), "f16_": 0.5, "bf16_": -0.25,
    "f32_": ("max", "s", 1.5),
    "f64_": ("select", ("gt", "n", 2), "s", 0.125),
}  # fmt: skip


def following_kernel() -> Kernel:
    """As `scaled`, but that it may start while the kernel before it still runs."""
    kernel = mapped_kernel()
    variants = tuple(
        replace(one, symbol=one.symbol.replace("scaled", "following"), starts_early=True)
        for one in kernel.variants
    )
    return replace(kernel, name="following", symbol="following__bf16", variants=variants)


def launch(
    kernel: str, instances: tuple[str, ...], line: int, after: tuple[int, ...], **given: object
) -> PipelineLaunch:
    """One of a kernel whose arguments are names of tensors, (a name, axes), or values."""
    return PipelineLaunch(
        kernel, instances, tuple(_argument(*pair) for pair in given.items()), after, "p.tile", line
    )


def _argument(parameter: str, given: object) -> Argument:
    if isinstance(given, Argument):
        return replace(given, parameter=parameter)
    return Argument(parameter, given)


def value(expression: object) -> Argument:
    return Argument("", value=expression)


def pipeline(name: str, parameters, dims, temporaries, launches, **changes) -> Pipeline:
    made = Pipeline(
        name=name,
        symbol=name,
        generics=(),
        documentation=f"Runs {name}.",
        line=1,
        parameters=parameters,
        dims=dims,
        requires=(),
        temporaries=temporaries,
        launches=launches,
        coverage=(),
    )
    return replace(made, **changes)


def layers() -> Pipeline:
    """y = scaled(x v) w by matrix products of which each choice is of other instances."""
    return pipeline(
        "layers",
        (
            Parameter("y", "tensor", "bf16", ("M", "N"), "mut"),
            Parameter("x", "tensor", "bf16", ("M", "K"), "shared"),
            Parameter("v", "tensor", "bf16", ("K", "H"), "shared"),
            Parameter("w", "tensor", "bf16", ("H", "N"), "shared"),
            Parameter("scale", "scalar", "f32"),
        ),
        ("M", "N", "K", "H"),
        (Temporary("h", "bf16", ("M", "H"), 0), Temporary("g", "bf16", ("M", "H"), 1)),
        (
            launch("matmul", _FAMILY, 11, (), c="h", a="x", b="v"),
            launch("following", ("following__bf16",), 12, (0,), y="g", x="h", scale=value("scale")),
            launch("matmul", _FAMILY[:2], 13, (1,), c="y", a="g", b="w"),
        ),
    )


def wide() -> Pipeline:
    """Four chains of three kernels side by side, and their sum; the later kernels start early."""
    follow = {"kernel": "following", "instances": ("following__bf16",)}
    launches: list[PipelineLaunch] = []
    for chain in "abcd":
        first = len(launches)
        launches += [
            launch(**follow, line=20, after=(), y=f"{chain}0", x="x", scale=value("scale")),
            launch(
                **follow, line=21, after=(first,), y=f"{chain}1", x=f"{chain}0", scale=value(2.0)
            ),
            launch(
                "scaled", ("scaled__bf16",), 22, (first + 1,), y=f"{chain}0", x=f"{chain}1",
                scale=value("scale"),
            ),
        ]  # fmt: skip
    launches.append(launch("clustered", ("clustered",), 23, (2, 5), c="e", a="a0", b="b0"))
    launches.append(launch("persistent", ("persistent",), 24, (8, 11, 12), c="y", a="c0", b="e"))
    names = [f"{chain}{i}" for chain in "abcd" for i in range(2)] + ["e"]
    return pipeline(
        "wide",
        (
            Parameter("y", "tensor", "bf16", ("M", "M"), "mut"),
            Parameter("x", "tensor", "bf16", ("M", "M"), "shared"),
            Parameter("scale", "scalar", "f32"),
        ),
        ("M",),
        tuple(Temporary(name, "bf16", ("M", "M"), i) for i, name in enumerate(names)),
        tuple(launches),
    )


def turned() -> Pipeline:
    """Axes in another order, scalars of all types by expressions, extents that may be negative."""
    scalars = {name: value(expression) for name, expression in _SCALARS.items()}
    return pipeline(
        "turned",
        (
            Parameter("z", "tensor", "u8", ("A", "B", "C", "D"), "mut"),
            Parameter("s", "scalar", "f32"),
            Parameter("n", "scalar", "i32"),
        ),
        ("A", "B", "C", "D"),
        (
            Temporary("t", "u8", ("A", ("sub", "B", 3), 2, ("mul", "C", "n")), 0),
            Temporary("u", "u8", ("B", "A", 1, "D"), 1),
        ),
        (
            launch("scalars", ("scalars",), 31, (), int=Argument("", "z", (2, 0, 1, 3)), **scalars),
            launch("scalars", ("scalars",), 32, (), int="t", **scalars),
            launch("scalars", ("scalars",), 33, (), int=Argument("", "u", (1, 0, 2, 3)), **scalars),
        ),
        requires=(Requirement("n < 120", ("lt", "n", 120), 30),),
    )


def doubled(element: str, instance: str, **changes) -> Pipeline:
    """z = x + x; one of several instances."""
    return pipeline(
        "doubled",
        (
            Parameter("z", "tensor", element, ("N",), "mut"),
            Parameter("x", "tensor", element, ("N",), "shared"),
        ),
        ("N",),
        (),
        (launch("add", (instance,), 41, (), z="z", x="x", y="x", scale=value(1.0)),),
        **changes,
    )


def counted() -> Pipeline:
    """Four copies, of which the second has no programs where `n` is 0. The last one waits for more
    than it reads."""
    copy = {"kernel": "copy", "instances": ("copy__i8",)}
    return pipeline(
        "counted",
        (
            Parameter("z", "tensor", "i8", ("M", 64), "mut"),
            Parameter("x", "tensor", "i8", ("M", 64), "shared"),
            Parameter("n", "scalar", "i8"),
        ),
        ("M",),
        tuple(Temporary(name, "i8", ("M", 64), slot) for slot, name in enumerate("abc")),
        (
            launch(**copy, line=51, after=(), target="a", source="x", count=value(1)),
            launch(**copy, line=52, after=(0,), target="b", source="a", count=value("n")),
            launch(**copy, line=53, after=(0,), target="c", source="a", count=value(1)),
            launch(**copy, line=54, after=(1, 2), target="z", source="b", count=value(1)),
        ),
    )


def apart() -> Pipeline:
    """Two rows of launches that never meet."""
    follow = {"kernel": "following", "instances": ("following__bf16",)}
    tensors = [Parameter(name, "tensor", "bf16", ("M", "K"), "mut") for name in ("y", "z", "w")]
    return pipeline(
        "apart",
        (*tensors, Parameter("x", "tensor", "bf16", ("M", "K"), "shared")),
        ("M", "K"),
        (),
        (
            launch(**follow, line=71, after=(), y="y", x="x", scale=value(1.0)),
            launch(**follow, line=72, after=(), y="z", x="x", scale=value(2.0)),
            launch(**follow, line=73, after=(0,), y="w", x="y", scale=value(3.0)),
        ),
    )


def tangled(seed: int) -> Pipeline:
    """Launches in an order that chance made, which their tensors would not ask for."""
    random = Random(seed)
    launches: list[PipelineLaunch] = []
    for number in range(16):
        earlier = sorted(random.sample(range(number), min(number, random.randrange(4))))
        kernel = random.choice(("following", "scaled"))
        launches.append(
            launch(
                kernel, (f"{kernel}__bf16",), 80 + number, tuple(earlier), y=f"t{number}", x="x",
                scale=value(1.0),
            )
        )  # fmt: skip
    return pipeline(
        f"tangled{seed}",
        (
            Parameter("y", "tensor", "bf16", ("M", "K"), "mut"),
            Parameter("x", "tensor", "bf16", ("M", "K"), "shared"),
        ),
        ("M", "K"),
        tuple(Temporary(f"t{i}", "bf16", ("M", "K"), i) for i in range(16)),
        tuple(launches),
    )


def totals() -> Pipeline:
    """Tensors without axes, given and temporary, beside others in one workspace."""
    total = {"kernel": "total", "instances": ("total",)}
    return pipeline(
        "totals",
        (
            Parameter("y", "tensor", "f32", (), "mut"),
            Parameter("start", "tensor", "f32", (), "shared"),
            Parameter("x", "tensor", "f32", ("N",), "shared"),
        ),
        ("N",),
        (
            Temporary("z", "f32", ("N",), 0),
            Temporary("s", "f32", (), 1),
            Temporary("t", "f32", (), 2),
        ),
        (
            launch("add", ("add__f32_1024",), 75, (), z="z", x="x", y="x", scale=value(1.0)),
            launch(**total, line=76, after=(0,), total="s", first="start", x="z"),
            launch(**total, line=77, after=(1,), total="t", first="s", x="x"),
            launch(**total, line=78, after=(1, 2), total="y", first="t", x="z"),
        ),
    )


def of_numbers(name: str, given: str, temporaries: tuple[Temporary, ...], **changes) -> Pipeline:
    """One launch that is given what is made of two scalars (`limits`)."""
    numbers = {
        **_SCALARS,
        **{f"{one}_": 1 for one in ("i8", "u8", "i16", "u16", "i32", "u32", "f64")},
        **{f"{one}_": 0.5 for one in ("f16", "bf16", "f32")},
        "bool_": False,
        "usize_": ("div", ("mul", "n", "m"), 3),
        "i64_": ("i64", ("mul", "n", "n")),
        "u64_": ("u64", ("sub", "m", "n")),
    }
    numbers.update(changes.pop("numbers", {}))
    scalars = {name: value(expression) for name, expression in numbers.items()}
    return pipeline(
        name,
        (
            Parameter("z", "tensor", "u8", ("A", "B", "C", "D"), "mut"),
            Parameter("n", "scalar", "usize"),
            Parameter("m", "scalar", "usize"),
        ),
        ("A", "B", "C", "D"),
        temporaries,
        (launch("scalars", ("scalars",), 91, (), int=given, **scalars),),
        **changes,
    )


def limited() -> Pipeline:
    """Numbers that do not fit in 64 bits are refused, or wrap in types that do."""
    return of_numbers("limited", "z", ())


def sized() -> Pipeline:
    """An extent and a condition that do not always fit."""
    small = Requirement("m + m < 2^62", ("lt", ("add", "m", "m"), 2**62), 90)
    return of_numbers(
        "sized",
        "t",
        (Temporary("t", "u8", (("add", "n", "n"), 1, 1, 1), 0),),
        requires=(small,),
        numbers={"usize_": "n", "i64_": ("i64", "m"), "u64_": 0},
    )


def mlp() -> Pipeline:
    """The pipeline of the documentation; its kernel does not matter."""
    return pipeline(
        "mlp",
        (
            Parameter("y", "tensor", "bf16", ("M", "N"), "mut"),
            Parameter("x", "tensor", "bf16", ("M", "K"), "shared"),
            Parameter("w", "tensor", "bf16", ("K", "N"), "shared"),
        ),
        ("M", "N", "K"),
        (),
        (launch("matmul", _FAMILY, 61, (), c="y", a="x", b="w"),),
    )


def partly() -> Pipeline:
    """As `mlp`, but that two of the three members of the family may be launched."""
    [one] = mlp().launches
    launches = (replace(one, instances=(_FAMILY[0], _FAMILY[1])),)
    return replace(mlp(), name="partly", symbol="partly", launches=launches)


def pipelined() -> Manifest:
    """`everything`, with pipelines."""
    base = everything()
    kernels = (*base.kernels, add_kernel(block=256), following_kernel())
    few = Requirement("N < 100", ("lt", "N", 100), 40)
    instances = (
        doubled("f32", "add__f32_256", symbol="doubled__small", requires=(few,)),
        doubled("f32", "add__f32_1024", symbol="doubled__f32"),
        doubled("bf16", "add__bf16_2048", symbol="doubled__bf16"),
    )
    pipelines = (
        sums(),
        layers(),
        wide(),
        turned(),
        counted(),
        apart(),
        totals(),
        limited(),
        sized(),
        mlp(),
        partly(),
        tangled(1),
        tangled(2),
        *instances,
    )
    return replace(base, kernels=kernels, pipelines=pipelines)
