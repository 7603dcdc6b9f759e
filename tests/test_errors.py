"""Errors: each class survives being made again from its arguments, as pickle and SimPy do it, with equal text."""

import inspect
import pickle

import pytest
import simpy

from emuml import errors
from emuml.errors import EmumlError, FormatError, NodeFailed, RunFailed, UserError, did_you_mean

CLASSES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, EmumlError)]
SAMPLES = {"str": "some text", "int": 7, "float": 2.5}


def make(cls):
    """Return an error with every argument of its constructor given, optional ones too."""
    if cls.__init__ is Exception.__init__:
        return cls("some text")
    parameters = list(inspect.signature(cls).parameters.values())
    return cls(*[SAMPLES[parameter.annotation] for parameter in parameters])


def made_again_by_simpy(error):
    """Return what a SimPy process is handed when an event that it waits for fails."""
    env = simpy.Environment()
    event = env.event()
    handed = []

    def waits():
        try:
            yield event
        except EmumlError as found:
            handed.append(found)

    env.process(waits())
    event.fail(error)
    env.run()
    return handed[0]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_survives_being_made_again(cls):
    error = make(cls)

    for again in (type(error)(*error.args), pickle.loads(pickle.dumps(error)), made_again_by_simpy(error)):
        assert again is not error
        assert type(again) is cls
        assert str(again) == str(error)
        assert again.args == error.args
        assert {**vars(again)} == {**vars(error)}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_says_all_it_was_told(cls):
    error = make(cls)

    assert all(f"{argument}" in str(error) for argument in error.args)


def test_each_class_belongs_to_the_user_the_author_or_the_run():
    branches = (UserError, errors.ContractError, RunFailed, errors.TaskCancelled)

    assert [cls for cls in CLASSES if cls is not EmumlError and not issubclass(cls, branches)] == []
    assert all(sum(issubclass(cls, branch) for branch in branches) <= 1 for cls in CLASSES)
    assert issubclass(FormatError, UserError)


def test_a_failed_node_names_its_cause_once():
    failed = NodeFailed("worker-3", 2, 1.5, "on_start", "emuml replay here")
    failed.__cause__ = KeyError("weights")

    assert str(failed) == (
        "worker-3 (life 2) failed at t=1.5 s while handling on_start: KeyError: 'weights'; replay: emuml replay here"
    )
    assert str(made_again_by_simpy(failed)) == str(failed)


def test_user_errors_leave_out_what_they_do_not_know():
    assert str(UserError("got 0")) == "got 0"
    assert str(UserError("got 0", "cluster.workers", "an integer > 0", "the nearest is 1")) == (
        "cluster.workers: got 0; allowed: an integer > 0; the nearest is 1"
    )


@pytest.mark.parametrize(
    ("name", "said"), [("wrokers", "did you mean 'workers'?"), ("sede", "did you mean 'seed'?"), ("quux", "")]
)
def test_the_nearest_name(name, said):
    assert did_you_mean(name, ["workers", "seed", "rounds"]) == said
