"""Functions of Triton, PyTorch, NumPy, CUDA, Python and Rust's library, and what they are here.

Data only: `FUNCTIONS` are functions and methods alike, `MODULES` what names of functions are taken
from. A test writes each, applies what the help says, and compiles that.
"""

from __future__ import annotations

from tilec.frontend.ways import Way, notes, ways

MODULES = frozenset(
    ("tl", "triton", "torch", "np", "numpy", "jnp", "jax", "math", "F", "nn", "cp", "cupy", "cuda")
) | {"libdevice", "std", "core", "cute", "ct", "ttl", "cub", "thrust"}


_SUM = "{0}.sum::<{axis}>()"
_CENTRED = f"let d = {{0}} - {_SUM} / {{count}};"
_SCALARS = ("n", "m")
_INTEGERS = ("p", "q")
_MASKS = ("c", "d")
_ONE_AXIS = ("t", "1")

_ACTIVATIONS = {
    **ways("relu relu_ ReLU", "{0}.max(0.0)"),
    **ways("relu6 hardtanh", "{0}.clamp(0.0, 6.0)"),
    **ways("leaky_relu", "select({0}.gt(0.0), {0}, {0} * 0.01)"),
    **ways("elu", "select({0}.gt(0.0), {0}, {0}.exp_m1())"),
    **ways("silu swish SiLU", "{0} * {0}.sigmoid()"),
    **ways("gelu GELU", "{0} * 0.5 * (1.0 + ({0} * 0.70710678).erf())"),
    **ways("softplus", "{0}.exp().ln_1p()"),
    **ways(
        "softmax",
        "{ let e = ({0} - {0}.max::<{axis}>()).exp(); e / e.sum::<{axis}>() }",
        example=_ONE_AXIS,
    ),
    **ways(
        "log_softmax",
        "{ let s = {0} - {0}.max::<{axis}>(); s - s.exp().sum::<{axis}>().ln() }",
        example=_ONE_AXIS,
    ),
    **ways(
        "logsumexp",
        "{ let m = {0}.max::<{axis}>(); m + ({0} - m).exp().sum::<{axis}>().ln() }",
        example=_ONE_AXIS,
    ),
}

_REDUCTIONS = {
    **ways("mean average", f"{_SUM} / {{count}}", example=_ONE_AXIS),
    **ways(
        "var variance",
        f"{{ {_CENTRED} (d * d).sum::<{{axis}}>() / {{count}} }}",
        example=_ONE_AXIS,
    ),
    **ways(
        "std stddev",
        f"{{ {_CENTRED} ((d * d).sum::<{{axis}}>() / {{count}}).sqrt() }}",
        example=_ONE_AXIS,
    ),
    **ways("norm vector_norm", "({0} * {0}).sum::<{axis}>().sqrt()", example=_ONE_AXIS),
    **ways("amax reduce_max nanmax", "{0}.max::<{axis}>()", example=_ONE_AXIS),
    **ways("amin reduce_min nanmin", "{0}.min::<{axis}>()", example=_ONE_AXIS),
    **ways("reduce_sum nansum", _SUM, example=_ONE_AXIS),
    **ways("product", "{0}.prod::<{axis}>()", example=_ONE_AXIS),
    **ways("count_nonzero", "{0}.ne(0.0).to::<i32>().sum::<{axis}>()", example=_ONE_AXIS),
    **notes(
        "logcumsumexp associative_scan fold accumulate",
        "`reduce` and `scan` combine elements: `t.scan::<1>(0.0, |a, b| a + b)`",
    ),
    **ways("allclose array_equal", "{0}.eq({1}).all()"),
}

