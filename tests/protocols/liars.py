"""Workers that lie, and what must hold of the server of verified repetition; mutants are handed to the same checks."""

import numpy as np

from emuml.cluster.compute import DelayTrace
from emuml.deadlines import Deadline
from emuml.protocols.gradient_coding import VerifiedRepetition
from emuml.protocols.gradient_coding.messages import Gradient, Parameters
from emuml.protocols.gradient_coding.verifying import VerifyingServer
from emuml.protocols.gradient_coding.worker import Worker
from tests.protocols.training import Tally, train, versions


def _array(change):
    """Return a liar that sends another array than its own, in a message that is as it should be."""

    def lie(worker, ctx, asked, honest):
        ctx.send(worker.server, Gradient(asked.life, asked.round, change(honest, asked)))

    return lie


def other_rounds(worker, ctx, asked, honest):
    """Answer the next round before it is asked, a former life, and the last round once more; then say nothing."""
    for life, round in [
        (asked.life, asked.round + 1),
        (asked.life + 1, asked.round),
        (asked.life, max(asked.round - 1, 0)),
    ]:
        if (life, round) != (asked.life, asked.round):
            ctx.send(worker.server, Gradient(life, round, np.full(honest.shape, 7.0)))


def often(worker, ctx, asked, honest):
    """Vote many times for one lie."""
    for _ in range(5):
        ctx.send(worker.server, Gradient(asked.life, asked.round, np.full(honest.shape, 7.0)))


def questions(worker, ctx, asked, honest):
    """Send what only servers send, which has the same fields."""
    ctx.send(worker.server, Parameters(asked.life, asked.round, np.full(honest.shape, 7.0)))


def nothing(worker, ctx, asked, honest):
    """Be silent."""


def one_bit(honest, asked):
    changed = honest.copy()
    changed.view(np.uint64)[-1] ^= 1
    return changed


LIES = {
    "colluding": _array(lambda honest, asked: np.full(honest.shape, 7.0 + asked.round)),
    "nan": _array(lambda honest, asked: np.full(honest.shape, np.nan)),
    "infinite": _array(lambda honest, asked: np.full(honest.shape, np.inf)),
    "huge": _array(lambda honest, asked: np.full(honest.shape, np.finfo(float).max)),
    "negated": _array(lambda honest, asked: -honest),
    "one bit": _array(one_bit),
    "shape": _array(lambda honest, asked: np.zeros(honest.size + 1)),
    "no dimension": _array(lambda honest, asked: np.array(7.0)),
    "empty": _array(lambda honest, asked: np.zeros(0)),
    "dtype": _array(lambda honest, asked: honest.astype(np.float32)),
    "bytes": _array(lambda honest, asked: honest.view(np.int64)),
    "other rounds": other_rounds,
    "often": often,
    "questions": questions,
    "nothing": nothing,
}


class Liar(Worker):
    """Computes like others, and says something else."""

    def __init__(self, code, workload, index, stragglers="cancel", lie=None):
        super().__init__(code, workload, index, stragglers)
        self.lie = lie

    def on_computed(self, ctx, tag, result):
        asked, self.open = self.open, None
        lie = self.lie or list(LIES)[(asked.round + self.index) % len(LIES)]  # without one, each in its turn
        LIES[lie](self, ctx, asked, np.array(result))
        if self.mailbox:
            self.begin(ctx)


def among(lies):
    """Return what makes workers, some of them liars: ``lies`` is the lie of each of them by index."""

    def make(code, workload, index, stragglers):
        if index in lies:
            return Liar(code, workload, index, stragglers, lies[index])
        return Worker(code, workload, index, stragglers)

    return make


def verified(
    lies, replication=3, adversaries=1, workers=6, rounds=4, server=VerifyingServer, on_unresolved="stop", **options
):
    """Train with liars."""
    code = VerifiedRepetition(replication, adversaries, on_unresolved)
    return train(options.pop("problem", Tally)(), code, workers, rounds, server=server, worker=among(lies), **options)


def honest(**options):
    """Return the versions that nobody lied about."""
    return versions(verified({}, **options))


def check_lies_change_nothing(server=VerifyingServer):
    """Every lie of one member of each group, whenever it comes, leaves the honest bits."""
    expected = honest(server=server)
    for lie in LIES:
        for early in (0.5, 2.0):
            delays = np.ones((4, 6))
            delays[:, [0, 4]] = early
            run = verified({0: lie, 4: lie}, compute=DelayTrace(delays), server=server)
            assert run.error is None, (lie, early)
            assert versions(run) == expected, (lie, early)


def check_votes_of_two_liars_are_no_majority(server=VerifyingServer):
    """Three members that say three things: nothing is taken, whatever the order."""
    lies = {0: "colluding", 1: "nan"}
    for order in ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0]):
        delays = DelayTrace(np.array([order * 2] * 4))
        run = verified(lies, compute=delays, server=server, on_unresolved="drop")
        logs = [log.metrics for log in run.logs]
        assert [(log["covered_set"], log["unresolved"], log["decode_error"]) for log in logs] == [("0x2", 1, 3.0)] * 4


def check_half_a_lie_is_a_lie(server=VerifyingServer):
    """Members that agree in all but the end of their messages do not confirm each other."""
    run = verified({0: "one bit", 1: "nan"}, server=server, on_unresolved="drop")
    assert {log.metrics["covered_set"] for log in run.logs} == {"0x2"}


def check_former_votes_do_not_count(server=VerifyingServer):
    """Whoever says in one round what it will say in the next has one vote in each."""
    run = verified({0: "often"}, server=server, compute=DelayTrace(np.array([[0.5, 1.0, 1.0, 1.0, 1.0, 1.0]] * 4)))
    assert versions(run) == honest(server=server)


def check_no_message_but_an_answer_counts(server=VerifyingServer):
    """Two members that send what only servers send have confirmed nothing."""
    delays = DelayTrace(np.array([[0.5, 0.5, 1.0, 1.0, 1.0, 1.0]] * 4))
    run = verified({0: "questions", 1: "questions"}, compute=delays, server=server, rounds=1, on_unresolved="drop",
                   deadline=Deadline(after_s=2.0))  # fmt: skip
    assert [(log.metrics["covered_set"], log.metrics["rejected"]) for log in run.logs] == [("0x2", 2)]
