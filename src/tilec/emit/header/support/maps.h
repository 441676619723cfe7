/* ---- Inner: tensor maps -------------------------------------------------------------------------------------------- */

/* All that a map depends on. */
typedef struct tilec_map_key {
    void *data;
    uint64_t extents[TILEC_MAP_RANKS], stride_bytes[TILEC_MAP_RANKS];
    uint32_t box[TILEC_MAP_RANKS], rank;
    int32_t data_type, swizzle, promotion, padding;
} tilec_map_key;

typedef struct tilec_known_map {
    tilec_map map;
    tilec_map_key key; /* rank 0: nothing yet */
} tilec_known_map;

/* By thread, so that nobody waits. */
enum { TILEC_KNOWN_MAPS = 32 };
TILEC_ONE __thread tilec_known_map tilec_maps_1[TILEC_KNOWN_MAPS];

/* CU_TENSOR_MAP_DATA_TYPE_..., by the number of the element type. */
TILEC_INNER int32_t tilec_map_type(const tilec_wanted_map *wanted, int32_t dtype)
{
    static const signed char types[] = {0, 0, 0, 0, 0, 0, 1, 1, 6, 9, 3, 2, 7, 5, 4, 8, 5};
    return wanted->rounds ? 11 : types[dtype];
}

/* What cuTensorMapEncodeTiled is told of a mappable tensor. */
TILEC_INNER tilec_map_key tilec_map_key_of(const tilec_wanted_map *wanted, const tilec_tensor *tensor, int32_t dtype)
{
    tilec_map_key key;
    int32_t i, rank = tensor->rank;
    memset(&key, 0, sizeof key);
    key.data = tensor->data;
    key.rank = (uint32_t)rank;
    key.data_type = tilec_map_type(wanted, dtype);
    key.swizzle = wanted->swizzle == 128 ? 3 : wanted->swizzle / 32;
    key.promotion = 3; /* 256 bytes at a time, but only where rows begin at multiples of 128 bytes */
    for (i = 0; i < rank; i++) {
        key.extents[i] = (uint64_t)tensor->extents[rank - 1 - i];
        key.box[i] = wanted->box[i];
        if (i < rank - 1)
            key.stride_bytes[i] = (uint64_t)tilec_map_stride(tensor, rank - 2 - i);
        if (key.stride_bytes[i] % 128)
            key.promotion = 2;
    }
    return key;
}

TILEC_INNER tilec_status tilec_map_refused(const tilec_kernel *kernel, const tilec_wanted_map *wanted,
                                           const tilec_tensor *tensor, int code)
{
    return tilec_fail(TILEC_ERROR_TENSOR_MAP,
                      "`%s` was not launched: the driver refuses a tensor map of `%s` (%s): %s", kernel->symbol,
                      kernel->parameters[wanted->parameter].name, tilec_place(tensor).text,
                      tilec_cuda_error(code));
}

/* The map of an argument, made by the driver or remembered. */
TILEC_INNER tilec_status tilec_need_map(const tilec_kernel *kernel, const tilec_wanted_map *wanted,
                                        const tilec_tensor *tensor, tilec_map *map)
{
    static const uint32_t ones[TILEC_MAP_RANKS] = {1, 1, 1, 1, 1};
    tilec_map_key key = tilec_map_key_of(wanted, tensor, kernel->parameters[wanted->parameter].dtype);
    uint64_t hash = tilec_mixed(tilec_mixed((uint64_t)(uintptr_t)key.data, key.extents[0]), key.box[0]);
    tilec_known_map *known = &tilec_maps_1[hash % TILEC_KNOWN_MAPS];
    int code;
    if (memcmp(&known->key, &key, sizeof key)) {
        /* A vector has no strides to tell, and a null pointer might be refused: it gets one that nobody reads. */
        code = tilec_state_1.driver.map_encode(&known->map, key.data_type, key.rank, key.data, key.extents,
                                               key.stride_bytes, key.box, ones, 0, key.swizzle, key.promotion, 0);
        memset(&known->key, 0, sizeof known->key);
        if (code)
            return tilec_map_refused(kernel, wanted, tensor, code);
        known->key = key;
    }
    *map = known->map;
    return TILEC_SUCCESS;
}

