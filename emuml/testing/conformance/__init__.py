"""The conformance suite: what an engine must do so that nodes cannot tell it from another (contract section 14).

Each check takes the engine under test as a callable, :class:`RunNodes`, runs bare nodes on it, and raises
``AssertionError`` with what was expected and what was found. Nodes can be imported by name and take plain arguments, so
every check of ``CHECKS`` also works with a process for each node. For example, with pytest::

    @pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(run_on_my_engine)

The docstring of each check names the row of the contract's table and the rules that it stands for.
"""

from __future__ import annotations

from emuml.testing.conformance import compute, crashes, ends, links, messages, steps, storage, timers, training
from emuml.testing.conformance.engine import Check, Explored, RunNodes

CHECKS: tuple[Check, ...] = (
    steps.effects_are_executed_in_call_order,
    steps.a_handler_that_raises_leaves_no_effect,
    steps.a_kept_context_refuses_every_call,
    steps.mistakes_are_raised_at_the_call,
    links.nothing_of_an_old_life_arrives_after_restarted,
    links.nodes_that_return_together_find_each_other,
    links.sends_to_a_peer_that_is_down_are_discarded,
    links.messages_to_oneself_keep_order_and_die_with_their_life,
    messages.messages_arrive_equal_by_value_and_type,
    messages.large_messages_arrive_whole_and_in_order,
    timers.timers_fire_once_and_never_early_nor_after_a_cancel,
    compute.tasks_end_once_in_order_and_never_after_a_cancel,
    compute.no_more_tasks_run_than_there_are_slots,
    storage.storage_is_a_dictionary_with_versions,
    crashes.acknowledged_saves_survive_a_crash_at_any_step,
    ends.an_error_of_a_handler_names_node_and_event,
    ends.an_error_of_a_task_names_node_and_tag,
    ends.a_stop_takes_effect_at_its_place,
    ends.nothing_is_handed_over_after_a_stop_in_on_peer,
    ends.a_deadlock_says_what_each_node_waits_for,
    ends.a_pending_timer_is_no_deadlock,
    training.a_training_with_a_crash_gives_the_bits_of_its_plan,
)
"""For every engine, whatever processes its nodes live in."""

IN_ONE_PROCESS: tuple[Check, ...] = (ends.the_cause_is_the_very_exception_object,)
"""For engines that run nodes in the caller's process."""

IN_VIRTUAL_TIME: tuple[Check, ...] = (
    timers.emulated_timers_fire_at_their_very_deadline,
    compute.emulated_tasks_end_when_a_queue_model_says,
    crashes.emulated_crashes_at_every_step_leave_an_allowed_state,
)
"""For emulators."""

__all__ = ["CHECKS", "IN_ONE_PROCESS", "IN_VIRTUAL_TIME", "Check", "Explored", "RunNodes"]