_ARITHMETIC = {
    **ways("add wrapping_add __fadd_rn __add__", "{0} + {1}"),
    **ways("subtract wrapping_sub __fsub_rn", "{0} - {1}"),
    **ways("sub rsub", "{0} - {1}"),
    **ways("mul multiply wrapping_mul __fmul_rn", "{0} * {1}"),
    **ways("div divide true_divide truediv fdiv __fdividef __fdiv_rn div_rn", "{0} / {1}"),
    **ways("floor_divide floordiv div_floor", "({0} / {1}).floor()"),
    **ways("remainder fmod fmodf rem modulo", "{0} % {1}"),
    **ways("neg negative", "-{0}"),
    **ways("fma fmaf __fmaf_rn", "{0}.mul_add({1}, {2})"),
    **ways("fmax fmaxf maxf clamp_min", "{0}.max({1})"),
    **ways("fmin fminf minf clamp_max", "{0}.min({1})"),
    **ways("clip clip_ clamp_ clampf", "{0}.clamp({1}, {2})", example=("t", "0.0", "1.0")),
    **ways("saturate __saturatef", "{0}.clamp(0.0, 1.0)"),
    **ways("square sqr", "{0} * {0}"),
    **ways("pow power powr __powf", "{0}.pow{power}({1})"),
    **ways("log logf __logf", "{0}.ln()"),
    **ways("log1p log1pf", "{0}.ln_1p()"),
    **ways("log2f __log2f", "{0}.log2()"),
    **ways("log10f __log10f", "{0}.log10()"),
    **ways("expf __expf ex", "{0}.exp()"),
    **ways("exp2f ex2", "{0}.exp2()"),
    **ways("expm1 expm1f", "{0}.exp_m1()"),
    **ways("exp10 exp10f __exp10f", "({0} * 3.3219281).exp2()"),
    **ways("sqrtf __fsqrt_rn sqrt_rn", "{0}.sqrt()"),
    **ways("rsqrtf __frsqrt_rn inv_sqrt", "{0}.rsqrt()"),
    **ways("reciprocal __frcp_rn rcp", "{0}.recip()"),
    **ways("sinf __sinf", "{0}.sin()"),
    **ways("cosf __cosf", "{0}.cos()"),
    **ways("tanf __tanf", "{0}.tan()"),
    **ways("tanhf", "{0}.tanh()"),
    **ways("erff", "{0}.erf()"),
    **ways("fabs fabsf absolute iabs", "{0}.abs()"),
    **ways("abs_diff", "({0} - {1}).abs()"),
    **ways("floorf", "{0}.floor()"),
    **ways("ceilf", "{0}.ceil()"),
    **ways("truncf fix", "{0}.trunc()"),
    **ways("roundf", "{0}.round()"),
    **notes(
        "rint rintf nearbyint round_ties_even",
        "`round` rounds halves away from zero, `floor` and `ceil` down and up: write one of these",
    ),
    **ways("lerp", "{0} + ({1} - {0}) * {2}"),
    **ways("hypot hypotf", "({0} * {0} + {1} * {1}).sqrt()"),
    **ways("fract frac", "{0} - {0}.trunc()"),
    **ways("sign sgn signum", "select({0}.gt(0.0), 1.0, select({0}.lt(0.0), -1.0, 0.0))"),
    **ways("isnan", "{0}.is_nan()"),
    **ways("isinf is_infinite", "{0}.is_inf()"),
    **ways("isfinite is_finite", "!({0}.is_nan() | {0}.is_inf())"),
    **ways("umulhi __umulhi __mulhi __umul64hi", "{0}.mul_hi({1})", example=_INTEGERS),
    **ways("cdiv ceil_div ceildiv divup div_up", "{0}.div_ceil({1})", example=_SCALARS),
    **ways("saturating_sub", "({0} - {1}).max(0)", example=_SCALARS),
    **ways("rem_floor", "{0}.rem_euclid({1})", example=_SCALARS),
    **notes(
        "popc __popc popcount count_ones clz __clz leading_zeros ffs __ffs trailing_zeros",
        "bits are not counted; `n.ilog2()` is the highest bit of a scalar",
    ),
    **notes(
        "checked_add checked_sub checked_mul checked_div overflowing_add saturating_add",
        "integers wrap, and division by zero gives zero: nothing fails; compare before where it"
        " matters",
    ),
}

