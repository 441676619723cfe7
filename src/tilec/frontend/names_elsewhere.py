"""Names of Triton, PyTorch, NumPy, CUDA, Python and Rust's library, and what they are here.

Data only: `FUNCTIONS` are functions and methods alike, `VALUES` plain names, `FIELDS` what follows
a dot without parentheses, `MACROS` Rust's macros, `MODULES` what names of functions are taken from.
A test writes each, applies what the help says, and compiles that.
"""

from __future__ import annotations

from tilec.frontend.ways import Way

MODULES = frozenset(
    ("tl", "triton", "torch", "np", "numpy", "jnp", "jax", "math", "F", "nn", "cp", "cupy", "cuda")
) | {"libdevice", "std", "core", "cute", "ct", "ttl", "cub", "thrust"}


def _all(names: str, code: str, example: tuple[str, ...] = ("t", "u", "v")) -> dict[str, Way]:
    return dict.fromkeys(names.split(), Way(code, example=example))


def _note(names: str, *note: str) -> dict[str, Way]:
    return dict.fromkeys(names.split(), Way(None, "".join(note)))


_SUM = "{0}.sum::<{axis}>()"
_CENTRED = f"let d = {{0}} - {_SUM} / {{count}};"
_SCALARS = ("n", "m")
_INTEGERS = ("p", "q")
_MASKS = ("c", "d")
_ONE_AXIS = ("t", "1")

_ACTIVATIONS = {
    **_all("relu relu_ ReLU", "{0}.max(0.0)"),
    **_all("relu6 hardtanh", "{0}.clamp(0.0, 6.0)"),
    **_all("leaky_relu", "select({0}.gt(0.0), {0}, {0} * 0.01)"),
    **_all("elu", "select({0}.gt(0.0), {0}, {0}.exp_m1())"),
    **_all("silu swish SiLU", "{0} * {0}.sigmoid()"),
    **_all("gelu GELU", "{0} * 0.5 * (1.0 + ({0} * 0.70710678).erf())"),
    **_all("softplus", "{0}.exp().ln_1p()"),
    **_all(
        "softmax",
        "{ let e = ({0} - {0}.max::<{axis}>()).exp(); e / e.sum::<{axis}>() }",
        example=_ONE_AXIS,
    ),
    **_all(
        "log_softmax",
        "{ let s = {0} - {0}.max::<{axis}>(); s - s.exp().sum::<{axis}>().ln() }",
        example=_ONE_AXIS,
    ),
    **_all(
        "logsumexp",
        "{ let m = {0}.max::<{axis}>(); m + ({0} - m).exp().sum::<{axis}>().ln() }",
        example=_ONE_AXIS,
    ),
}

_REDUCTIONS = {
    **_all("mean average", f"{_SUM} / {{count}}", example=_ONE_AXIS),
    **_all(
        "var variance",
        f"{{ {_CENTRED} (d * d).sum::<{{axis}}>() / {{count}} }}",
        example=_ONE_AXIS,
    ),
    **_all(
        "std stddev",
        f"{{ {_CENTRED} ((d * d).sum::<{{axis}}>() / {{count}}).sqrt() }}",
        example=_ONE_AXIS,
    ),
    **_all("norm vector_norm", "({0} * {0}).sum::<{axis}>().sqrt()", example=_ONE_AXIS),
    **_all("amax reduce_max nanmax", "{0}.max::<{axis}>()", example=_ONE_AXIS),
    **_all("amin reduce_min nanmin", "{0}.min::<{axis}>()", example=_ONE_AXIS),
    **_all("reduce_sum nansum", _SUM, example=_ONE_AXIS),
    **_all("product", "{0}.prod::<{axis}>()", example=_ONE_AXIS),
    **_all("count_nonzero", "{0}.ne(0.0).to::<i32>().sum::<{axis}>()", example=_ONE_AXIS),
    **_note(
        "logcumsumexp associative_scan fold accumulate",
        "`reduce` and `scan` combine elements: `t.scan::<1>(0.0, |a, b| a + b)`",
    ),
    **_all("allclose array_equal", "{0}.eq({1}).all()"),
}

