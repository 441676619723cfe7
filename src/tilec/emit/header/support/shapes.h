/* ---- Inner: the contract, but for addresses ------------------------------------------------------------------------ */

/* A call as far as it is worked out. */
typedef struct tilec_call {
    const tilec_set *set;
    const tilec_argument *arguments;
    const tilec_build *build; /* for the device, or the first where the device is not known */
    const tilec_kernel *kernel;
    const tilec_variant *variant;
    tilec_value *values; /* of Dims, then of parameters */
    uint64_t *bits;      /* of scalars, as they are passed */
    int32_t *devices;    /* of arguments, as far as this call has asked; otherwise TILEC_NOT_ASKED */
    int32_t *owners;     /* of Dims: the first parameter that names each */
    int64_t extents[TILEC_RANKS]; /* of the grid of programs */
    tilec_wide programs;
    int32_t device;      /* -1: not known */
    int32_t sm_count;    /* 0: not known yet */
    const char *card;    /* "" if it is not known */
    int needs_driver;    /* a launch; otherwise a device that is not there is one of one multiprocessor */
    uint32_t grid[3];
} tilec_call;

enum { TILEC_NOT_ASKED = -2 };

/* The memory that a call of so many Dims and parameters takes beside itself: what tilec_begin shares out. */
TILEC_INNER size_t tilec_room_bytes(int32_t value_count)
{
    return (size_t)value_count * (sizeof(tilec_value) + sizeof(uint64_t) + 2 * sizeof(int32_t));
}

/* On the stack of the function that calls: kernels have as many parameters as launches can pass. */
#define TILEC_ROOM_OF(set) __builtin_alloca(tilec_room_bytes((set)->value_count))

TILEC_INNER int tilec_is_empty(const tilec_tensor *tensor)
{
    int32_t axis;
    for (axis = 0; axis < tensor->rank; axis++)
        if (tensor->extents[axis] == 0)
            return 1;
    return 0;
}

/* Along an axis of one element there is nothing to step to. */
TILEC_INNER int64_t tilec_step(const tilec_tensor *tensor, int32_t axis)
{
    return tensor->extents[axis] > 1 ? tensor->strides[axis] : 0;
}

/* Bytes from the first element to past the last. */
TILEC_INNER tilec_wide tilec_span_bytes(const tilec_tensor *tensor)
{
    tilec_wide last = 0;
    int32_t axis;
    if (tilec_is_empty(tensor))
        return 0;
    for (axis = 0; axis < tensor->rank; axis++)
        last += (tilec_wide)(tensor->extents[axis] - 1) * tensor->strides[axis];
    return (last + 1) * tilec_dtype_bytes(tensor->dtype);
}

TILEC_INNER tilec_status tilec_check_type(const tilec_parameter *parameter, const tilec_tensor *tensor)
{
    int32_t axis;
    if (!tilec_same_dtype(parameter->dtype, tensor->dtype))
        return tilec_fail(TILEC_ERROR_DTYPE, "`%s`: expected elements of type `%s`, got `%s`", parameter->name,
                          tilec_dtype_name(parameter->dtype), tilec_dtype_name(tensor->dtype));
    if (tensor->rank != parameter->rank)
        return tilec_fail(TILEC_ERROR_RANK, "`%s`: expected %d axes, got %d (shape %s)", parameter->name,
                          (int)parameter->rank, (int)tensor->rank, tilec_tuple(tensor->extents, tensor->rank).text);
    for (axis = 0; axis < tensor->rank; axis++)
        if (parameter->extents[axis] >= 0 && parameter->extents[axis] != tensor->extents[axis])
            return tilec_fail(TILEC_ERROR_EXTENT, "`%s`: expected extent %lld of axis %d, got %lld", parameter->name,
                              (long long)parameter->extents[axis], (int)axis, (long long)tensor->extents[axis]);
    return TILEC_SUCCESS;
}

TILEC_INNER tilec_status tilec_check_limits(const char *name, const tilec_tensor *tensor)
{
    tilec_wide count = 1;
    int32_t axis;
    for (axis = 0; axis < tensor->rank; axis++) {
        long long extent = (long long)tensor->extents[axis];
        if (extent < 0)
            return tilec_fail(TILEC_ERROR_LIMIT, "`%s`: extent %lld of axis %d is negative", name, extent, (int)axis);
        if (extent > TILEC_COUNT_LIMIT)
            return tilec_fail(TILEC_ERROR_LIMIT, "`%s`: extent %lld of axis %d is above the limit of %lld", name,
                              extent, (int)axis, (long long)TILEC_COUNT_LIMIT);
    }
    for (axis = 0; axis < tensor->rank && count <= TILEC_ELEMENT_LIMIT; axis++)
        count *= tensor->extents[axis] > 1 ? tensor->extents[axis] : 1;
    if (count > TILEC_ELEMENT_LIMIT)
        return tilec_fail(TILEC_ERROR_LIMIT, "`%s`: shape %s has more elements than the limit of %lld", name,
                          tilec_tuple(tensor->extents, tensor->rank).text, (long long)TILEC_ELEMENT_LIMIT);
    return TILEC_SUCCESS;
}

