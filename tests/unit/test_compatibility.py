"""What a new build means for callers: each kind of change, made by editing a manifest."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from family_samples import of_family, product
from manifest_samples import add_kernel, copy_kernel, manifest, mapped_kernel, with_variants
from pipeline_samples import sums, with_pipelines

from tilec.artifact.family import Family, Measured, Table
from tilec.artifact.manifest import Kernel, Manifest, Precondition, TensorMap, Variant
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.signature import Coverage, Parameter, Requirement
from tilec.compatibility.compare import changes_between
from tilec.compatibility.implied import implied
from tilec.emit.header.signature import signature_of
from tilec.emit.sets import launch_sets

ADD = "add__f32_1024"


def changes(old, new):
    """(kind, about, message) of each change of two kernels, or of two manifests."""
    pair = [one if isinstance(one, Manifest) else manifest(one) for one in (old, new)]
    found = changes_between([pair[0]], [pair[1]])
    return [(change.kind, change.about, change.message) for change in found]


def kinds(old, new):
    return {kind for kind, _, _ in changes(old, new)}


def with_parameter(kernel, number, **edits):
    parameters = list(kernel.parameters)
    parameters[number] = replace(parameters[number], **edits)
    return replace(kernel, parameters=tuple(parameters))


def with_requires(kernel, *expressions):
    made = tuple(Requirement(str(expression), expression, 1) for expression in expressions)
    return replace(kernel, requires=made)


def with_variant(kernel, number, **edits):
    variants = list(kernel.variants)
    variants[number] = replace(variants[number], **edits)
    return replace(kernel, variants=tuple(variants))


def test_what_is_the_same_changes_nothing():
    assert changes(manifest(), manifest()) == []
    assert changes(with_pipelines(), with_pipelines()) == []


ADDED = add_kernel()
COPY = copy_kernel()
MATRIX = replace(
    ADDED,
    parameters=(
        Parameter("c", "tensor", "f32", ("M", "N"), "mut"),
        Parameter("a", "tensor", "f32", ("M", "K"), "shared"),
        Parameter("b", "tensor", "f32", ("K", "N"), "shared"),
        Parameter("w", "tensor", "f32", (64,), "shared"),
    ),
    dims=("M", "N", "K"),
    grid=("M",),
    coverage=(Coverage("c", True, False),),
)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (replace(ADDED, parameters=ADDED.parameters[:3]),
         "takes 3 arguments (z, x, y), was 4"),
        (replace(ADDED, parameters=tuple(ADDED.parameters[i] for i in (1, 2, 0, 3))),
         "takes its arguments in the order x, y, z, scale"),
        (with_parameter(ADDED, 1, name="in"),
         "`x` is called `in`: calls that give it by name are refused"),
        (with_parameter(ADDED, 1, element="f16"),
         "`x` is a tensor of `f16` with 1 axis, was a tensor of `f32` with 1 axis"),
        (with_parameter(ADDED, 1, extents=("N", "N")),
         "`x` is a tensor of `f32` with 2 axes, was a tensor of `f32` with 1 axis"),
        (with_parameter(ADDED, 3, element="f64"),
         "`scale` is a number of type `f64`, was a number of type `f32`"),
        (with_parameter(ADDED, 1, own="mut"),
         "`x` is written: it must overlap no other argument"),
        (with_parameter(ADDED, 0, own="shared", block=()),
         "`z` is read only: nothing is written to it"),
        (with_parameter(ADDED, 1, extents=(64,)),
         "the extent of axis 0 of `x` is 64, was `N`"),
        (with_requires(ADDED, ("gt", "N", 0)), "requires `('gt', 'N', 0)` (here `N > 0`)"),
        (replace(ADDED, coverage=(Coverage("z", False, False),)),
         "may leave elements of `z` as they were: it wrote all of them"),
        (replace(ADDED, coverage=(Coverage("z", True, True),)),
         "may read `z` before it writes it: its values matter"),
        (replace(ADDED, name="sub"), "is an instance of `sub`, was of `add`"),
        (replace(ADDED, variants=ADDED.variants[:1]),
         "no variant takes all arguments that `add__f32_1024` took"),
        (with_variant(ADDED, 1, cluster=(2, 1, 1)),
         "no variant takes all arguments that `add__f32_1024` took"),
    ],
)  # fmt: skip
def test_what_breaks_callers(new, message):
    assert ("breaking", ADD, message) in changes(ADDED, new)


def test_an_equality_that_is_new_breaks_callers():
    square = with_parameter(MATRIX, 2, extents=("K", "K"))
    square = replace(square, parameters=(
        replace(MATRIX.parameters[0], extents=("M", "K")), *square.parameters[1:],
    ), dims=("M", "K"))  # fmt: skip
    found = changes(MATRIX, square)
    assert ("breaking", ADD, "the extent of axis 1 of `a` is that of the extent of axis 1 of `c` "
            "(`K`), was `K`") in found  # fmt: skip
    looser = {message for kind, _, message in changes(square, MATRIX) if kind == "compatible"}
    assert "the extent of axis 0 of `b` need not be that of the extent of axis 1 of `c`" in looser
    assert "breaking" not in kinds(square, MATRIX)


def test_another_name_of_an_extent_is_no_change():
    renamed = replace(
        ADDED,
        parameters=tuple(
            replace(p, extents=tuple("Len" for _ in p.extents)) for p in ADDED.parameters
        ),
        dims=("Len",),
        grid=(("ceildiv", "Len", 1024),),
    )
    assert changes(ADDED, with_variants(renamed)) == []


def test_a_fixed_extent_that_may_be_any_is_compatible_for_those_who_are_checked():
    old = with_parameter(with_parameter(COPY, 0, extents=("M", 64)), 1, extents=("M", 64))
    new = with_parameter(with_parameter(COPY, 0, extents=("M", "N")), 1, extents=("M", "N"))
    found = changes(old, new)
    assert ("compatible", "copy__i8",
            "the extent of axis 1 of `target` may be any number, was 64") in found  # fmt: skip
    assert "breaking" not in kinds(old, new) and "breaking" in kinds(new, old)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ((), (("le", "N", 64),), "breaking"),
        ((("le", "N", 64),), (), "compatible"),
        ((("le", "N", 64),), (("le", "N", 128),), "compatible"),
        ((("le", "N", 128),), (("le", "N", 64),), "breaking"),
        ((("lt", "N", 64),), (("le", "N", 64),), "compatible"),
        ((("le", "N", 64),), (("lt", "N", 64),), "breaking"),
        ((("eq", ("rem", "N", 64), 0),), (("eq", ("rem", "N", 32), 0),), "compatible"),
        ((("eq", ("rem", "N", 32), 0),), (("eq", ("rem", "N", 64), 0),), "breaking"),
        ((("and", ("gt", "N", 5), ("le", "N", 9)),), (("ge", "N", 5),), "compatible"),
        ((("gt", "N", 5),), (("or", ("gt", "N", 4), ("eq", "N", 0)),), "compatible"),
        ((("ge", 64, "N"),), (("le", "N", 64),), None),
        (
            (("or", ("lt", "N", 5), ("eq", ("rem", "N", 64), 0)),),
            (("or", ("eq", ("rem", "N", 32), 0), ("le", "N", 9)),),
            "compatible",
        ),
        (
            (("or", ("lt", "N", 5), ("and", ("gt", "N", 8), ("lt", "N", 20))),),
            (("lt", "N", 25),),
            "compatible",
        ),
        *(
            ((same,), (same,), None)
            for same in (
                ("or", ("eq", "N", 0), ("ge", "N", 64)),
                ("or", ("gt", ("div", 64, "N"), 1), ("ge", "N", 64)),
                ("not", ("eq", "N", 3)),
                ("ne", ("mul", "N", "N"), 4),
            )
        ),
    ],
)
def test_a_stricter_requirement_breaks_and_a_looser_one_does_not(old, new, kind):
    found = kinds(with_requires(ADDED, *old), with_requires(ADDED, *new))
    assert found == ({kind} if kind else set())


@pytest.mark.parametrize("bound", [-1, 0, 2])
@pytest.mark.parametrize("fact", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("asked", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_what_is_implied_holds(bound, fact, asked):
    compare = {
        "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    }  # fmt: skip
    if implied((asked, "x", 0), [(fact, "x", bound)]):
        values = [x / 2 for x in range(-8, 9)]
        assert all(compare[asked](x, 0) for x in values if compare[fact](x, bound))
    if (asked, fact) in (("le", "lt"), ("ge", "eq")) and bound == 0:
        assert implied((asked, "x", 0), [(fact, "x", bound)])


def test_what_follows_behind_a_division_by_zero_does_not_follow():
    known = [("gt", "N", 3)]
    assert implied(("or", ("gt", ("div", 5, 2), "N"), ("gt", "N", 2)), known)
    assert implied(("or", ("gt", "N", 2), ("gt", ("div", 5, "N"), 1)), known)
    assert not implied(("or", ("gt", ("div", 5, "M"), 1), ("gt", "N", 2)), known)


def test_what_follows_from_each_alternative_follows():
    either = ("or", ("lt", "N", 5), ("eq", "N", 8))
    assert implied(("lt", "N", 9), [either])
    assert not implied(("lt", "N", 8), [either])
    assert not implied(("or", ("gt", ("div", 8, "N"), 0), ("lt", "N", 9)), [either])


def test_what_follows_behind_what_may_be_too_large_does_not_follow():
    known = [("gt", "N", 3)]
    for first in (("lt", ("mul", "N", "N"), 0), ("lt", ("div", "N", -1), 0)):
        assert not implied(("or", first, ("gt", "N", 2)), known)


def test_what_extents_were_is_known_of_conditions():
    """Of 64, whatever holds for it; of two that were equal, what was asked of the other."""
    fixed = replace(ADDED, parameters=tuple(
        replace(p, extents=(64,)) if p.is_tensor else p for p in ADDED.parameters
    ), dims=(), grid=(1,))  # fmt: skip
    multiple = ("eq", ("rem", "N", 32), 0)
    assert "breaking" not in kinds(with_variants(fixed), with_requires(ADDED, multiple))
    assert "breaking" in kinds(with_variants(fixed), with_requires(ADDED, ("gt", "N", 64)))
    looser = replace(with_parameter(ADDED, 2, extents=("M",)), dims=("N", "M"))
    looser = with_requires(with_variants(looser), ("eq", ("rem", "M", 32), 0))
    assert "breaking" not in kinds(with_requires(ADDED, multiple), looser)
    equal = with_requires(replace(looser, requires=()), ("eq", "N", "M"))
    assert "breaking" not in kinds(equal, ADDED)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (replace(ADDED, grid=(("ceildiv", "N", 2048),)),
         "the grid is `N.div_ceil(2048)`, was `N.div_ceil(1024)`"),
        (with_variant(ADDED, 1, threads=256), "`add__f32_1024` has 256 threads, was 128"),
        (with_variant(ADDED, 1, dynamic_smem_bytes=1024),
         "`add__f32_1024` has 1024 bytes of dynamic shared memory, was 0"),
        (with_variant(ADDED, 0, preconditions=()), "`add__f32_1024__v16` has other preconditions"),
        (with_variant(ADDED, 1, starts_early=True), "`add__f32_1024` may start early"),
        (replace(ADDED, variants=ADDED.variants[1:]), "the variant `add__f32_1024__v16` is gone"),
        (with_parameter(ADDED, 0, own="atomic", block=()), "`z` is owned `atomic`, was `part`"),
    ],
)  # fmt: skip
def test_what_launchers_must_be_made_anew_for(new, message):
    assert ("recompile", ADD, message) in changes(ADDED, new)
    assert "breaking" not in kinds(ADDED, new)


def test_other_slots_are_for_launchers():
    swapped = replace(MATRIX, dims=("K", "N", "M"))
    old, new = (
        with_variant(kernel, 0, slots=tuple(_slots(kernel))) for kernel in (MATRIX, swapped)
    )
    [(kind, _, message)] = changes(old, new)
    assert kind == "recompile" and message.endswith("extent `K`, extent `N`, extent `M`")


def _slots(kernel):
    from tilec.artifact.abi import slots_of

    return slots_of(kernel.parameters, kernel.dims)


def test_less_alignment_is_compatible_for_those_who_are_checked():
    tied = with_variant(ADDED, 1, preconditions=(Precondition("x", 16, 1),))
    assert kinds(tied, ADDED) == {"recompile"}
    assert kinds(ADDED, tied) == {"recompile", "breaking"}
    wider = with_variant(ADDED, 1, preconditions=(Precondition("x", 32, 1),))
    assert "breaking" in kinds(tied, wider) and "breaking" not in kinds(wider, tied)


def test_a_map_that_writes_asks_for_whole_pieces():
    read_only, writing = (
        replace(kernel, variants=kernel.variants[:1])
        for kernel in (
            mapped_kernel(tensor_maps=(TensorMap("y", (32, 64), 0, writes),))
            for writes in (False, True)
        )
    )
    assert kinds(read_only, writing) == {"recompile", "breaking"}
    assert kinds(writing, read_only) == {"recompile"}


@pytest.mark.parametrize("element", ["f64", "bf16", "i32", "bool"])
def test_a_name_without_a_function_breaks_those_who_call_it(element):
    other = replace(with_parameter(ADDED, 3, element=element), symbol="add__other")
    both = manifest(ADDED, other)
    [by_name] = [one for one in launch_sets(both) if one.name == "add"]
    gone = signature_of(by_name) is None
    assert gone == (element in ("i32", "bool"))
    assert any(kind == "breaking" for kind, *_ in changes(manifest(ADDED), both)) == gone
    assert "breaking" not in kinds(both, both)


def test_a_symbol_that_is_gone_breaks_and_a_new_one_does_not():
    one, both = manifest(ADDED), manifest(ADDED, COPY)
    assert changes(both, one) == [("breaking", "copy__i8", "is gone")]
    assert changes(one, both) == [("compatible", "copy__i8", "is new")]


def test_another_instance_that_is_tried_first_is_another_computation():
    near = replace(ADDED, symbol="add__near")
    told = ("breaking", "add", f"calls by this name may launch `add__near`, and launched `{ADD}`")
    assert told in changes(manifest(ADDED), manifest(near, ADDED))
    assert told in changes(manifest(ADDED, near), manifest(near, ADDED))
    assert "breaking" not in kinds(manifest(ADDED), manifest(ADDED, near))
    family = Family("add__f32", "add", ("N",), ("add__near", ADD))
    of_one = replace(manifest(near, ADDED), families=(family,))
    assert kinds(manifest(ADDED), of_one) == {"compatible"}


def test_a_family_that_is_gone_breaks_its_callers():
    members = product(64, 64, 300), product(128, 128, 500)
    family = of_family(*members)
    without = replace(family, families=())
    name = family.families[0].name
    assert ("breaking", name, "is no family any more") in changes(family, without)
    assert ("compatible", name, "is a new family") in changes(without, family)


def test_targets():
    for_80, for_90, for_90a = (
        replace(manifest(), target=target) for target in ("sm_80", "sm_90", "sm_90a")
    )
    assert changes_between([for_80, for_90a], [for_90a])[0].kind == "breaking"
    assert {c.kind for c in changes_between([for_90a], [for_90a, for_80])} == {"compatible"}
    assert {c.kind for c in changes_between([for_90a], [for_90])} == {"compatible"}
    assert "breaking" in {c.kind for c in changes_between([for_90], [for_90a])}


def test_each_change_is_told_once_for_all_targets():
    old, new = manifest(), manifest(ADDED)
    pairs = [[replace(one, target=t) for t in ("sm_80", "sm_90a")] for one in (old, new)]
    assert [c.message for c in changes_between(*pairs)] == ["is gone"]


def test_pipelines():
    old = with_pipelines()
    first, *rest = sums().launches
    assert changes(old, replace(old, pipelines=())) == [("breaking", "sums", "is gone")]
    longer = replace(sums(), launches=(first, *rest, rest[-1]))
    assert changes(old, with_pipelines(longer)) == [("recompile", "sums", "has 6 launches, was 5")]
    freed = replace(sums(), launches=(first, replace(rest[0], after=(0,)), *rest[1:]))
    assert changes(old, with_pipelines(freed)) == [
        ("recompile", "sums", "launch 1 comes after [0], was none")
    ]
    moved = replace(sums(), launches=tuple(replace(one, line=1) for one in sums().launches))
    assert changes(old, with_pipelines(moved)) == []
    narrow = replace(sums(), requires=(Requirement("N < 9", ("lt", "N", 9), 1),))
    assert changes(old, with_pipelines(narrow)) == [("breaking", "sums", "requires `N < 9`")]


def _sums(kernel=(), **changes):
    """A manifest of `sums`; `kernel` are conditions of the instances of `add` that it launches."""
    told = with_pipelines(replace(sums(), **changes))
    return replace(told, kernels=tuple(with_requires(one, *kernel) for one in told.kernels))


def _of_sums(old, new):
    found = changes_between([old], [new])
    return {(c.kind, c.message) for c in found if c.about == "sums" and c.kind == "breaking"}


def test_a_launch_that_asks_for_more_breaks_those_who_call_the_pipeline():
    small = ("lt", "N", 2000000)  # follows from what `sums` asks for itself
    multiple, scaled = ("eq", ("rem", "N", 4), 0), ("gt", "scale", 1.0)
    assert not _of_sums(_sums(), _sums([small]))
    for condition, text in ((multiple, "N % 4 == 0"), (scaled, "scale > 1.0")):
        told = {("breaking", f"launch {n} of `add` requires `{text}`") for n in range(5)}
        assert _of_sums(_sums(), _sums([condition])) == told
        assert not _of_sums(_sums([condition]), _sums([condition]))
        assert not _of_sums(_sums([condition]), _sums())
    # What launches asked for, the pipeline may ask for itself.
    itself = (*sums().requires, Requirement("N % 4 == 0", multiple, 1))
    assert not _of_sums(_sums([multiple]), _sums(requires=itself))
    assert not _of_sums(_sums(requires=itself), _sums([multiple]))


def test_other_names_in_a_pipeline_are_no_change():
    """But for those that callers give tensors and scalars by."""
    told = sums()
    words = {"N": "Len", "a": "first", "b": "second", "c": "third"}

    def other(name):
        return words.get(name, name)

    renamed = replace(
        told,
        parameters=tuple(replace(p, extents=tuple(map(other, p.extents))) for p in told.parameters),
        dims=("Len",),
        requires=(Requirement("Len < 1000000", ("lt", "Len", 1000000), 1),),
        temporaries=tuple(
            replace(t, name=other(t.name), extents=("Len",)) for t in told.temporaries
        ),
        launches=tuple(
            replace(one, arguments=tuple(replace(a, tensor=other(a.tensor)) for a in one.arguments))
            for one in told.launches
        ),
    )
    assert changes(with_pipelines(told), with_pipelines(renamed)) == []


def test_a_launch_of_one_instance_asks_for_what_that_one_does():
    either = _sums()
    first, second = either.kernels
    either = replace(either, kernels=(with_requires(first, ("lt", "N", 9)), second))
    assert not _of_sums(_sums(), either)
    only = tuple(replace(one, instances=one.instances[:1]) for one in sums().launches)
    narrowed = replace(either, pipelines=(replace(sums(), launches=only),))
    assert ("breaking", "launch 0 of `add` requires `N < 9`") in _of_sums(either, narrowed)
    assert not _of_sums(narrowed, either)


def test_temporaries_that_do_not_exist_for_all_extents_break_callers():
    shorter = tuple(replace(t, extents=(("sub", "N", 5),)) for t in sums().temporaries)
    told = _of_sums(_sums(), _sums(temporaries=shorter))
    assert ("breaking", "the temporary `a` requires `N - 5 >= 0`") in told
    assert ("breaking", "launch 0 of `add` requires `N == N - 5`") in told
    longer = tuple(replace(t, extents=(("add", "N", 5),)) for t in sums().temporaries)
    assert all(
        "temporary" not in message for _, message in _of_sums(_sums(), _sums(temporaries=longer))
    )


def test_another_instance_of_a_pipeline_that_is_tried_first_is_another_computation():
    one, other = (replace(sums(), symbol=f"sums__{n}") for n in (1, 2))
    told = ("breaking", "sums", "calls by this name may launch `sums__2`, and launched `sums__1`")
    assert told in changes(with_pipelines(one), with_pipelines(other, one))
    assert told in changes(with_pipelines(one, other), with_pipelines(other, one))
    assert "breaking" not in kinds(with_pipelines(one), with_pipelines(one, other))


# Every field of a manifest that says something to callers, with another value than the sample's.
EDITS: dict[type, dict[str, object]] = {
    Manifest: {"target": "sm_80", "checked": True, "kernels": (), "families": (), "pipelines": ()},
    Kernel: {
        "name": "other", "symbol": "other", "parameters": (), "grid": ("M",),
        "requires": (Requirement("M < 5", ("lt", "M", 5), 1),),
        "coverage": (Coverage("y", False, False),), "variants": (mapped_kernel().variants[0],),
    },
    Parameter: {
        "name": "other", "kind": "scalar", "element": "f16", "extents": (64, 64), "own": "shared",
    },
    Variant: {
        "symbol": "other", "threads": 32, "preconditions": (Precondition("x", 16, 16),),
        "tensor_maps": (), "cluster": (8, 1, 1), "persistent_blocks_per_sm": 2, "split": 2,
        "starts_early": True, "static_smem_bytes": 1, "dynamic_smem_bytes": 1, "slots": (),
    },
    Precondition: {
        "param": "y", "base_alignment_bytes": 64, "stride_multiple_bytes": 64, "row_multiple": 64,
    },
    TensorMap: {"param": "y", "box": (8, 8), "swizzle": 32, "writes": True, "rounds": True},
    Requirement: {"expression": ("lt", "M", 7)},
    Coverage: {"tensor": "x", "writes_all": False, "reads_first": True},
    Family: {"name": "other", "members": (), "tables": ()},
    Pipeline: {
        "symbol": "other", "parameters": (), "requires": (), "temporaries": (), "launches": (),
        "coverage": (Coverage("out", False, False),),
    },
    Temporary: {"element": "f16", "extents": (1,), "slot": 9},
    PipelineLaunch: {"kernel": "other", "instances": (), "arguments": (), "after": (0,)},
    Argument: {"parameter": "other", "tensor": "other", "axes": (0,), "value": 1},
}  # fmt: skip

# What callers do not notice, or what is made of other fields.
UNNOTICED: dict[type, set[str]] = {
    Manifest: {"source", "toolchain"},
    Kernel: {"dims", "generics", "documentation", "line", "unsafe", "accesses", "layouts",
             "touched"},
    Parameter: {"block"},
    Variant: {
        "registers", "spill_store_bytes", "spill_load_bytes", "stack_bytes", "cost", "lowering",
    },
    Precondition: set(),
    TensorMap: set(),
    Requirement: {"text", "line"},
    Coverage: set(),
    Family: {"kernel", "dims"},
    Pipeline: {"name", "generics", "documentation", "line", "dims"},
    Temporary: {"name"},
    PipelineLaunch: {"file", "line"},
    Argument: set(),
}  # fmt: skip


@pytest.fixture(scope="module")
def sample():
    """A manifest with one of each."""
    kernel = replace(mapped_kernel(), requires=(Requirement("M < 9", ("lt", "M", 9), 1),))
    first = replace(kernel.variants[0], preconditions=(Precondition("x", 128, 16),))
    kernel = replace(kernel, variants=(first, *kernel.variants[1:]))
    table = Table("A Card", (Measured((1, 1), kernel.symbol, 1.0),))
    family = Family("scaled", "scaled", ("M", "K"), (kernel.symbol,), (table,))
    with_sums = with_pipelines()
    return replace(with_sums, kernels=(kernel, *with_sums.kernels), families=(family,))


def _edited(value, kind, name, new):
    """The value with a field of the first object of this class in it replaced."""
    if isinstance(value, kind):
        return replace(value, **{name: new}), True
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            made, done = _edited(item, kind, name, new)
            if done:
                return (*value[:number], made, *value[number + 1 :]), True
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            made, done = _edited(getattr(value, field.name), kind, name, new)
            if done:
                return replace(value, **{field.name: made}), True
    return value, False


@pytest.mark.parametrize("kind", EDITS, ids=lambda kind: kind.__name__)
def test_every_field_is_compared_or_not_noticed(kind, sample):
    assert EDITS[kind].keys() | UNNOTICED[kind] == {field.name for field in fields(kind)}
    assert not EDITS[kind].keys() & UNNOTICED[kind]
    for name, new in EDITS[kind].items():
        made, done = _edited(sample, kind, name, new)
        assert done, f"the sample has no {kind.__name__}"
        assert changes(sample, made), f"{kind.__name__}.{name} is not compared"
