/* ---- Inner: element types ------------------------------------------------------------------------------------------ */

TILEC_INNER const char *tilec_dtype_name(int32_t dtype)
{
    static const char *const names[] = {"?",    "bool", "i8",  "u8",  "f8e4m3", "f8e5m2", "i16", "u16",  "f16",
                                        "bf16", "i32",  "u32", "f32", "i64",    "u64",    "f64", "usize"};
    return dtype >= TILEC_BOOL && dtype <= TILEC_USIZE ? names[dtype] : "?";
}

TILEC_INNER int64_t tilec_dtype_bytes(int32_t dtype)
{
    if (dtype <= TILEC_F8E5M2)
        return 1;
    if (dtype <= TILEC_BF16)
        return 2;
    return dtype <= TILEC_F32 ? 4 : 8;
}

/* `usize` is a 64-bit number, which other libraries know under these names. */
TILEC_INNER int tilec_same_dtype(int32_t wanted, int32_t given)
{
    return wanted == given || (wanted == TILEC_USIZE && (given == TILEC_I64 || given == TILEC_U64));
}

/* A number rounded to nearest, ties to even, as the bits of a 16-bit float. Takes no number that rounds to infinity,
 * but infinity itself. */
TILEC_INNER uint64_t tilec_narrowed(double number, int exponent_bits, int fraction_bits)
{
    uint64_t bits, sign, significand, kept, rest, half;
    int bias = (1 << (exponent_bits - 1)) - 1, biased, dropped = 52 - fraction_bits;
    memcpy(&bits, &number, sizeof bits);
    sign = bits >> 63 << 15;
    biased = (int)(bits >> 52 & 2047) - 1023 + bias;
    significand = bits & (((uint64_t)1 << 52) - 1);
    if ((bits >> 52 & 2047) == 2047) /* infinity, or no number */
        return sign | (((uint64_t)1 << exponent_bits) - 1) << fraction_bits |
               (significand ? (uint64_t)1 << (fraction_bits - 1) : 0);
    significand |= (uint64_t)1 << 52;
    if (biased < 1) { /* a subnormal number: fewer bits */
        dropped += 1 - biased;
        biased = 1;
    }
    if (dropped > 54)
        return sign;
    kept = significand >> dropped;
    rest = significand & (((uint64_t)1 << dropped) - 1);
    half = (uint64_t)1 << (dropped - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return sign | ((((uint64_t)biased - 1) << fraction_bits) + kept);
}

TILEC_INNER double tilec_widened(uint64_t bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1), sign = bits >> 15 << 63, made;
    double number, unit;
    if (exponent == 0) { /* a subnormal number: so many times the smallest */
        made = (uint64_t)(1 - bias - fraction_bits + 1023) << 52;
        memcpy(&unit, &made, sizeof unit);
        number = (double)fraction * unit;
        return sign ? -number : number;
    }
    made = (uint64_t)(exponent == (1 << exponent_bits) - 1 ? 2047 : exponent - bias + 1023) << 52;
    made |= sign | fraction << (52 - fraction_bits);
    memcpy(&number, &made, sizeof number);
    return number;
}

