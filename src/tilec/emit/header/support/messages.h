/* ---- Inner: messages ----------------------------------------------------------------------------------------------- */

TILEC_INNER __attribute__((format(printf, 2, 3))) tilec_status tilec_fail(tilec_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tilec_message_1, sizeof tilec_message_1, format, arguments);
    va_end(arguments);
    return status;
}

/* Puts the name of an instance before the message. */
TILEC_INNER tilec_status tilec_blame(const tilec_kernel *kernel, tilec_status status)
{
    char said[TILEC_MESSAGE_BYTES];
    memcpy(said, tilec_message_1, sizeof said);
    /* Cut off where there is no room: said so to the compiler by the precision. */
    return tilec_fail(status, "`%.500s`: %.3500s", kernel->symbol, said);
}

typedef struct tilec_text {
    char text[320];
} tilec_text;

/* A wide number in some base; of base 16 with 0x. */
TILEC_INNER tilec_text tilec_number(tilec_wide number, int base)
{
    tilec_text made;
    char digits[140];
    int count = 0, at = 0;
    __extension__ unsigned __int128 rest = (unsigned __int128)number;
    memset(&made, 0, sizeof made);
    if (number < 0) {
        made.text[at++] = '-';
        rest = 0 - rest;
    }
    if (base == 16) {
        made.text[at++] = '0';
        made.text[at++] = 'x';
    }
    do {
        digits[count++] = "0123456789abcdef"[(int)(rest % (unsigned)base)];
        rest /= (unsigned)base;
    } while (rest);
    while (count > 0)
        made.text[at++] = digits[--count];
    return made;
}

/* `(4, 64)`, and `(4,)` for one number. */
TILEC_INNER tilec_text tilec_tuple(const int64_t *numbers, int32_t count)
{
    tilec_text made;
    size_t at = 1;
    int32_t i;
    memset(&made, 0, sizeof made);
    made.text[0] = '(';
    if (count > TILEC_RANKS)
        count = TILEC_RANKS;
    for (i = 0; i < count; i++)
        at += (size_t)snprintf(made.text + at, 24, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    strcpy(made.text + at, count == 1 ? ",)" : ")");
    return made;
}

TILEC_INNER int tilec_reads_back(const char *text, double number)
{
    double back;
    return sscanf(text, "%lf", &back) == 1 && back == number;
}

/* With the last digit one more: below a power of two its neighbours are half as far, so that the text of as many digits
 * that is the nearest may be of another number, where the one above it is not. */
TILEC_INNER int tilec_next_reads_back(char *text, double number)
{
    char *end = strchr(text, 'e');
    if (!end || end[-1] == '9')
        return 0;
    ++end[-1];
    if (tilec_reads_back(text, number))
        return 1;
    --end[-1];
    return 0;
}

/* The shortest text that reads back as the same number, as Python has it: `65520.0`, `1e+16`. */
TILEC_INNER tilec_text tilec_real_text(double number)
{
    tilec_text made;
    int digits = 0, exponent = 0;
    memset(&made, 0, sizeof made);
    do
        snprintf(made.text, sizeof made.text, "%.*e", digits, number);
    while (++digits < 17 && !tilec_reads_back(made.text, number) && !tilec_next_reads_back(made.text, number));
    if (number - number != 0) /* infinity, or no number, which has no sign to tell */
        strcpy(made.text, number < 0 ? "-inf" : number > 0 ? "inf" : "nan");
    else if (sscanf(strchr(made.text, 'e') + 1, "%d", &exponent) == 1 && exponent >= -4 && exponent < 16)
        snprintf(made.text, sizeof made.text, "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 1, number);
    return made;
}

TILEC_INNER tilec_text tilec_value_text(tilec_value value)
{
    tilec_text made;
    if (value.kind == TILEC_REAL)
        return tilec_real_text(value.real);
    if (value.kind == TILEC_WHOLE)
        return tilec_number(value.whole, 10);
    memset(&made, 0, sizeof made);
    strcpy(made.text, value.whole ? "True" : "False");
    return made;
}

/* `, where N = 4, M = 2`: the values that a claim mentions. Nothing for none. */
typedef struct tilec_names {
    char text[1024];
} tilec_names;

TILEC_INNER tilec_names tilec_where(const tilec_kernel *kernel, const tilec_claim *claim, const tilec_value *values)
{
    tilec_names made;
    size_t at = 0;
    const int32_t *one;
    memset(&made, 0, sizeof made);
    for (one = claim->named; *one >= 0 && at < sizeof made.text; one++) {
        const char *name =
            *one < kernel->dim_count ? kernel->dims[*one] : kernel->parameters[*one - kernel->dim_count].name;
        at += (size_t)snprintf(made.text + at, sizeof made.text - at, "%s%.200s = %s", at ? ", " : ", where ", name,
                               tilec_value_text(values[*one]).text);
    }
    return made;
}

