/* ---- Inner: scalars ------------------------------------------------------------------------------------------------ */

TILEC_INNER tilec_status tilec_take_whole(const tilec_parameter *parameter, tilec_value *value, uint64_t *bits)
{
    int is_signed = parameter->dtype == TILEC_I8 || parameter->dtype == TILEC_I16 || parameter->dtype == TILEC_I32 ||
                    parameter->dtype == TILEC_I64;
    int width = 8 * (int)tilec_dtype_bytes(parameter->dtype);
    tilec_wide high = (tilec_wide)1 << (width - (is_signed || parameter->dtype == TILEC_USIZE));
    tilec_wide low = is_signed ? -high : 0;
    if (value->kind != TILEC_WHOLE)
        return tilec_fail(TILEC_ERROR_SCALAR, "`%s`: expected an integer of type `%s`, got %s", parameter->name,
                          tilec_dtype_name(parameter->dtype), tilec_value_text(*value).text);
    if (value->whole < low || value->whole >= high)
        return tilec_fail(TILEC_ERROR_SCALAR, "`%s`: expected a number of type `%s` (%s to %s), got %s",
                          parameter->name, tilec_dtype_name(parameter->dtype), tilec_number(low, 10).text,
                          tilec_number(high - 1, 10).text, tilec_value_text(*value).text);
    *bits = (uint64_t)value->whole;
    return TILEC_SUCCESS;
}

TILEC_INNER tilec_status tilec_out_of_range(const tilec_parameter *parameter, const tilec_value *value)
{
    return tilec_fail(TILEC_ERROR_SCALAR, "`%s`: %s is out of the range of `%s`", parameter->name,
                      tilec_value_text(*value).text, tilec_dtype_name(parameter->dtype));
}

/* What rounds to infinity: the largest number of the type and half a unit in its last place. */
TILEC_INNER double tilec_rounds_to_infinity(int32_t dtype)
{
    if (dtype == TILEC_F16)
        return 65520.0;
    return dtype == TILEC_BF16 ? 339617752923046005526922703901628039168.0 : 340282356779733661637539395458142568448.0;
}

TILEC_INNER tilec_status tilec_take_real(const tilec_parameter *parameter, tilec_value *value, uint64_t *bits)
{
    double number = value->kind == TILEC_REAL ? value->real : (double)value->whole;
    if (value->kind == TILEC_TRUTH)
        return tilec_fail(TILEC_ERROR_SCALAR, "`%s`: expected a number of type `%s`, got %s", parameter->name,
                          tilec_dtype_name(parameter->dtype), tilec_value_text(*value).text);
    if (parameter->dtype == TILEC_F64) {
        memcpy(bits, &number, sizeof number);
    } else {
        double size = tilec_real_abs(number);
        if (size >= tilec_rounds_to_infinity(parameter->dtype) && size - size == 0)
            return tilec_out_of_range(parameter, value);
        if (parameter->dtype == TILEC_F32) {
            float narrow = (float)number;
            uint32_t narrow_bits;
            memcpy(&narrow_bits, &narrow, sizeof narrow);
            *bits = narrow_bits;
            number = narrow;
        } else {
            int exponent_bits = parameter->dtype == TILEC_F16 ? 5 : 8;
            *bits = tilec_narrowed(number, exponent_bits, 15 - exponent_bits);
            number = tilec_widened(*bits, exponent_bits, 15 - exponent_bits);
        }
    }
    value->kind = TILEC_REAL;
    value->real = number;
    return TILEC_SUCCESS;
}

TILEC_INNER tilec_status tilec_take_scalar(const tilec_parameter *parameter, tilec_value *value, uint64_t *bits)
{
    if (parameter->dtype == TILEC_BOOL) {
        if (value->kind != TILEC_TRUTH)
            return tilec_fail(TILEC_ERROR_SCALAR, "`%s`: expected a `bool`, got %s", parameter->name,
                              tilec_value_text(*value).text);
        *bits = value->whole != 0;
        return TILEC_SUCCESS;
    }
    if (parameter->dtype == TILEC_F16 || parameter->dtype == TILEC_BF16 || parameter->dtype == TILEC_F32 ||
        parameter->dtype == TILEC_F64)
        return tilec_take_real(parameter, value, bits);
    return tilec_take_whole(parameter, value, bits);
}

TILEC_INNER tilec_status tilec_take_scalars(tilec_call *call)
{
    const tilec_kernel *kernel = call->kernel;
    int32_t p;
    for (p = 0; p < kernel->parameter_count; p++) {
        tilec_value *value = &call->values[kernel->dim_count + p];
        tilec_status status;
        *value = call->arguments[p].value;
        if (kernel->parameters[p].rank >= 0)
            continue;
        status = tilec_take_scalar(&kernel->parameters[p], value, &call->bits[p]);
        if (status)
            return status;
    }
    return TILEC_SUCCESS;
}

