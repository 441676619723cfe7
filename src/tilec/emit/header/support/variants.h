/* ---- Inner: which variants take the shapes, and their grids -------------------------------------------------------- */

TILEC_INNER tilec_wide tilec_rounded_up(tilec_wide number, int32_t multiple)
{
    return (number + multiple - 1) / multiple * multiple;
}

TILEC_INNER int tilec_set_grid(uint32_t *grid, tilec_wide x, tilec_wide y, tilec_wide z)
{
    if (x > TILEC_GRID_X_LIMIT || y > TILEC_GRID_YZ_LIMIT || z > TILEC_GRID_YZ_LIMIT)
        return 0;
    grid[0] = (uint32_t)x;
    grid[1] = (uint32_t)y;
    grid[2] = (uint32_t)z;
    return 1;
}

/* The blocks of a variant, where there are programs; 0 if the hardware has not so many, or the variant does not
 * (docs/abi.md, "Launch geometry"). */
TILEC_INNER int tilec_grid_of(const tilec_call *call, const tilec_variant *variant, int32_t sm_count, uint32_t *grid)
{
    int32_t rank = call->kernel->grid_rank, axis;
    tilec_wide x = rank > 0 ? call->extents[rank - 1] : 1, y = rank > 1 ? call->extents[rank - 2] : 1, z = 1;
    const int32_t *cluster = variant->cluster;
    for (axis = 0; axis < rank - 2; axis++)
        z *= call->extents[axis];
    if (variant->map_count && call->programs > TILEC_NUMBERED_LIMIT)
        return 0;
    if (variant->persistent_blocks_per_sm) {
        tilec_wide blocks = (tilec_wide)variant->persistent_blocks_per_sm * sm_count / cluster[0] * cluster[0];
        tilec_wide wanted = tilec_min(tilec_rounded_up(call->programs, cluster[0]), blocks);
        return tilec_set_grid(grid, tilec_max(wanted, cluster[0]), 1, 1);
    }
    if (variant->split == 1 && cluster[0] * cluster[1] * cluster[2] > 1)
        return tilec_set_grid(grid, tilec_rounded_up(x, cluster[0]), tilec_rounded_up(y, cluster[1]),
                              tilec_rounded_up(z, cluster[2]));
    if (!(1 < y && y <= TILEC_GRID_YZ_LIMIT && z <= TILEC_GRID_YZ_LIMIT && x <= TILEC_GRID_X_LIMIT)) {
        x = tilec_min(call->programs, TILEC_GRID_X_LIMIT); /* folded: z counts on where x ends */
        y = 1;
        z = (call->programs + x - 1) / x;
    }
    return tilec_set_grid(grid, x * variant->split, y, z);
}

TILEC_INNER int tilec_strides_fit(const tilec_tensor *tensor, int64_t multiple_bytes)
{
    int32_t axis;
    for (axis = 0; axis < tensor->rank - 1; axis++)
        if ((tilec_wide)tilec_step(tensor, axis) * tilec_dtype_bytes(tensor->dtype) % multiple_bytes)
            return 0;
    return 1;
}

/* A stride as tensor maps have it: any will do along an axis of one element. */
TILEC_INNER tilec_wide tilec_map_stride(const tilec_tensor *tensor, int32_t axis)
{
    return tensor->extents[axis] > 1 ? (tilec_wide)tensor->strides[axis] * tilec_dtype_bytes(tensor->dtype) : 128;
}

/* Whether CUDA can describe a tensor, but for its address, by a map (docs/abi.md, "Tensor maps"). */
TILEC_INNER int tilec_is_mappable(const tilec_wanted_map *wanted, const tilec_tensor *tensor)
{
    int32_t axis, last = tensor->rank - 1;
    if (tensor->rank > TILEC_MAP_RANKS)
        return 0;
    for (axis = 0; axis <= last; axis++)
        if (tensor->extents[axis] < 1 || tensor->extents[axis] > INT32_MAX)
            return 0;
    for (axis = 0; axis < last; axis++) {
        tilec_wide stride = tilec_map_stride(tensor, axis);
        if (stride <= 0 || stride >= (tilec_wide)1 << 40 || stride % 16)
            return 0;
    }
    return !(wanted->writes && tensor->extents[last] * tilec_dtype_bytes(tensor->dtype) % 16);
}

/* Whether shapes and strides allow a variant, whatever the addresses. */
TILEC_INNER int tilec_fits(const tilec_call *call, const tilec_variant *variant)
{
    int32_t i;
    for (i = 0; i < variant->precondition_count; i++) {
        const tilec_precondition *wanted = &variant->preconditions[i];
        const tilec_tensor *tensor = call->arguments[wanted->parameter].tensor;
        if (tensor->rank && tensor->extents[tensor->rank - 1] % wanted->row_elements)
            return 0;
        if (!tilec_is_empty(tensor) && !tilec_strides_fit(tensor, wanted->stride_bytes))
            return 0;
    }
    for (i = 0; i < variant->map_count; i++)
        if (!tilec_is_mappable(&variant->maps[i], call->arguments[variant->maps[i].parameter].tensor))
            return 0;
    return 1;
}

/* Whether the addresses allow a variant too. */
TILEC_INNER int tilec_is_aligned(const tilec_call *call, const tilec_variant *variant)
{
    int32_t i;
    for (i = 0; i < variant->precondition_count; i++) {
        const tilec_precondition *wanted = &variant->preconditions[i];
        const tilec_tensor *tensor = call->arguments[wanted->parameter].tensor;
        if (!tilec_is_empty(tensor) && (uintptr_t)tensor->data % (uint64_t)wanted->base_bytes)
            return 0;
    }
    for (i = 0; i < variant->map_count; i++)
        if ((uintptr_t)call->arguments[variant->maps[i].parameter].tensor->data % 16)
            return 0;
    return 1;
}