_ARITHMETIC = {
    **_all("add wrapping_add __fadd_rn __add__", "{0} + {1}"),
    **_all("subtract wrapping_sub __fsub_rn", "{0} - {1}"),
    **_all("sub rsub", "{0} - {1}"),
    **_all("mul multiply wrapping_mul __fmul_rn", "{0} * {1}"),
    **_all("div divide true_divide truediv fdiv __fdividef __fdiv_rn div_rn", "{0} / {1}"),
    **_all("floor_divide floordiv div_floor", "({0} / {1}).floor()"),
    **_all("remainder fmod fmodf rem modulo", "{0} % {1}"),
    **_all("neg negative", "-{0}"),
    **_all("fma fmaf __fmaf_rn", "{0}.mul_add({1}, {2})"),
    **_all("fmax fmaxf maxf clamp_min", "{0}.max({1})"),
    **_all("fmin fminf minf clamp_max", "{0}.min({1})"),
    **_all("clip clip_ clamp_ clampf", "{0}.clamp({1}, {2})", example=("t", "0.0", "1.0")),
    **_all("saturate __saturatef", "{0}.clamp(0.0, 1.0)"),
    **_all("square sqr", "{0} * {0}"),
    **_all("pow power powr __powf", "{0}.pow{power}({1})"),
    **_all("log logf __logf", "{0}.ln()"),
    **_all("log1p log1pf", "{0}.ln_1p()"),
    **_all("log2f __log2f", "{0}.log2()"),
    **_all("log10f __log10f", "{0}.log10()"),
    **_all("expf __expf ex", "{0}.exp()"),
    **_all("exp2f ex2", "{0}.exp2()"),
    **_all("expm1 expm1f", "{0}.exp_m1()"),
    **_all("exp10 exp10f __exp10f", "({0} * 3.3219281).exp2()"),
    **_all("sqrtf __fsqrt_rn sqrt_rn", "{0}.sqrt()"),
    **_all("rsqrtf __frsqrt_rn inv_sqrt", "{0}.rsqrt()"),
    **_all("reciprocal __frcp_rn rcp", "{0}.recip()"),
    **_all("sinf __sinf", "{0}.sin()"),
    **_all("cosf __cosf", "{0}.cos()"),
    **_all("tanf __tanf", "{0}.tan()"),
    **_all("tanhf", "{0}.tanh()"),
    **_all("erff", "{0}.erf()"),
    **_all("fabs fabsf absolute iabs", "{0}.abs()"),
    **_all("abs_diff", "({0} - {1}).abs()"),
    **_all("floorf", "{0}.floor()"),
    **_all("ceilf", "{0}.ceil()"),
    **_all("truncf fix", "{0}.trunc()"),
    **_all("roundf", "{0}.round()"),
    **_note(
        "rint rintf nearbyint round_ties_even",
        "`round` rounds halves away from zero, `floor` and `ceil` down and up: write one of these",
    ),
    **_all("lerp", "{0} + ({1} - {0}) * {2}"),
    **_all("hypot hypotf", "({0} * {0} + {1} * {1}).sqrt()"),
    **_all("fract frac", "{0} - {0}.trunc()"),
    **_all("sign sgn signum", "select({0}.gt(0.0), 1.0, select({0}.lt(0.0), -1.0, 0.0))"),
    **_all("isnan", "{0}.is_nan()"),
    **_all("isinf is_infinite", "{0}.is_inf()"),
    **_all("isfinite is_finite", "!({0}.is_nan() | {0}.is_inf())"),
    **_all("umulhi __umulhi __mulhi __umul64hi", "{0}.mul_hi({1})", example=_INTEGERS),
    **_all("cdiv ceil_div ceildiv divup div_up", "{0}.div_ceil({1})", example=_SCALARS),
    **_all("saturating_sub", "({0} - {1}).max(0)", example=_SCALARS),
    **_all("rem_floor", "{0}.rem_euclid({1})", example=_SCALARS),
    **_note(
        "popc __popc popcount count_ones clz __clz leading_zeros ffs __ffs trailing_zeros",
        "bits are not counted; `n.ilog2()` is the highest bit of a scalar",
    ),
    **_note(
        "checked_add checked_sub checked_mul checked_div overflowing_add saturating_add",
        "integers wrap, and division by zero gives zero: nothing fails; compare before where it"
        " matters",
    ),
}

