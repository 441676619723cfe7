"""Launchers in Rust do what those in C are tested to do, by the same tests."""

from __future__ import annotations

from random import Random

import pytest

from tests.emit.arguments import arguments_of, hostile_arguments_of
from tests.emit.expected import planner_of
from tests.emit.pipeline_samples import pipelined
from tests.emit.rust.calling import RustLaunchers
from tests.emit.statuses import STATUS
from tests.emit.test_contract_violations import (  # noqa: F401  (they run here with other fixtures)
    BROKEN,
    test_nothing_to_do_is_a_success_that_needs_no_driver,
    test_rows_that_interleave_do_not_overlap,
    test_tensors_reach_to_the_end_of_the_address_space,
    test_what_was_changed_was_right_before,
)
from tests.emit.test_loading import (  # noqa: F401
    _for_target,
    add_arguments,
    test_a_cubin_that_does_not_load_is_an_error_each_time_until_it_does,
    test_a_device_that_is_not_there_is_an_error,
    test_a_driver_that_is_in_use_stays,
    test_a_driver_without_devices_is_an_error,
    test_a_failed_launch_is_an_error_and_leaves_the_context,
    test_a_launch_is_in_a_context_of_its_device_and_leaves_the_current_one,
    test_a_stream_of_another_device_is_refused,
    test_a_tensor_map_that_the_driver_refuses_is_an_error,
    test_all_of_a_cubin_can_be_loaded_ahead,
    test_another_architecture_is_an_error_that_names_both,
    test_memory_of_the_host_is_refused,
    test_more_shared_memory_than_48_kib_is_asked_for_once,
    test_one_cubin_is_loaded_once_for_all_devices,
    test_persistent_clusters_are_as_many_as_have_room,
    test_sixteen_threads_load_once,
    test_streams_are_passed_on,
    test_tensor_maps_are_made_once_for_a_tensor,
    test_the_driver_is_asked_once_a_launch_whose_memory_a_tensor_is,
    test_what_was_said_of_memory_in_another_launch_does_not_count,
    test_without_a_driver_contracts_are_checked_and_launches_say_so,
)
from tests.emit.test_plans import _rounds, launches_what_the_runtime_does
from tests.emit.test_wide_launches import (  # noqa: F401
    test_a_kernel_may_have_many_parameters_dims_and_maps,
    test_numbers_of_the_last_of_many_parameters_are_told_in_messages,
)
from tilec.emit.sets import launch_sets

SETS = {one.name: one for one in launch_sets(pipelined())}
# References of Rust are never null, and its element types always ones that kernels know.
REFUSED = [
    (call, status, said)
    for call, status, said in BROKEN
    if status != "NULL" and all(getattr(x, "element", "") != "none" for x in call[1])
]


@pytest.mark.parametrize("name", SETS)
def test_launches_are_those_of_the_runtime(name, headers):
    launched = SETS[name]
    planner = planner_of(launched, pipelined())
    random = Random(name)
    for number in range(_rounds(launched, 600)):
        kernel = random.choice(launched.kernels)
        if number % 3 == 2:
            arguments = hostile_arguments_of(kernel, random)
        else:
            arguments = arguments_of(kernel, random, number % 3 == 1)
        launches_what_the_runtime_does(headers, planner, name, arguments)


def test_a_broken_contract_is_refused_by_name_and_nothing_is_launched(headers):
    assert len(REFUSED) >= 40
    for (name, arguments), status, said in REFUSED:
        for what in range(3):
            outcome = headers.call(name, arguments, what)
            assert said in outcome.message
            assert outcome.status == STATUS[f"TILEC_ERROR_{status}"]
    assert headers.fake.launches == 0


def test_the_driver_says_on_which_device_a_tensor_is(headers):
    headers.fake.second_from = 2**40
    assert headers.call("add", add_arguments(device=-1)).message == ""
    assert headers.fake.context == 1
    mixed = [add_arguments()[0], *add_arguments(device=-1)[1:]]
    outcome = headers.call("add__f32_1024", mixed)
    assert outcome.status == STATUS["TILEC_ERROR_DEVICE"]
    assert "`x` is on device 1, `z` on device 0" in outcome.message


def test_of_several_targets_the_nearest_that_runs_is_taken(tools):
    manifests = [_for_target(target) for target in ("sm_80", "sm_90a", "sm_86")]
    made = RustLaunchers(manifests, tools / "rust_targets", tools)
    for capability, target in (((8, 0), "sm_80"), ((8, 9), "sm_86"), ((9, 0), "sm_90a")):
        launchers = made.anew()
        launchers.fake.major, launchers.fake.minor = capability
        launchers.use_driver()
        assert launchers.call("add", add_arguments(-1)).message == ""
        assert launchers.fake.kernel.decode() == f"add_for_{target}"
    launchers = made.anew()
    launchers.fake.major = 7
    launchers.use_driver()
    outcome = launchers.call("add", add_arguments(-1))
    assert outcome.status == STATUS["TILEC_ERROR_ARCHITECTURE"]
    assert "is built for sm_90a, sm_86, sm_80, device 0 (A Card) is sm_70" in outcome.message