/* Whether two indices may lie at one place. They do not where each stride, of axes of extent above 1, is at least the
 * span of the axes of smaller stride. */
TILEC_INNER int tilec_overlaps_itself(const tilec_tensor *tensor)
{
    int32_t order[TILEC_RANKS], count = 0, axis, place;
    tilec_wide span = 1;
    for (axis = 0; axis < tensor->rank; axis++) {
        if (tensor->extents[axis] == 1)
            continue;
        for (place = count++; place > 0 && tensor->strides[order[place - 1]] > tensor->strides[axis]; place--)
            order[place] = order[place - 1];
        order[place] = axis;
    }
    for (place = 0; place < count; place++) {
        int64_t stride = tensor->strides[order[place]];
        if (stride < span)
            return 1;
        span += (tilec_wide)(tensor->extents[order[place]] - 1) * stride;
    }
    return 0;
}

TILEC_INNER tilec_status tilec_check_form(const tilec_parameter *parameter, const tilec_tensor *tensor)
{
    const char *name = parameter->name;
    int32_t axis, last = tensor->rank - 1;
    tilec_status status = tilec_check_limits(name, tensor);
    if (status || tilec_is_empty(tensor))
        return status;
    for (axis = 0; axis < tensor->rank; axis++)
        if (tensor->extents[axis] > 1 && tensor->strides[axis] < 0)
            return tilec_fail(TILEC_ERROR_STRIDE, "`%s`: stride %lld of axis %d is negative", name,
                              (long long)tensor->strides[axis], (int)axis);
    if (last >= 0 && tensor->extents[last] > 1 && tensor->strides[last] != 1)
        return tilec_fail(TILEC_ERROR_STRIDE, "`%s`: expected stride 1 of the last axis, got %lld", name,
                          (long long)tensor->strides[last]);
    if (tilec_span_bytes(tensor) > TILEC_SPAN_LIMIT)
        return tilec_fail(TILEC_ERROR_STRIDE,
                          "`%s`: strides %s spread the elements of shape %s over %s bytes, above the limit of %s", name,
                          tilec_tuple(tensor->strides, tensor->rank).text,
                          tilec_tuple(tensor->extents, tensor->rank).text,
                          tilec_number(tilec_span_bytes(tensor), 10).text, tilec_number(TILEC_SPAN_LIMIT, 10).text);
    if (parameter->is_written && tilec_overlaps_itself(tensor))
        return tilec_fail(TILEC_ERROR_SELF_OVERLAP,
                          "`%s` is written, and its strides %s put several of its elements at one place (shape %s)",
                          name, tilec_tuple(tensor->strides, tensor->rank).text,
                          tilec_tuple(tensor->extents, tensor->rank).text);
    return TILEC_SUCCESS;
}

/* The first axis of a parameter that has a Dim. */
TILEC_INNER int32_t tilec_axis_of(const tilec_parameter *parameter, int32_t dim)
{
    int32_t axis = 0;
    while (parameter->extents[axis] != -1 - dim)
        axis++;
    return axis;
}

/* The value of each Dim; every tensor that names it agrees. */
TILEC_INNER tilec_status tilec_bind_dims(tilec_call *call)
{
    const tilec_kernel *kernel = call->kernel;
    int32_t p, axis, dim, *owner = call->owners;
    for (dim = 0; dim < kernel->dim_count; dim++)
        owner[dim] = -1;
    for (p = 0; p < kernel->parameter_count; p++) {
        const tilec_parameter *parameter = &kernel->parameters[p];
        for (axis = 0; axis < parameter->rank; axis++) {
            int64_t extent = call->arguments[p].tensor->extents[axis];
            if (parameter->extents[axis] >= 0)
                continue;
            dim = (int32_t)(-1 - parameter->extents[axis]);
            if (owner[dim] < 0) {
                owner[dim] = p;
                call->values[dim].kind = TILEC_WHOLE;
                call->values[dim].whole = extent;
            }
            if (call->values[dim].whole != extent)
                return tilec_fail(TILEC_ERROR_EXTENT,
                                  "`%s`: expected extent %s of axis %d (`%s`, as axis %d of `%s`), got %lld",
                                  parameter->name, tilec_number(call->values[dim].whole, 10).text, (int)axis,
                                  kernel->dims[dim], (int)tilec_axis_of(&kernel->parameters[owner[dim]], dim), kernel->parameters[owner[dim]].name,
                                  (long long)extent);
        }
    }
    return TILEC_SUCCESS;
}