_LOGIC = {
    **_all("logical_and bitwise_and", "{0} & {1}", example=_MASKS),
    **_all("logical_or bitwise_or", "{0} | {1}", example=_MASKS),
    **_all("logical_xor bitwise_xor xor", "{0} ^ {1}", example=_MASKS),
    **_all("logical_not bitwise_not invert", "!{0}", example=_MASKS),
    **_all("cond if_then_else ifelse blend", "select({0}, {1}, {2})", example=("c", "t", "u")),
    **_all("masked_fill masked_fill_", "select({1}, {2}, {0})", example=("t", "c", "0.0")),
    **_all("greater", "{0}.gt({1})"),
    **_all("greater_equal", "{0}.ge({1})"),
    **_all("less", "{0}.lt({1})"),
    **_all("less_equal", "{0}.le({1})"),
    **_all("equal", "{0}.eq({1})"),
    **_all("not_equal", "{0}.ne({1})"),
    **_all("isclose", "({0} - {1}).abs().lt(1e-5)"),
    **_note(
        "tril triu diag eye one_hot",
        "number the rows and columns and compare them: `iota::<i32, "
        "16>().expand::<1>().ge(iota::<i32, 64>().expand::<0>())`",
    ),
}

_SHAPES = {
    **_all("matmul mm bmm", "{0}.dot({1})", example=("t", "t.t()")),
    **_all("arange", "iota::<i32, {last}>()", example=("0", "64")),
    **_all("zeros_like empty_like new_zeros", "Tile::<{shape}>::zeros()"),
    **_all("ones_like new_ones", "Tile::<{shape}>::ones()"),
    **_all("full_like", "Tile::<{shape}>::full({1})", example=("t", "2.0")),
    **_note("empty", "write `Tile::<f32, 16, 64>::zeros()`: a tile always has values"),
    **_all("view", "{0}.reshape::<{last}>()", example=("t", "1024")),
    **_all("unsqueeze expand_dims newaxis", "{0}.expand::<{last}>()", example=("t", "0")),
    **_note(
        "broadcast_to expand_as broadcast_in_dim repeat_interleave",
        "write `.broadcast::<16, 64>()` with the extents wanted; operators broadcast by themselves",
    ),
    **_all("trans transpose swapaxes", "{0}.t()"),
    **_all("concat concatenate stack hstack vstack", "cat::<0>({0}, {1})"),
    **_all("fliplr flipud reverse", "{0}.flip::<{axis}>()", example=_ONE_AXIS),
    **_note(
        "slice narrow chunk unbind index_select",
        "a tile is cut in halves by `split`; a smaller tile is loaded from its tensor: "
        "`x.load::<16, 32>([i, j])`",
    ),
    **_note(
        "take take_along_axis take_along_dim embedding lookup",
        "rows that a tile of indices chooses are loaded from the tensor: `x.gather::<16, "
        "64>([rows, 0])`",
    ),
    **_note(
        "roll rotate",
        "load the tile from where it should start: `x.load_at::<16, 64>([i, j])`",
    ),
    **_all("contiguous clone copied cloned to_owned copy detach", "{0}"),
    **_all("float to_float", "{0}.to::<f32>()"),
    **_all("half", "{0}.to::<f16>()"),
    **_all("bfloat16", "{0}.to::<bf16>()"),
    **_all("double", "{0}.to::<f64>()"),
    **_all("int", "{0}.to::<i32>()"),
    **_all("long", "{0}.to::<i64>()"),
    **_all("bool", "{0}.ne(0.0)"),
    **_all("astype cast to_dtype type_as into", "{0}.to::<f32>()"),
    **_all("to_bits __float_as_int __float_as_uint", "{0}.bits::<u32>()"),
    **_all(
        "from_bits __int_as_float __uint_as_float bitcast view_as",
        "{0}.bits::<f32>()",
        example=_INTEGERS,
    ),
    **_note(
        "len size numel dim ndim ndimension shape is_empty",
        "extents are in the types: a `Dim` of the signature, such as `N`, is a number",
    ),
    **_note(
        "fill_ zero_ copy_ add_ mul_ sub_ div_ set_item put",
        "values are not changed in place: `let mut a = t; a = a * 2.0;`",
    ),
}

