/* ---- Inner: expressions -------------------------------------------------------------------------------------------- */

TILEC_INNER tilec_wide tilec_add(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    tilec_wide made;
    e->overflow |= __builtin_add_overflow(a, b, &made);
    return made;
}

TILEC_INNER tilec_wide tilec_sub(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    tilec_wide made;
    e->overflow |= __builtin_sub_overflow(a, b, &made);
    return made;
}

TILEC_INNER tilec_wide tilec_mul(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    tilec_wide made;
    e->overflow |= __builtin_mul_overflow(a, b, &made);
    return made;
}

/* Toward zero; 0 where b is 0. */
TILEC_INNER tilec_wide tilec_div(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    e->division_by_zero |= b == 0;
    if (b == -1)
        return tilec_sub(0, a, e);
    return b ? a / b : 0;
}

/* What tilec_div leaves; a where b is 0. */
TILEC_INNER tilec_wide tilec_rem(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    e->division_by_zero |= b == 0;
    if (b == -1)
        return 0;
    return b ? a % b : a;
}

/* Upward; 0 where b is 0. */
TILEC_INNER tilec_wide tilec_ceildiv(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    tilec_wide quotient = tilec_div(a, b, e), rest = tilec_rem(a, b, e);
    return quotient + (b != 0 && rest != 0 && (rest < 0) == (b < 0));
}

TILEC_INNER tilec_wide tilec_shl(tilec_wide a, tilec_wide b, tilec_evaluation *e)
{
    return tilec_mul(a, (tilec_wide)1 << (int)(b & 63), e);
}

TILEC_INNER tilec_wide tilec_shr(tilec_wide a, tilec_wide b)
{
    return a >> (int)(b & 63);
}

TILEC_INNER tilec_wide tilec_min(tilec_wide a, tilec_wide b) { return b < a ? b : a; }
TILEC_INNER tilec_wide tilec_max(tilec_wide a, tilec_wide b) { return b > a ? b : a; }
TILEC_INNER tilec_wide tilec_abs(tilec_wide a, tilec_evaluation *e) { return a < 0 ? tilec_sub(0, a, e) : a; }
TILEC_INNER int tilec_eq(tilec_wide a, tilec_wide b) { return a == b; }
TILEC_INNER int tilec_ne(tilec_wide a, tilec_wide b) { return a != b; }
TILEC_INNER int tilec_lt(tilec_wide a, tilec_wide b) { return a < b; }
TILEC_INNER int tilec_le(tilec_wide a, tilec_wide b) { return a <= b; }
TILEC_INNER int tilec_gt(tilec_wide a, tilec_wide b) { return a > b; }
TILEC_INNER int tilec_ge(tilec_wide a, tilec_wide b) { return a >= b; }

/* Notes what does not fit in 64 bits. */
TILEC_INNER tilec_wide tilec_in_64(tilec_wide a, tilec_evaluation *e)
{
    e->overflow |= a != (int64_t)a;
    return a;
}

/* The low bits of what may have more than tilec_wide. */
TILEC_INNER tilec_wide tilec_low_mul(tilec_wide a, tilec_wide b)
{
    return (tilec_wide)((uint64_t)a * (uint64_t)b);
}

TILEC_INNER tilec_wide tilec_low_shl(tilec_wide a, tilec_wide b)
{
    return (tilec_wide)((uint64_t)a << (int)(b & 63));
}

/* The low bits, read as that type. */
TILEC_INNER tilec_wide tilec_i8(tilec_wide a) { return (int8_t)a; }
TILEC_INNER tilec_wide tilec_u8(tilec_wide a) { return (uint8_t)a; }
TILEC_INNER tilec_wide tilec_i16(tilec_wide a) { return (int16_t)a; }
TILEC_INNER tilec_wide tilec_u16(tilec_wide a) { return (uint16_t)a; }
TILEC_INNER tilec_wide tilec_i32(tilec_wide a) { return (int32_t)a; }
TILEC_INNER tilec_wide tilec_u32(tilec_wide a) { return (uint32_t)a; }
TILEC_INNER tilec_wide tilec_i64(tilec_wide a) { return (int64_t)a; }
TILEC_INNER tilec_wide tilec_u64(tilec_wide a) { return (uint64_t)a; }

TILEC_INNER int tilec_real_eq(double a, double b) { return a == b; }
TILEC_INNER int tilec_real_ne(double a, double b) { return a != b; }
TILEC_INNER int tilec_real_lt(double a, double b) { return a < b; }
TILEC_INNER int tilec_real_le(double a, double b) { return a <= b; }
TILEC_INNER int tilec_real_gt(double a, double b) { return a > b; }
TILEC_INNER int tilec_real_ge(double a, double b) { return a >= b; }

/* The number where one is NaN; -0.0 is below 0.0. */
TILEC_INNER double tilec_real_min(double a, double b)
{
    if (a != a || b < a)
        return b;
    return a == 0 && b == 0 ? -(-a - b) : a;
}

TILEC_INNER double tilec_real_max(double a, double b)
{
    if (a != a || b > a)
        return b;
    return a == 0 && b == 0 ? a + b : a;
}

TILEC_INNER double tilec_real_abs(double a) { return a <= 0 ? 0 - a : a; }

