/* ---- Inner: the contract of addresses ------------------------------------------------------------------------------ */

TILEC_INNER tilec_status tilec_check_address(const char *name, const tilec_tensor *tensor)
{
    int64_t size = tilec_dtype_bytes(tensor->dtype);
    uintptr_t address = (uintptr_t)tensor->data;
    if (tilec_is_empty(tensor))
        return TILEC_SUCCESS;
    if (!address)
        return tilec_fail(TILEC_ERROR_ADDRESS, "`%s` has no memory: its address is 0 (was it freed?)", name);
    if (address % (uint64_t)size)
        return tilec_fail(TILEC_ERROR_ADDRESS, "`%s`: expected an address that is a multiple of %d bytes, got %s", name,
                          (int)size, tilec_number((tilec_wide)address, 16).text);
    if ((tilec_wide)address + tilec_span_bytes(tensor) > TILEC_ADDRESS_END)
        return tilec_fail(TILEC_ERROR_ADDRESS, "`%s`: %s bytes from address %s on pass the end of the address space", name,
                          tilec_number(tilec_span_bytes(tensor), 10).text, tilec_number((tilec_wide)address, 16).text);
    return TILEC_SUCCESS;
}

/* Whether two strided tensors share a byte: whether their addresses agree for some indices,
 *
 *     a + sum i[k] s[k] + e  =  b + sum j[k] t[k] + f        (e and f: bytes inside an element)
 *
 * With j and f counted from their far ends this is one sum of bounded multiples of positive coefficients,
 * sum c[k] x[k] = d with 0 <= x[k] <= m[k]. Equal coefficients merge, so that slices of one buffer with equal outer
 * strides come down to a question about their rows. The search takes coefficients in descending order; what the
 * smaller ones can still make up leaves few values for each. The bounded problem is hard in general: when the steps
 * are spent, the tensors count as overlapping. */
enum { TILEC_TERMS = 2 * TILEC_RANKS + 1, TILEC_STEPS = 2000 };

typedef struct tilec_search {
    tilec_wide coefficient[TILEC_TERMS], most[TILEC_TERMS];
    tilec_wide reach[TILEC_TERMS + 1];   /* the most that the terms from here on can make */
    tilec_wide divisor[TILEC_TERMS + 1]; /* what divides all that they can make */
    int32_t count, steps;
} tilec_search;

/* One more term, in its place or merged into the one of its coefficient. */
TILEC_INNER void tilec_add_term(tilec_search *search, tilec_wide coefficient, tilec_wide most)
{
    int32_t place = search->count, i;
    if (coefficient == 0 || most == 0)
        return;
    while (place > 0 && search->coefficient[place - 1] < coefficient)
        place--;
    if (place > 0 && search->coefficient[place - 1] == coefficient) {
        search->most[place - 1] += most;
        return;
    }
    for (i = search->count++; i > place; i--) {
        search->coefficient[i] = search->coefficient[i - 1];
        search->most[i] = search->most[i - 1];
    }
    search->coefficient[place] = coefficient;
    search->most[place] = most;
}