_MEMORY = {
    **_note(
        "make_block_ptr advance make_tensor_descriptor tensormap make_tensor_ptr",
        "a tensor is indexed by tiles, without pointers: `x.load::<16, 64>([i, j])`",
    ),
    **_note(
        "__ldg ldg ld ld_global __ldcs load_nontemporal",
        "a tensor is read by tiles: `x.load::<16, 64>([i, j])`",
    ),
    **_note("load", "a tensor is read by tiles: `x.load::<16, 64>([i, j])`"),
    **_note(
        "store st __stcs",
        "what this program owns of a tensor is written at once: `y.store(t)`",
    ),
    **_note(
        "memcpy memset cp_async __pipeline_memcpy_async",
        "loads and stores move tiles, and the compiler overlaps them: `y.store(x.load_like(&y))`",
    ),
    **_note(
        "atomic_add atomicAdd index_add scatter_add atomicInc",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_add([0], 1)`",
    ),
    **_note(
        "atomic_max atomicMax",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_max([0], 1)`",
    ),
    **_note(
        "atomic_min atomicMin",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_min([0], 1)`",
    ),
    **_note(
        "atomic_cas atomicCAS",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.compare_exchange([0], 0, 1)`",
    ),
    **_note(
        "atomic_xchg atomicExch",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.swap([0], 1)`",
    ),
    **_note(
        "atomic_and atomicAnd",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_and([0], 1)`",
    ),
    **_note(
        "atomic_or atomicOr",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_or([0], 1)`",
    ),
}

_THREADS = {
    **_note(
        "__syncthreads __syncwarp syncthreads barrier debug_barrier __threadfence "
        "__threadfence_block mbarrier_wait cp_async_wait",
        "leave it out: what a program does takes effect in the order written, and the compiler "
        "places the barriers",
    ),
    **_note(
        "__shfl_sync __shfl_down_sync __shfl_up_sync __shfl_xor_sync shfl_sync __ballot_sync "
        "__reduce_add_sync WarpReduce BlockReduce warp_reduce block_reduce",
        "a program works on whole tiles: `t.sum::<1>()`, `t.reduce::<1>(0.0, |a, b| a + b)`",
    ),
    **_all("__any_sync", "{0}.any()", example=("c",)),
    **_all("__all_sync", "{0}.all()", example=("c",)),
    **_note(
        "rand randn randint randn_like rand_like dropout curand_uniform",
        "random numbers are not in this version of tilec: pass them in as a tensor",
    ),
    **_note(
        "multiple_of max_contiguous max_constancy assume __builtin_assume",
        "say it of extents and scalar parameters: `requires!(N % 64 == 0)`",
    ),
    **_note(
        "next_power_of_2 next_power_of_two",
        "tile extents are constants: give one by a const generic, `#[instance(B = 1024)]`",
    ),
}

_LANGUAGE = {
    **_note(
        "iter into_iter map zip enumerate collect for_each filter chunks windows iter_mut "
        "foreach vmap apply",
        "a tile is computed as a whole: `t * 2.0`; `reduce` and `scan` combine its elements",
    ),
    **_note(
        "unwrap expect unwrap_or ok err is_some is_none",
        "there are no options and results: a load outside of a tensor is zero, or what "
        "`x.load_or::<16, 64>([i, j], 1.0)` names",
    ),
    **_note(
        "as_ptr as_mut_ptr data_ptr data get get_mut get_unchecked",
        "there are no pointers: read by `x.load::<16, 64>([i, j])`, write by `y.store(t)`",
    ),
    **_note(
        "push pop insert append extend resize",
        "arrays and tiles have a fixed extent; `cat::<0>(t, u)` puts two tiles together",
    ),
    **_note(
        "printf print device_print static_print",
        "nothing is printed: store it to a tensor, `y.store(t)`, and look at that (`tilec run "
        "--cpu` needs no GPU)",
    ),
    **_note("device_assert assert_", "write `assert!(n > 0)`"),
    **_note("static_assert constexpr", "write `static_assert!(64 % 16 == 0)`"),
    **_note("assert", "write `assert!(n > 0)`"),
    **_note("range static_range", "a range stands in the head of a `for`: `for i in 0..n { }`"),
    **_note("sizeof element_size", "the width of an element is in its type: `f32` has 4 bytes"),
    **_note(
        "cudaMalloc malloc cudaMemcpy free new",
        "a kernel allocates nothing; in a `#[pipeline]` a temporary is `Tensor::<…>::uninit()`",
    ),
    **_note(
        "item_ tolist numpy cpu cuda backward",
        "that is for the host: a kernel computes with tiles and scalars",
    ),
    **_note("Some Ok Err Box", "there are no options, results and boxes: use the value itself"),
    **_note("einsum tensordot", "write products as `a.dot(b)`, sums as `t.sum::<1>()`"),
    **_note(
        "argsort unique nonzero searchsorted median kthvalue",
        "there is nothing that sorts in this version of tilec",
    ),
}

