"""Pipelines in Rust do what those in C are tested to do, by the same tests."""

from __future__ import annotations

import pytest

from tests.emit.pipeline_calling import (
    CHECK,
    GRAPH,
    LAUNCH,
    LAUNCH_ON,
    LAUNCH_WITH,
    PLAN,
    WORKSPACE,
)
from tests.emit.statuses import STATUS
from tests.emit.test_emitted_pipelines import (  # noqa: F401
    test_graphs_have_the_order_of_the_launches,
    test_launches_are_side_by_side_where_they_have_no_order,
    test_launches_are_those_of_the_runtime,
    test_numbers_that_64_bits_do_not_hold_are_refused,
    test_of_a_part_of_a_family_what_was_measured_counts,
    test_on_one_stream_a_launch_that_may_starts_early_but_the_first,
    test_plans_are_those_of_the_runtime,
    test_streams_are_taken_as_the_runtime_takes_them,
    test_streams_keep_the_order_of_the_launches,
)
from tests.emit.test_graphs import (  # noqa: F401  (they run here with other fixtures)
    test_a_graph_is_launched_on_any_stream,
    test_a_graph_lives_in_a_context_of_its_device,
    test_a_replay_that_fails_is_an_error,
    test_an_instance_may_change_with_the_arguments,
    test_an_update_that_the_driver_refuses_changes_nothing,
    test_an_update_whose_graph_the_driver_refuses_keeps_the_old_one,
    test_other_arguments_are_set_in_the_graph_that_is_there,
    test_where_the_driver_refuses_a_graph_nothing_is_left_over,
)
from tests.emit.test_pipeline_failures import (  # noqa: F401
    BROKEN,
    STREAMS,
    UNFIT,
    summed,
    test_a_failed_load_is_an_error_before_anything_is_launched,
    test_a_launch_is_in_a_context_of_its_device_and_leaves_the_current_one,
    test_a_stream_of_another_device_is_refused,
    test_a_workspace_around_a_tensor_without_axes_is_refused,
    test_no_work_needs_no_driver,
    test_sixteen_threads_run_pipelines_at_once,
    test_the_first_instance_that_takes_the_arguments_is_run,
    test_where_the_driver_refuses_midway_nothing_is_left_over,
    test_without_memory_nothing_is_launched,
)

WAYS = (LAUNCH, CHECK, PLAN, WORKSPACE, LAUNCH_WITH, LAUNCH_ON, GRAPH)
# References of Rust are never null.
REFUSED = [(call, status, said) for call, status, said in BROKEN if status != "NULL"]


@pytest.mark.parametrize("what", WAYS)
def test_a_broken_contract_is_refused_by_name_and_nothing_is_done(what, pipelines):
    for (name, arguments), status, said in REFUSED:
        called = pipelines.run(name, arguments, what, streams=STREAMS, workspace=(2**52, 2**50))
        assert said in called.message
        assert (called.status, called.graph) == (STATUS[f"TILEC_ERROR_{status}"], None)
    assert pipelines.noted.count == pipelines.fake.launches == 0


def test_a_workspace_that_will_not_do_is_refused(pipelines):
    pipelines.fake.second_from, pipelines.fake.host_from = 2**55, 2**56
    for workspace, status, said in UNFIT:
        called = pipelines.run(*summed(), LAUNCH_WITH, workspace=workspace)
        assert f"`sums`: {said}" in called.message
        assert called.status == STATUS[f"TILEC_ERROR_{status}"]
    assert pipelines.noted.count == 0
