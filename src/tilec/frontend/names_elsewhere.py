"""Names of other systems that are no functions, and what they are here.

Data only: `TENSORS` are methods of tensors, `VALUES` plain names, `FIELDS` what follows a dot
without parentheses, `MACROS` Rust's macros. A test writes each, applies what the help says, and
compiles that.
"""

from __future__ import annotations

from tilec.frontend.ways import Way, notes, ways

_SCALARS = ("n", "m")

_PROGRAM = (
    "a program works on whole tiles, and has no threads to number: `iota::<i32, 64>()` numbers "
    "elements"
)
_WHICH = "ask a part which one it is: `y.id(0)`; a kernel with `grid = […]` asks `program_id()`"

# Methods that tiles have, or nothing has, called on a tensor.
TENSORS: dict[str, Way] = {
    **notes("at item get read", "one element is a tile of one: `x.load::<1, 1>([i, j]).item()`"),
    **notes(
        "set put write fill copy_from fill_ copy_",
        "what this program owns of a tensor is a `Part`, written at once: `y.store(t)`",
    ),
    **notes(
        "slice narrow sub index_select view",
        "load the tile that is wanted: `x.load::<16, 64>([i, j])`",
    ),
}

VALUES: dict[str, Way] = {
    **ways("inf INFINITY Infinity", "f32::INFINITY"),
    **ways("nan NAN NaN", "f32::NAN"),
    **ways("FLT_MAX FLOAT_MAX", "f32::MAX"),
    **ways("FLT_EPSILON eps", "f32::EPSILON"),
    **ways("INT_MAX INT32_MAX", "i32::MAX"),
    **ways("INT_MIN INT32_MIN", "i32::MIN"),
    **ways("M_PI pi PI", "3.14159265"),
    **notes("threadIdx laneId warpSize warpId blockDim", _PROGRAM),
    **notes("blockIdx", _WHICH),
    **notes("gridDim", "a kernel with `grid = […]` asks `num_programs()`"),
    **notes("None nullptr NULL", "there are no options and pointers: every value is there"),
}

FIELDS: dict[str, Way] = {
    **ways("T mT", "{0}.t()"),
    **notes(
        "shape size ndim",
        "extents are in the types: a `Dim` of the signature, such as `N`, is a number",
    ),
    **notes("dtype element_ty", "the element type is a generic, `T: Float`, or written: `f32`"),
    **ways("inf", "f32::INFINITY"),
    **ways("nan", "f32::NAN"),
    **ways("pi", "3.14159265"),
    **notes("float32", "the type is called `f32`"),
    **notes("float16", "the type is called `f16`"),
    **notes("bfloat16", "the type is called `bf16`"),
    **notes("float64", "the type is called `f64`"),
    **notes(
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
        "types of integers are called `i8` to `i64` and `u8` to `u64`",
    ),
    **notes("constexpr", "a compile-time constant is a generic: `const B: usize`"),
    **notes("stride strides", "strides are the tensor's own: it is indexed without them"),
    **notes("data ptr device grad", "a tensor is read by `x.load::<16, 64>([i, j])`"),
}

MACROS: dict[str, Way] = {
    **notes(
        "println print eprintln eprint dbg",
        "store it to a tensor, `y.store(t)`, and look at that (`tilec run --cpu` needs no GPU)",
    ),
    **ways("assert_eq debug_assert_eq", "assert!({0} == {1})", example=_SCALARS),
    **ways("assert_ne debug_assert_ne", "assert!({0} != {1})", example=_SCALARS),
    **ways("debug_assert", "assert!({0})", example=("n > 0",)),
    **ways("const_assert", "static_assert!({0})", example=("64 % 16 == 0",)),
    **ways("panic todo unimplemented unreachable", "assert!(false)"),
    **notes("vec", "an array has a fixed length: `[0.0; 4]`; a tile holds more"),
    **notes("format write writeln concat stringify", "there are no strings"),
    **notes("matches", "compare: `n == 0 || n == 1`"),
    **notes("include include_str env", "items of another file are named: `use other::name;`"),
}