FUNCTIONS: dict[str, Way] = {
    **_ACTIVATIONS,
    **_REDUCTIONS,
    **_ARITHMETIC,
    **_LOGIC,
    **_SHAPES,
    **_MEMORY,
    **_THREADS,
    **_LANGUAGE,
}

_PROGRAM = (
    "a program works on whole tiles, and has no threads to number: `iota::<i32, 64>()` numbers "
    "elements"
)
_WHICH = "ask a part which one it is: `y.id(0)`; a kernel with `grid = […]` asks `program_id()`"

# Methods that tiles have, or nothing has, called on a tensor.
TENSORS: dict[str, Way] = {
    **_note("at item get read", "one element is a tile of one: `x.load::<1, 1>([i, j]).item()`"),
    **_note(
        "set put write fill copy_from fill_ copy_",
        "what this program owns of a tensor is a `Part`, written at once: `y.store(t)`",
    ),
    **_note(
        "slice narrow sub index_select view",
        "load the tile that is wanted: `x.load::<16, 64>([i, j])`",
    ),
}

VALUES: dict[str, Way] = {
    **_all("inf INFINITY Infinity", "f32::INFINITY"),
    **_all("nan NAN NaN", "f32::NAN"),
    **_all("FLT_MAX FLOAT_MAX", "f32::MAX"),
    **_all("FLT_EPSILON eps", "f32::EPSILON"),
    **_all("INT_MAX INT32_MAX", "i32::MAX"),
    **_all("INT_MIN INT32_MIN", "i32::MIN"),
    **_all("M_PI pi PI", "3.14159265"),
    **_note("threadIdx laneId warpSize warpId blockDim", _PROGRAM),
    **_note("blockIdx", _WHICH),
    **_note("gridDim", "a kernel with `grid = […]` asks `num_programs()`"),
    **_note("None nullptr NULL", "there are no options and pointers: every value is there"),
}

FIELDS: dict[str, Way] = {
    **_all("T mT", "{0}.t()"),
    **_note(
        "shape size ndim",
        "extents are in the types: a `Dim` of the signature, such as `N`, is a number",
    ),
    **_note("dtype element_ty", "the element type is a generic, `T: Float`, or written: `f32`"),
    **_all("inf", "f32::INFINITY"),
    **_all("nan", "f32::NAN"),
    **_all("pi", "3.14159265"),
    **_note("float32", "the type is called `f32`"),
    **_note("float16", "the type is called `f16`"),
    **_note("bfloat16", "the type is called `bf16`"),
    **_note("float64", "the type is called `f64`"),
    **_note(
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
        "types of integers are called `i8` to `i64` and `u8` to `u64`",
    ),
    **_note("constexpr", "a compile-time constant is a generic: `const B: usize`"),
    **_note("stride strides", "strides are the tensor's own: it is indexed without them"),
    **_note("data ptr device grad", "a tensor is read by `x.load::<16, 64>([i, j])`"),
}

MACROS: dict[str, Way] = {
    **_note(
        "println print eprintln eprint dbg",
        "store it to a tensor, `y.store(t)`, and look at that (`tilec run --cpu` needs no GPU)",
    ),
    **_all("assert_eq debug_assert_eq", "assert!({0} == {1})", example=_SCALARS),
    **_all("assert_ne debug_assert_ne", "assert!({0} != {1})", example=_SCALARS),
    **_all("debug_assert", "assert!({0})", example=("n > 0",)),
    **_all("const_assert", "static_assert!({0})", example=("64 % 16 == 0",)),
    **_all("panic todo unimplemented unreachable", "assert!(false)"),
    **_note("vec", "an array has a fixed length: `[0.0; 4]`; a tile holds more"),
    **_note("format write writeln concat stringify", "there are no strings"),
    **_note("matches", "compare: `n == 0 || n == 1`"),
    **_note("include include_str env", "items of another file are named: `use other::name;`"),
}
