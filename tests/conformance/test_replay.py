"""K18: journals of both engines, replayed; any changed bit is found at its place."""

from dataclasses import replace

import pytest

from emuml.des.replay import Replayer
from emuml.errors import Diverged, FormatError
from emuml.journal import read_journal
from emuml.node import NodeId
from emuml.roster import Roster
from emuml.testing.conformance import training
from tests.conformance.engines import ENGINES, SETTINGS


def replay(nodes, seed, journals):
    parsed = {NodeId.parse(id): given for id, given in nodes.items()}
    return Replayer(parsed, Roster(tuple(sorted(parsed)), seed), journals).run()


@pytest.mark.parametrize("engine", ["des", "tcp", pytest.param("processes", marks=pytest.mark.slow)])
def test_journals_replay_to_equal_parameters(engine):
    training.journals_replay_to_equal_parameters(ENGINES[engine], replay)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_one_changed_bit_diverges_at_its_index(engine):
    """K18 (13.2): in the digest of the effects of any step, of any message, of any result."""
    run = ENGINES[engine](training.training(), cluster=training.CLUSTER, faults=training.FAULTS, seed=3)
    assert run.error is None

    for key, index, altered in training.alterations(run):
        with pytest.raises(Diverged) as found:
            replay(training.training(), 3, {**run.journals, key: altered})
        assert (found.value.node, found.value.index) == (key[0], index)


def test_another_seed_or_program_diverges():
    """K18 (13.2): draws, and code that is not what was run."""
    run = ENGINES["des"](training.training(), cluster=training.CLUSTER, faults=training.FAULTS, seed=3)

    with pytest.raises(Diverged, match="effects of message"):
        replay(training.training(), 4, run.journals)
    with pytest.raises(Diverged, match="result of a task"):
        replay(training.training(OtherSlope), 3, run.journals)


class OtherSlope(training.Worker):
    """A worker whose kernel differs in the last bit."""

    def __init__(self):
        super().__init__(slope)


def slope(parameters, group):
    return training.slope(parameters, group) * (1.0 + 2.0**-52)


slope.__qualname__ = training.slope.__qualname__  # only its values differ


@pytest.mark.parametrize("at", [0, 9, 40, -1])
def test_a_changed_byte_of_a_journal_file_is_refused(at, tmp_path):
    """K18, R14: in magic, format version, header, or a record."""
    run = ENGINES["tcp"](training.training(), cluster=training.CLUSTER, folder=tmp_path)
    path = tmp_path / "nodes" / "worker-0.1" / "journal"
    assert read_journal(path).steps == run.journals["worker-0", 1].steps
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)

    with pytest.raises(FormatError):
        read_journal(path)


def test_the_journal_of_a_killed_life_is_cut_at_a_step_and_still_replays():
    """K18 (13.3): what a killed node had sent is in its journal, because steps are written before they leave."""
    run = ENGINES["tcp"](training.training(), cluster=training.CLUSTER, faults=training.FAULTS, seed=3)
    killed = run.journals["worker-1", 1]
    sent = [step for step in run.journals["master-0", 1].steps if step.details[:2] == ["worker-1", 1]]

    assert [step.index for step in killed.steps] == list(range(len(killed.steps)))
    assert len(sent) == 2
    assert replay(training.training(), 3, run.journals).stopped == "done"


def test_journals_can_be_left_out():
    run = ENGINES["tcp"](training.training(), runtime=replace(SETTINGS, journal=False))

    assert run.journals == {}
    assert run.stopped == "done"