TILEC_INNER tilec_wide tilec_gcd(tilec_wide a, tilec_wide b)
{
    while (b) {
        tilec_wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Whether the terms from `index` on can sum to `total`; yes when the steps are spent. */
TILEC_INNER int tilec_can_make(tilec_search *search, tilec_wide total, int32_t index)
{
    tilec_wide coefficient, least, times;
    if (++search->steps > TILEC_STEPS)
        return 1;
    if (total < 0 || total > search->reach[index])
        return 0;
    if (index == search->count)
        return 1;
    if (total % search->divisor[index])
        return 0;
    coefficient = search->coefficient[index];
    least = total - search->reach[index + 1];
    least = least <= 0 ? 0 : (least + coefficient - 1) / coefficient;
    for (times = tilec_min(search->most[index], total / coefficient); times >= least; times--)
        if (tilec_can_make(search, total - coefficient * times, index + 1))
            return 1;
    return 0;
}

TILEC_INNER void tilec_add_terms(tilec_search *search, const tilec_tensor *tensor)
{
    int64_t size = tilec_dtype_bytes(tensor->dtype);
    int32_t axis;
    tilec_add_term(search, 1, size - 1);
    for (axis = 0; axis < tensor->rank; axis++)
        tilec_add_term(search, (tilec_wide)tensor->strides[axis] * size, tensor->extents[axis] - 1);
}

TILEC_INNER int tilec_may_overlap(const tilec_tensor *one, const tilec_tensor *other)
{
    tilec_wide start = (tilec_wide)(uintptr_t)one->data, end = start + tilec_span_bytes(one);
    tilec_wide other_start = (tilec_wide)(uintptr_t)other->data, other_end = other_start + tilec_span_bytes(other);
    tilec_search search;
    int32_t i;
    if (end <= other_start || other_end <= start)
        return 0;
    memset(&search, 0, sizeof search);
    tilec_add_terms(&search, one);
    tilec_add_terms(&search, other);
    for (i = search.count; i-- > 0;) {
        search.reach[i] = search.reach[i + 1] + search.coefficient[i] * search.most[i];
        search.divisor[i] = tilec_gcd(search.divisor[i + 1], search.coefficient[i]);
    }
    /* The far end of `other` is where its counted-down indices are all zero. */
    return tilec_can_make(&search, other_end - 1 - start, 0);
}

/* `bytes 0x100 to 0x200 (shape (64,), strides (1,))` */
TILEC_INNER tilec_names tilec_place(const tilec_tensor *tensor)
{
    tilec_wide start = (tilec_wide)(uintptr_t)tensor->data;
    tilec_names made;
    snprintf(made.text, sizeof made.text, "bytes %.40s to %.40s (shape %.240s, strides %.240s)",
             tilec_number(start, 16).text, tilec_number(start + tilec_span_bytes(tensor), 16).text,
             tilec_tuple(tensor->extents, tensor->rank).text, tilec_tuple(tensor->strides, tensor->rank).text);
    return made;
}

/* That two arguments, one of which is written, share no byte. */
TILEC_INNER tilec_status tilec_check_overlap(const tilec_call *call, int32_t one, int32_t other)
{
    const tilec_parameter *parameters = call->kernel->parameters;
    const tilec_tensor *tensor = call->arguments[one].tensor, *other_tensor = call->arguments[other].tensor;
    if (!(parameters[one].is_written || parameters[other].is_written))
        return TILEC_SUCCESS;
    if (tilec_is_empty(tensor) || tilec_is_empty(other_tensor) || !tilec_may_overlap(tensor, other_tensor))
        return TILEC_SUCCESS;
    if (!parameters[one].is_written) {
        const tilec_tensor *first = tensor;
        int32_t number = one;
        tensor = other_tensor;
        other_tensor = first;
        one = other;
        other = number;
    }
    return tilec_fail(TILEC_ERROR_OVERLAP, "`%s` is written and overlaps `%s`: %s and %s", parameters[one].name,
                      parameters[other].name, tilec_place(tensor).text, tilec_place(other_tensor).text);
}

TILEC_INNER tilec_status tilec_check_addresses(const tilec_call *call)
{
    const tilec_kernel *kernel = call->kernel;
    int32_t p, q;
    tilec_status status;
    for (p = 0; p < kernel->parameter_count; p++)
        if (kernel->parameters[p].rank >= 0) {
            status = tilec_check_address(kernel->parameters[p].name, call->arguments[p].tensor);
            if (status)
                return status;
        }
    for (p = 0; p < kernel->parameter_count; p++)
        for (q = 0; q < p; q++)
            if (kernel->parameters[p].rank >= 0 && kernel->parameters[q].rank >= 0) {
                status = tilec_check_overlap(call, q, p);
                if (status)
                    return status;
            }
    return TILEC_SUCCESS;
}

