"""The conformance suite on both engines: each check is one behaviour, and its docstring cites the rules."""

import pytest

from emuml.testing import conformance
from emuml.testing.conformance import crashes, ends, links, messages, steps, storage, training
from tests.conformance.engines import ENGINES, name

IN_PROCESSES = [
    steps.a_kept_context_refuses_every_call,
    links.nothing_of_an_old_life_arrives_after_restarted,
    messages.messages_arrive_equal_by_value_and_type,
    storage.storage_is_a_dictionary_with_versions,
    crashes.acknowledged_saves_survive_a_crash_at_any_step,
    ends.an_error_of_a_handler_names_node_and_event,
    ends.an_error_of_a_task_names_node_and_tag,
    training.a_training_with_a_crash_gives_the_bits_of_its_plan,
]


@pytest.mark.parametrize("check", conformance.CHECKS, ids=name)
@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_kept(engine, check):
    check(ENGINES[engine])


@pytest.mark.parametrize("check", conformance.IN_ONE_PROCESS, ids=name)
@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_kept_in_one_process(engine, check):
    check(ENGINES[engine])


@pytest.mark.slow
@pytest.mark.parametrize("check", IN_PROCESSES, ids=name)
def test_kept_with_a_process_for_each_node(check):
    check(ENGINES["processes"])


@pytest.mark.parametrize("check", conformance.IN_VIRTUAL_TIME, ids=name)
def test_kept_in_virtual_time(check):
    check(ENGINES["des"])


def test_every_subset_of_pending_saves_is_met():
    crashes.every_subset_of_pending_saves_is_met(ENGINES["des"])


def test_every_check_is_in_the_suite():
    """A check that is defined but in no list would never run."""
    listed = {*conformance.CHECKS, *conformance.IN_ONE_PROCESS, *conformance.IN_VIRTUAL_TIME}
    modules = [module for module in vars(conformance).values() if hasattr(module, "RunNodes")]
    defined = {value for module in modules for value in vars(module).values() if is_check(value, module)}

    assert len(modules) > 7
    apart = {crashes.every_subset_of_pending_saves_is_met, training.journals_replay_to_equal_parameters}
    assert defined == listed | apart


def is_check(value, module):
    return getattr(value, "__module__", "") == module.__name__ and (value.__doc__ or "").startswith("K")