_LOGIC = {
    **ways("logical_and bitwise_and", "{0} & {1}", example=_MASKS),
    **ways("logical_or bitwise_or", "{0} | {1}", example=_MASKS),
    **ways("logical_xor bitwise_xor xor", "{0} ^ {1}", example=_MASKS),
    **ways("logical_not bitwise_not invert", "!{0}", example=_MASKS),
    **ways("cond if_then_else ifelse blend", "select({0}, {1}, {2})", example=("c", "t", "u")),
    **ways("masked_fill masked_fill_", "select({1}, {2}, {0})", example=("t", "c", "0.0")),
    **ways("greater", "{0}.gt({1})"),
    **ways("greater_equal", "{0}.ge({1})"),
    **ways("less", "{0}.lt({1})"),
    **ways("less_equal", "{0}.le({1})"),
    **ways("equal", "{0}.eq({1})"),
    **ways("not_equal", "{0}.ne({1})"),
    **ways("isclose", "({0} - {1}).abs().lt(1e-5)"),
    **notes(
        "tril triu diag eye one_hot",
        "number the rows and columns and compare them: `iota::<i32, "
        "16>().expand::<1>().ge(iota::<i32, 64>().expand::<0>())`",
    ),
}

_SHAPES = {
    **ways("matmul mm bmm", "{0}.dot({1})", example=("t", "t.t()")),
    **ways("arange", "iota::<i32, {last}>()", example=("0", "64")),
    **ways("zeros_like empty_like new_zeros", "Tile::<{shape}>::zeros()"),
    **ways("ones_like new_ones", "Tile::<{shape}>::ones()"),
    **ways("full_like", "Tile::<{shape}>::full({1})", example=("t", "2.0")),
    **notes("empty", "write `Tile::<f32, 16, 64>::zeros()`: a tile always has values"),
    **ways("view", "{0}.reshape::<{last}>()", example=("t", "1024")),
    **ways("unsqueeze expand_dims newaxis", "{0}.expand::<{last}>()", example=("t", "0")),
    **notes(
        "broadcast_to expand_as broadcast_in_dim repeat_interleave",
        "write `.broadcast::<16, 64>()` with the extents wanted; operators broadcast by themselves",
    ),
    **ways("trans transpose swapaxes", "{0}.t()"),
    **ways("concat concatenate stack hstack vstack", "cat::<0>({0}, {1})"),
    **ways("fliplr flipud reverse", "{0}.flip::<{axis}>()", example=_ONE_AXIS),
    **notes(
        "slice narrow chunk unbind index_select",
        "a tile is cut in halves by `split`; a smaller tile is loaded from its tensor: "
        "`x.load::<16, 32>([i, j])`",
    ),
    **notes(
        "take take_along_axis take_along_dim embedding lookup",
        "rows that a tile of indices chooses are loaded from the tensor: `x.gather::<16, "
        "64>([rows, 0])`",
    ),
    **notes(
        "roll rotate",
        "load the tile from where it should start: `x.load_at::<16, 64>([i, j])`",
    ),
    **ways("contiguous clone copied cloned to_owned copy detach", "{0}"),
    **ways("float to_float", "{0}.to::<f32>()"),
    **ways("half", "{0}.to::<f16>()"),
    **ways("bfloat16", "{0}.to::<bf16>()"),
    **ways("double", "{0}.to::<f64>()"),
    **ways("int", "{0}.to::<i32>()"),
    **ways("long", "{0}.to::<i64>()"),
    **ways("bool", "{0}.ne(0.0)"),
    **ways("astype cast to_dtype type_as into", "{0}.to::<f32>()"),
    **ways("to_bits __float_as_int __float_as_uint", "{0}.bits::<u32>()"),
    **ways(
        "from_bits __int_as_float __uint_as_float bitcast view_as",
        "{0}.bits::<f32>()",
        example=_INTEGERS,
    ),
    **notes(
        "len size numel dim ndim ndimension shape is_empty",
        "extents are in the types: a `Dim` of the signature, such as `N`, is a number",
    ),
    **notes(
        "fill_ zero_ copy_ add_ mul_ sub_ div_ set_item put",
        "values are not changed in place: `let mut a = t; a = a * 2.0;`",
    ),
}

