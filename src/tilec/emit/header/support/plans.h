/* ---- Inner: the plan of a pipeline ------------------------------------------------------------------------------- */

/* Says of each launch, in order, what it would be; of those that have room. */
TILEC_INNER tilec_status tilec_pipeline_plan(const tilec_pipelines *set, const tilec_argument *arguments,
                                             tilec_plan *plans, int32_t plan_room, int32_t *plan_count)
{
    tilec_run run;
    tilec_status status;
    if (!plan_count || (!plans && plan_room > 0))
        return tilec_fail(TILEC_ERROR_NULL, "`%s`: `%s` is a null pointer", set->name,
                          plan_count ? "plans" : "plan_count");
    *plan_count = 0;
    tilec_open_run(&run, set, arguments, 1, TILEC_ROOM_OF(set));
    run.plans = plans;
    run.plan_room = plan_room;
    status = tilec_work_out_run(&run, 0);
    if (!status)
        *plan_count = run.pipeline->launch_count;
    tilec_close_run(&run);
    return status;
}
