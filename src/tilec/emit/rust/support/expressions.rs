// ---- Inner: expressions

fn noted(found: Option<i128>, e: &mut Evaluation) -> i128 {
    e.overflow |= found.is_none();
    found.unwrap_or(0)
}

pub(super) fn add(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    noted(a.checked_add(b), e)
}

pub(super) fn sub(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    noted(a.checked_sub(b), e)
}

pub(super) fn mul(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    noted(a.checked_mul(b), e)
}

/// Toward zero; 0 where b is 0.
pub(super) fn div(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    e.division_by_zero |= b == 0;
    if b == 0 { 0 } else { noted(a.checked_div(b), e) }
}

/// What `div` leaves; a where b is 0.
pub(super) fn rem(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    e.division_by_zero |= b == 0;
    if b == 0 { a } else { a.wrapping_rem(b) }
}

/// Upward; 0 where b is 0.
pub(super) fn ceildiv(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    let (quotient, rest) = (div(a, b, e), rem(a, b, e));
    quotient + i128::from(b != 0 && rest != 0 && (rest < 0) == (b < 0))
}

pub(super) fn shl(a: i128, b: i128, e: &mut Evaluation) -> i128 {
    mul(a, 1 << (b & 63), e)
}

pub(super) fn shr(a: i128, b: i128) -> i128 {
    a >> (b & 63)
}

pub(super) fn abs(a: i128, e: &mut Evaluation) -> i128 {
    noted(a.checked_abs(), e)
}

/// The number where one is NaN; -0.0 is below 0.0.
pub(super) fn real_min(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a {
        return b;
    }
    if a == 0.0 && b == 0.0 { -(-a - b) } else { a }
}

pub(super) fn real_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a {
        return b;
    }
    if a == 0.0 && b == 0.0 { a + b } else { a }
}

pub(super) fn real_abs(a: f64) -> f64 {
    a.abs()
}

/// Notes what does not fit in 64 bits.
pub(super) fn in_64(a: i128, e: &mut Evaluation) -> i128 {
    e.overflow |= i64::try_from(a).is_err();
    a
}

/// The low bits of what may have more than `i128`.
pub(super) fn low_mul(a: i128, b: i128) -> i128 {
    i128::from((a as u64).wrapping_mul(b as u64))
}

pub(super) fn low_shl(a: i128, b: i128) -> i128 {
    i128::from((a as u64) << (b & 63))
}

macro_rules! kept_bits {
    ($($name:ident, $type:ty;)*) => {
        // The low bits, read as that type.
        $(pub(super) fn $name(a: i128) -> i128 {
            a as $type as i128
        })*
    };
}

kept_bits! {
    to_i8, i8; to_u8, u8; to_i16, i16; to_u16, u16; to_i32, i32; to_u32, u32; to_i64, i64; to_u64, u64;
}
