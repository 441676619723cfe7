// ---- Public: element types

/// The element types of kernels, as the language calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Dtype {
    Bool = 1,
    I8,
    U8,
    F8E4M3,
    F8E5M2,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
    Usize,
}

impl Dtype {
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool",
            Dtype::I8 => "i8",
            Dtype::U8 => "u8",
            Dtype::F8E4M3 => "f8e4m3",
            Dtype::F8E5M2 => "f8e5m2",
            Dtype::I16 => "i16",
            Dtype::U16 => "u16",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
            Dtype::I32 => "i32",
            Dtype::U32 => "u32",
            Dtype::F32 => "f32",
            Dtype::I64 => "i64",
            Dtype::U64 => "u64",
            Dtype::F64 => "f64",
            Dtype::Usize => "usize",
        }
    }

    pub const fn bytes(self) -> i64 {
        match self {
            Dtype::Bool | Dtype::I8 | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 1,
            Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => 2,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 4,
            Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::Usize => 8,
        }
    }

    /// `usize` is a 64-bit number, which other libraries know under these names.
    fn takes(self, given: Dtype) -> bool {
        self == given || (self == Dtype::Usize && matches!(given, Dtype::I64 | Dtype::U64))
    }
}

/// A type of Rust that is an element type of kernels. `Same` is the one of this module, which kernels are declared
/// with: types of other crates (`half::bf16`) stand for it.
///
/// # Safety
/// `DTYPE` is that of `Same`, size and alignment are those of `Same`, and the bits of each value of one are a value of
/// the other.
pub unsafe trait Element: Copy + 'static {
    type Same: Element;
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($type:ty, $dtype:ident;)*) => {
        $(unsafe impl Element for $type {
            type Same = $type;
            const DTYPE: Dtype = Dtype::$dtype;
        })*
    };
}

/// A number of type `f16`, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A number of type `bf16`, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// A number of type `f8e4m3`, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// A number of type `f8e5m2`, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

elements! {
    bool, Bool; i8, I8; u8, U8; F8E4M3, F8E4M3; F8E5M2, F8E5M2; i16, I16; u16, U16; F16, F16; BF16, BF16;
    i32, I32; u32, U32; f32, F32; i64, I64; u64, U64; f64, F64; usize, Usize;
}

/// A type of numbers that functions take by value where other instances take other numbers.
pub trait Number: Element {
    /// The number, if it is whole or a truth value, or if it is real.
    #[doc(hidden)]
    fn parts(self) -> (i128, f64);
}

macro_rules! numbers {
    ($($type:ty),*; $number:ident => $parts:expr) => {
        $(impl Number for $type {
            fn parts(self) -> (i128, f64) {
                let $number = self;
                $parts
            }
        })*
    };
}

numbers! { bool, i8, u8, i16, u16, i32, u32, i64, u64, usize; number => (number as i128, 0.0) }
numbers! { f32, f64; number => (0, f64::from(number)) }

impl F16 {
    /// The nearest number, ties to even; what is too large is infinity.
    pub fn from_f32(number: f32) -> F16 {
        F16(narrowed_or_infinite(number, Dtype::F16, 5, 10))
    }

    pub fn to_f32(self) -> f32 {
        widened(self.0, 5, 10) as f32
    }
}

impl BF16 {
    /// The nearest number, ties to even; what is too large is infinity.
    pub fn from_f32(number: f32) -> BF16 {
        BF16(narrowed_or_infinite(number, Dtype::BF16, 8, 7))
    }

    pub fn to_f32(self) -> f32 {
        widened(self.0, 8, 7) as f32
    }
}

fn narrowed_or_infinite(number: f32, dtype: Dtype, exponent_bits: u32, fraction_bits: u32) -> u16 {
    let number = f64::from(number);
    let is_large = number.abs() >= rounds_to_infinity(dtype);
    let number = if is_large { f64::INFINITY.copysign(number) } else { number };
    narrowed(number, exponent_bits, fraction_bits) as u16
}

/// What rounds to infinity: the largest number of the type and half a unit in its last place.
fn rounds_to_infinity(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F16 => 65520.0,
        Dtype::BF16 => 339617752923046005526922703901628039168.0,
        _ => 340282356779733661637539395458142568448.0,
    }
}

/// A number rounded to nearest, ties to even, as the bits of a 16-bit float. Takes no number that rounds to infinity,
/// but infinity itself.
fn narrowed(number: f64, exponent_bits: u32, fraction_bits: u32) -> u64 {
    let bits = number.to_bits();
    let sign = (bits >> 63) << 15;
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let mut biased = (bits >> 52 & 2047) as i32 - 1023 + bias;
    let mut significand = bits & ((1 << 52) - 1);
    if bits >> 52 & 2047 == 2047 {
        let quiet = if significand != 0 { 1 << (fraction_bits - 1) } else { 0 };
        return sign | ((1 << exponent_bits) - 1) << fraction_bits | quiet;
    }
    significand |= 1 << 52;
    let mut dropped = 52 - fraction_bits as i32;
    if biased < 1 {
        // A subnormal number: fewer bits.
        dropped += 1 - biased;
        biased = 1;
    }
    if dropped > 54 {
        return sign;
    }
    let mut kept = significand >> dropped;
    let rest = significand & ((1 << dropped) - 1);
    let half = 1 << (dropped - 1);
    kept += u64::from(rest > half || (rest == half && kept & 1 == 1));
    sign | (((biased as u64 - 1) << fraction_bits) + kept)
}

fn widened(bits: u16, exponent_bits: u32, fraction_bits: u32) -> f64 {
    let bits = u64::from(bits);
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    let exponent = (bits >> fraction_bits) as i64 & ((1 << exponent_bits) - 1);
    let fraction = bits & ((1 << fraction_bits) - 1);
    let sign = bits >> 15 << 63;
    if exponent == 0 {
        // A subnormal number: so many times the smallest.
        let unit = f64::from_bits(((1 - bias - i64::from(fraction_bits) + 1023) as u64) << 52);
        let number = fraction as f64 * unit;
        return if sign != 0 { -number } else { number };
    }
    let biased = if exponent == (1 << exponent_bits) - 1 { 2047 } else { exponent - bias + 1023 };
    f64::from_bits((biased as u64) << 52 | sign | fraction << (52 - fraction_bits))
}
