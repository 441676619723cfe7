/* ---- Inner: which instance ----------------------------------------------------------------------------------------- */

/* What of a group takes the arguments, as far as addresses do not matter. */
typedef struct tilec_fitting {
    int32_t first, count; /* the first that does, and how many do */
    int32_t cheapest;     /* by the model of costs; -1 if one has none */
    int64_t measured;     /* the one that was measured as the fastest, or -1 */
    int is_measured;      /* it is among them */
} tilec_fitting;

/* Looks at all members, but for those without a variant for the shapes if `variants` asks for one. */
TILEC_INNER tilec_status tilec_fit_all(tilec_call *call, const tilec_group *group, int variants, tilec_fitting *found)
{
    tilec_wide least = 0;
    int32_t i;
    memset(found, 0, sizeof *found);
    found->measured = -1;
    for (i = 0; i < group->kernel_count; i++) {
        tilec_wide cycles;
        tilec_status status;
        if (tilec_fit(call, group->kernels[i]))
            continue;
        status = tilec_take_variant(call, 0);
        if (!status && group->kernel_count > 1)
            status = tilec_need_machine(call);
        if (status)
            return status;
        if (variants && !call->variant)
            continue;
        if (found->count++ == 0) {
            found->first = i;
            if (group->table_count)
                found->measured = tilec_measured(call, group);
        }
        found->is_measured |= i == found->measured;
        cycles = group->kernel_count > 1 ? tilec_cycles(call) : 0;
        if (cycles < 0)
            found->cheapest = -1;
        if (found->cheapest >= 0 && (found->count == 1 || cycles < least)) {
            found->cheapest = i;
            least = cycles;
        }
    }
    return TILEC_SUCCESS;
}

/* The member of a group to launch; -1 if none takes the arguments. */
TILEC_INNER tilec_status tilec_choose(tilec_call *call, const tilec_group *group, int32_t *chosen)
{
    tilec_fitting found;
    tilec_status status = tilec_fit_all(call, group, 1, &found);
    /* Members that no variant can launch at these shapes are no choice, if there is another. */
    if (!status && !found.count)
        status = tilec_fit_all(call, group, 0, &found);
    *chosen = -1;
    if (status || !found.count)
        return status;
    if (found.count == 1 || found.cheapest < 0)
        *chosen = found.first;
    else
        *chosen = found.cheapest;
    if (found.count > 1 && found.is_measured)
        *chosen = (int32_t)found.measured;
    return TILEC_SUCCESS;
}

/* What was chosen for some shapes, by thread: any member that takes the arguments is right, so that two shapes which
 * are taken for one cost time only. */
typedef struct tilec_memory {
    const tilec_build *build;
    uint64_t shapes;
    const tilec_kernel *kernel;
} tilec_memory;

enum { TILEC_REMEMBERED = 64 };
TILEC_ONE __thread tilec_memory tilec_memory_1[TILEC_REMEMBERED];

TILEC_INNER uint64_t tilec_mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* A hash of all that a choice depends on. */
TILEC_INNER uint64_t tilec_shapes_of(const tilec_call *call)
{
    const tilec_kernel *kernel = call->build->groups[0].kernels[0];
    uint64_t hash = (uint64_t)(call->device + 1);
    int32_t p, axis;
    for (p = 0; p < kernel->parameter_count; p++) {
        const tilec_tensor *tensor = call->arguments[p].tensor;
        uint64_t real;
        if (!tensor) {
            memcpy(&real, &call->arguments[p].value.real, sizeof real);
            hash = tilec_mixed(tilec_mixed(hash, (uint64_t)call->arguments[p].value.whole), real);
            continue;
        }
        hash = tilec_mixed(hash, (uint64_t)tensor->dtype << 32 | (uint32_t)tensor->rank);
        for (axis = 0; axis < tensor->rank && axis < TILEC_RANKS; axis++)
            hash = tilec_mixed(tilec_mixed(hash, (uint64_t)tensor->extents[axis]), (uint64_t)tensor->strides[axis]);
    }
    return hash;
}

/* Why no instance takes the arguments. */
TILEC_INNER tilec_status tilec_refuse(tilec_call *call)
{
    char reasons[TILEC_MESSAGE_BYTES];
    size_t at = 0;
    int mistyped, count = 0;
    int32_t g, k;
    tilec_status status = TILEC_SUCCESS;
    /* Those of other types are named only if all are. */
    for (mistyped = 0; mistyped < 2 && !count; mistyped++)
        for (g = 0; g < call->build->group_count; g++)
            for (k = 0; k < call->build->groups[g].kernel_count; k++) {
                const tilec_kernel *kernel = call->build->groups[g].kernels[k];
                if (tilec_is_of_types(call, kernel) == mistyped)
                    continue;
                status = tilec_fit(call, kernel);
                count++;
                if (at < sizeof reasons)
                    at += (size_t)snprintf(reasons + at, sizeof reasons - at, "\n  `%s`: %s", kernel->symbol,
                                           tilec_message_1);
            }
    if (count == 1)
        return tilec_fail(status, "%s", reasons + 3);
    return tilec_fail(TILEC_ERROR_NO_INSTANCE, "no instance of `%.200s` takes these arguments%.3800s", call->set->name,
                      reasons);
}

