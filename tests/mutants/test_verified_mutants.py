"""Wrong votes that the checks of verified repetition must catch."""

import numpy as np
import pytest

from emuml.cluster.compute import Constant
from emuml.protocols.gradient_coding.codes.verified import VerifiedRepetition
from emuml.protocols.gradient_coding.verifying import VerifyingServer
from emuml.protocols.gradient_coding.votes import Votes
from emuml.protocols.gradient_coding.worker import Worker
from tests.protocols import liars
from tests.protocols.training import Tally, train


def with_votes(votes):
    """Return a server that counts in another way."""

    class Server(VerifyingServer):
        def open(self, ctx):
            super().open(ctx)
            self.tracker = votes(self.code, self.code.needed)

    return Server


class OnePass(Votes):
    """Keeps a candidate and a counter, as Boyer and Moore, and takes the candidate without counting its votes (W5)."""

    def __init__(self, code, needed):
        super().__init__(code, needed)
        self.candidates = {}

    def cast(self, worker, value):
        group = super().cast(worker, value)
        candidate, lead = self.candidates.get(group, (worker, 0))
        mine = next((v for v in self._values[group] if worker in v.voters), None)
        theirs = next((v for v in self._values[group] if candidate in v.voters), None)
        lead = lead + 1 if mine is theirs else lead - 1
        self.candidates[group] = (worker, 1) if lead < 0 else (candidate, lead)
        return group

    def verified(self):
        return {group: candidate for group, (candidate, _) in sorted(self.candidates.items())}


class FirstHalf(Votes):
    """Compares the first half of each message only, as does who votes layer by layer."""

    def _same(self, group, data):
        return super()._same(group, np.array(data[: data.size // 2]))


class OneTooFew(Votes):
    """Takes a value at ``b`` votes."""

    def __init__(self, code, needed):
        super().__init__(code, needed - 1)


class Remembers(VerifyingServer):
    """Counts votes of former rounds, too."""

    def open(self, ctx):
        before = getattr(self, "tracker", None)
        super().open(ctx)
        if isinstance(before, Votes):
            for mine, old in zip(self.tracker._values, before._values, strict=True):
                mine.extend(old)


class Believes(VerifyingServer):
    """Takes whatever arrives first for the shape of answers."""

    def count(self, worker, value):
        if not self.answers:
            self.outline = value.shape, value.dtype
        super().count(worker, value)


class TakesAnything(VerifyingServer):
    """Does not look at the type of a message: that of servers has the same fields."""

    def on_message(self, ctx, sender, message):
        super(VerifyingServer, self).on_message(ctx, sender, message)


@pytest.mark.parametrize(
    ("check", "server"),
    [
        (liars.check_votes_of_two_liars_are_no_majority, with_votes(OnePass)),
        (liars.check_half_a_lie_is_a_lie, with_votes(FirstHalf)),
        (liars.check_votes_of_two_liars_are_no_majority, with_votes(OneTooFew)),
        (liars.check_lies_change_nothing, with_votes(OneTooFew)),
        (liars.check_former_votes_do_not_count, Remembers),
        (liars.check_lies_change_nothing, Believes),
        (liars.check_no_message_but_an_answer_counts, TakesAnything),
    ],
)
def test_wrong_votes_are_caught(check, server):
    check()
    with pytest.raises(AssertionError):
        check(server)


class Rotated(Worker):
    """Adds its partitions beginning with its own, so that replicas differ in the last bits (W9)."""

    def __init__(self, code, workload, index, stragglers="cancel"):
        super().__init__(code, workload, index, stragglers)
        self.code = _Turned(code)


class _Turned:
    def __init__(self, code):
        self._code = code

    def task(self, workload, parameters, worker, draw):
        owned = self._code.assignment(worker)
        turned = owned[worker % len(owned) :] + owned[: worker % len(owned)]
        return workload.gradient(parameters, turned, self._code.partitions, None, draw=draw)


def test_w9_rotated_sums_are_not_verified():
    code, options = VerifiedRepetition(3), {"server": VerifyingServer, "compute": Constant(1.0)}
    assert train(Tally(columns=40), code, 6, 5, **options).error is None
    assert "is not verified" in str(train(Tally(columns=40), code, 6, 5, worker=Rotated, **options).error)
