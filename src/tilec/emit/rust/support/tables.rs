// ---- Inner: what files say of their kernels, as data

// The limits of docs/abi.md.
const COUNT_LIMIT: i128 = 1 << 40;
const ELEMENT_LIMIT: i128 = 1 << 60;
const SPAN_LIMIT: i128 = 1 << 63;
const ADDRESS_END: i128 = 1 << 64;
const NUMBERED_LIMIT: i128 = 1 << 26;
const GRID_X_LIMIT: i128 = 2147483647;
const GRID_YZ_LIMIT: i128 = 65535;

pub(super) const RANKS: usize = 8;
const MAP_RANKS: usize = 5;
const DEVICES: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Truth,
    Whole,
    Real,
}

/// A number of a call, exact: nothing wraps unseen.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub(super) whole: i128,
    pub(super) real: f64,
    pub(super) kind: Kind,
    /// Of a scalar, as it is passed.
    pub(super) bits: u64,
}

#[derive(Default)]
pub(super) struct Evaluation {
    pub(super) overflow: bool,
    pub(super) division_by_zero: bool,
    /// Of an expression that is a real number, its value.
    pub(super) real: f64,
}

/// Expression number `which` of a kernel; values are those of its `Dim`s, then those of its parameters.
pub(super) type Expressions = fn(which: u32, v: &[Value], e: &mut Evaluation) -> i128;

/// `extents` are numbers, or -1 less the number of a `Dim`; none: a scalar.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) dtype: Dtype,
    pub(super) is_written: bool,
    pub(super) extents: &'static [i64],
}

/// A `requires!`, or an extent of the grid; `named` are the values that it mentions.
pub(super) struct Claim {
    pub(super) expression: u32,
    pub(super) text: &'static str,
    pub(super) named: &'static [usize],
}

/// Multiples of these are asked for.
pub(super) struct Precondition {
    pub(super) parameter: usize,
    pub(super) base_bytes: u64,
    pub(super) stride_bytes: i64,
    pub(super) row_elements: i64,
}

/// `extents` of the box have the last axis first, as CUDA has it.
pub(super) struct WantedMap {
    pub(super) parameter: usize,
    pub(super) swizzle: i32,
    pub(super) writes: bool,
    pub(super) rounds: bool,
    pub(super) extents: &'static [u32],
}

/// A part of the model of costs (docs/abi.md, "Families"); `turns` is an expression. `busy` is of tensor cores, shared
/// memory, memory and threads.
pub(super) struct Part {
    pub(super) turns: u32,
    pub(super) busy: [i64; 4],
    pub(super) alone: i64,
}

/// Without parts, nobody knows. `memory` and `first` are expressions.
pub(super) struct Cost {
    pub(super) blocks_per_sm: i64,
    pub(super) start: i64,
    pub(super) blocks_per_program: i64,
    pub(super) cluster_blocks: i64,
    pub(super) memory: u32,
    pub(super) first: u32,
    pub(super) parts: &'static [Part],
}

/// `asks`: its preconditions, in words; `persistent`: blocks a multiprocessor, or 0; `entry`: its number in the cubin.
pub(super) struct Variant {
    pub(super) symbol: &'static str,
    pub(super) asks: &'static str,
    pub(super) threads: u32,
    pub(super) static_bytes: u32,
    pub(super) dynamic_bytes: u32,
    pub(super) cluster: [u32; 3],
    pub(super) persistent: u32,
    pub(super) split: u32,
    pub(super) starts_early: bool,
    pub(super) preconditions: &'static [Precondition],
    pub(super) maps: &'static [WantedMap],
    pub(super) cost: Cost,
    pub(super) entry: usize,
}

/// An entry point as the driver has loaded it; `ready_on` has a bit for each device on which it may be launched as it
/// is; `clusters_on` is one more than the device that `clusters` is of.
struct Entry {
    function: AtomicUsize,
    ready_on: AtomicU64,
    clusters: AtomicU64,
}

/// What the driver gave for a cubin, or nothing yet.
pub(super) struct Loaded<const N: usize> {
    library: AtomicUsize,
    entries: [Entry; N],
}

impl<const N: usize> Loaded<N> {
    pub(super) const fn new() -> Self {
        let entries = [const {
            Entry { function: AtomicUsize::new(0), ready_on: AtomicU64::new(0), clusters: AtomicU64::new(0) }
        }; N];
        Loaded { library: AtomicUsize::new(0), entries }
    }

    pub(super) const fn state(&'static self) -> State {
        State { library: &self.library, entries: &self.entries }
    }
}

pub(super) struct State {
    library: &'static AtomicUsize,
    entries: &'static [Entry],
}

/// Bytes that lie as the driver wants them.
#[repr(C, align(64))]
pub(super) struct Image<T: ?Sized>(pub(super) T);

/// `specific` is the letter of sm_90a, or 0.
pub(super) struct Cubin {
    pub(super) file: &'static str,
    pub(super) target: &'static str,
    pub(super) major: i32,
    pub(super) minor: i32,
    pub(super) specific: u8,
    pub(super) image: &'static [u8],
    pub(super) state: State,
}

pub(super) struct Kernel {
    pub(super) symbol: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) dims: &'static [&'static str],
    pub(super) requirements: &'static [Claim],
    pub(super) grid: &'static [Claim],
    pub(super) variants: &'static [Variant],
    pub(super) evaluate: Expressions,
}

/// What was measured on a card: extents, then the number of the fastest member.
pub(super) struct Table {
    pub(super) card: &'static str,
    pub(super) rows: &'static [&'static [i64]],
}

/// Kernels of which the cheapest that takes the arguments is launched; a kernel that is in no family is alone.
pub(super) struct Group {
    pub(super) kernels: &'static [&'static Kernel],
    pub(super) tables: &'static [Table],
}

pub(super) struct Build {
    pub(super) cubin: &'static Cubin,
    pub(super) groups: &'static [Group],
}

/// What one function launches, for each target the better first.
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) builds: &'static [Build],
}