_MEMORY = {
    **notes(
        "make_block_ptr advance make_tensor_descriptor tensormap make_tensor_ptr",
        "a tensor is indexed by tiles, without pointers: `x.load::<16, 64>([i, j])`",
    ),
    **notes(
        "__ldg ldg ld ld_global __ldcs load_nontemporal",
        "a tensor is read by tiles: `x.load::<16, 64>([i, j])`",
    ),
    **notes("load", "a tensor is read by tiles: `x.load::<16, 64>([i, j])`"),
    **notes(
        "store st __stcs",
        "what this program owns of a tensor is written at once: `y.store(t)`",
    ),
    **notes(
        "memcpy memset cp_async __pipeline_memcpy_async",
        "loads and stores move tiles, and the compiler overlaps them: `y.store(x.load_like(&y))`",
    ),
    **notes(
        "atomic_add atomicAdd index_add scatter_add atomicInc",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_add([0], 1)`",
    ),
    **notes(
        "atomic_max atomicMax",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_max([0], 1)`",
    ),
    **notes(
        "atomic_min atomicMin",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_min([0], 1)`",
    ),
    **notes(
        "atomic_cas atomicCAS",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.compare_exchange([0], 0, 1)`",
    ),
    **notes(
        "atomic_xchg atomicExch",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.swap([0], 1)`",
    ),
    **notes(
        "atomic_and atomicAnd",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_and([0], 1)`",
    ),
    **notes(
        "atomic_or atomicOr",
        "take the tensor as `&Atomic<Tensor<…>>`, and write `a.fetch_or([0], 1)`",
    ),
}

_THREADS = {
    **notes(
        "__syncthreads __syncwarp syncthreads barrier debug_barrier __threadfence "
        "__threadfence_block mbarrier_wait cp_async_wait",
        "leave it out: what a program does takes effect in the order written, and the compiler "
        "places the barriers",
    ),
    **notes(
        "__shfl_sync __shfl_down_sync __shfl_up_sync __shfl_xor_sync shfl_sync __ballot_sync "
        "__reduce_add_sync WarpReduce BlockReduce warp_reduce block_reduce",
        "a program works on whole tiles: `t.sum::<1>()`, `t.reduce::<1>(0.0, |a, b| a + b)`",
    ),
    **ways("__any_sync", "{0}.any()", example=("c",)),
    **ways("__all_sync", "{0}.all()", example=("c",)),
    **notes(
        "rand randn randint randn_like rand_like dropout curand_uniform",
        "random numbers are not in this version of tilec: pass them in as a tensor",
    ),
    **notes(
        "multiple_of max_contiguous max_constancy assume __builtin_assume",
        "say it of extents and scalar parameters: `requires!(N % 64 == 0)`",
    ),
    **notes(
        "next_power_of_2 next_power_of_two",
        "tile extents are constants: give one by a const generic, `#[instance(B = 1024)]`",
    ),
}

_LANGUAGE = {
    **notes(
        "iter into_iter map zip enumerate collect for_each filter chunks windows iter_mut "
        "foreach vmap apply",
        "a tile is computed as a whole: `t * 2.0`; `reduce` and `scan` combine its elements",
    ),
    **notes(
        "unwrap expect unwrap_or ok err is_some is_none",
        "there are no options and results: a load outside of a tensor is zero, or what "
        "`x.load_or::<16, 64>([i, j], 1.0)` names",
    ),
    **notes(
        "as_ptr as_mut_ptr data_ptr data get get_mut get_unchecked",
        "there are no pointers: read by `x.load::<16, 64>([i, j])`, write by `y.store(t)`",
    ),
    **notes(
        "push pop insert append extend resize",
        "arrays and tiles have a fixed extent; `cat::<0>(t, u)` puts two tiles together",
    ),
    **notes(
        "printf print device_print static_print",
        "nothing is printed: store it to a tensor, `y.store(t)`, and look at that (`tilec run "
        "--cpu` needs no GPU)",
    ),
    **notes("device_assert assert_", "write `assert!(n > 0)`"),
    **notes("static_assert constexpr", "write `static_assert!(64 % 16 == 0)`"),
    **notes("assert", "write `assert!(n > 0)`"),
    **notes("range static_range", "a range stands in the head of a `for`: `for i in 0..n { }`"),
    **notes("sizeof element_size", "the width of an element is in its type: `f32` has 4 bytes"),
    **notes(
        "cudaMalloc malloc cudaMemcpy free new",
        "a kernel allocates nothing; in a `#[pipeline]` a temporary is `Tensor::<…>::uninit()`",
    ),
    **notes(
        "item_ tolist numpy cpu cuda backward",
        "that is for the host: a kernel computes with tiles and scalars",
    ),
    **notes("Some Ok Err Box", "there are no options, results and boxes: use the value itself"),
    **notes("einsum tensordot", "write products as `a.dot(b)`, sums as `t.sum::<1>()`"),
    **notes(
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
