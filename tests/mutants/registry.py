"""All planted bugs of the protocols that there are, and the controls that no oracle may object to."""

from __future__ import annotations

import emuml.testing as et
from emuml.protocols.async_updates import BSP, SSP, AsyncUpdates
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.pace import closes_in_time
from emuml.testing.probe import Rough
from tests.mutants import async_nodes as asynchronous
from tests.mutants import coding_nodes as coding
from tests.mutants.planted import RUN_TWICE, Mutant, Swapped

UNCODED = GradientCoding(code=Uncoded())
PARTIAL = GradientCoding(code=IgnoreStragglers(), collect=2)
REPEATED = GradientCoding(code=FractionalRepetition(2), collect=3)
SKIPPING = GradientCoding(code=IgnoreStragglers(), collect=2, stragglers="skip-stale")
WAITING = GradientCoding(code=IgnoreStragglers(), collect=2, stragglers="wait-all")
SSP1 = AsyncUpdates(barrier=SSP(1))
IN_STEP = AsyncUpdates(barrier=BSP())
EVICTS = AsyncUpdates(barrier=SSP(1), on_lost="evict")
EVERYBODY = et.faults(crash=2, keep=())

REFERENCE = "parameters are those of the logged decode sets"
EXACT = "with all workers up codes decode as promised"
COUNTED = "counted answers are to the open question of this life"
AT_WORK = "whoever was asked is at work or has answered"
NEWEST = "work is on the newest question"
IN_TIME = "without faults a round takes no longer than the answers that it needs"
RESTS = "without faults nobody rests who was asked"
CLOSED = "work is ended on closed rounds only"
LABEL = "a view holds the updates that its label says"
ONCE = "every counted push is in the table, once"
FRESH = "a worker computes from a copy that is fresh enough and has its own updates"
DUE = "a view holds all that the barrier asks for"
SPREAD = "the spread of clocks is at most slack + 1"
VAIN = "no worker waits that may read"
BEGUN = "no push is of an iteration that its worker has not begun"


def planted(id, change, protocol, *oracles, server=None, worker=None, legal=None, legal_server=None, **options):
    """Return a planted bug; ``legal`` and ``legal_server`` are nodes that both it and ours have."""
    wrong = Swapped(protocol, server or legal_server, worker or legal)
    return Mutant(id, change, wrong, Swapped(protocol, legal_server, legal), frozenset(oracles), **options)


def is_in_time(run):
    """State what is promised by a protocol that ends work on closed rounds."""
    run.at_end(lambda finished: closes_in_time(finished, SKIPPING), IN_TIME)
    run.eventually("done", within_s=120.0)


def goes_on(run):
    """State only that the run ends, so that a report says who waits for whom."""
    run.eventually("done", within_s=120.0)


def ends_closed_rounds(run):
    """State what the message means that ends work."""
    run.each_sent(_names_a_closed_round, CLOSED)


def _names_a_closed_round(sent):
    if not isinstance(sent.message, coding.Cancel):
        return True
    server = sent.nodes["server"]
    return sent.message.round < server.round or (sent.message.round == server.round and server.closed)


GRADIENT_CODING = (
    planted("GC1", "answers of any round are accepted", PARTIAL, REFERENCE, COUNTED, server=coding.AnyRound),
    planted(
        "GC2",
        "answers are counted, not the workers that gave them",
        UNCODED,
        EXACT,
        server=coding.CountsRepeats,
        legal=coding.AnswersTwice,
    ),
    planted("GC3", "closes one answer early", UNCODED, EXACT, server=coding.OneEarly),
    planted(
        "GC4",
        "a message that ends work on a closed round stops whatever runs",
        SKIPPING,
        AT_WORK,
        "done",
        worker=coding.StopsWhateverRuns,
        legal=coding.Cancellable,
        legal_server=coding.AsksThenCancels,
    ),
    planted(
        "GC5",
        "RESTARTED of a worker is ignored: it gets no question for the open round",
        UNCODED,
        "done",
        server=coding.IgnoresRestarted,
    ),
    planted(
        "GC6",
        "the message that ends work names the next round",
        SKIPPING,
        IN_TIME,
        server=coding.CancelsTheNext,
        legal=coding.Cancellable,
        legal_server=coding.CancelsThenAsks,
        describe=is_in_time,
    ),
    planted("GC8", "weights by order of arrival", REPEATED, REFERENCE, server=coding.DecodesByArrival),
    planted(
        "GC9",
        "an answer is labelled with the newest round; running work is not cancelled",
        PARTIAL,
        REFERENCE,
        worker=coding.Mislabels,
    ),
    planted(
        "GC10",
        "a restarted server accepts answers to its former life",
        PARTIAL,
        COUNTED,
        REFERENCE,
        server=coding.AnyLife,
        budget=EVERYBODY,
        runs=50_000,
    ),
    planted(
        "GC11",
        "the sum is formed in the order of arrival",
        UNCODED,
        REFERENCE,
        server=coding.SumsByArrival,
        workload=lambda scenario: Rough(scenario.workers),
    ),
    planted(
        "GC13",
        "momentum of a former life is applied again",
        UNCODED,
        REFERENCE,
        server=coding.KeepsMomentum,
        budget=EVERYBODY,
    ),
    planted(
        "GC14",
        "a restarted worker builds the code from the state of its process",
        UNCODED,
        REFERENCE,
        RUN_TWICE,
        worker=coding.OwnCode,
    ),
    planted("W23", "new parameters do not end old work", PARTIAL, NEWEST, IN_TIME, worker=coding.NeverInterrupts),
)

ASYNCHRONOUS = (
    planted("SSP1", "bound off by one", SSP1, DUE, SPREAD, FRESH, server=asynchronous.OffByOne),
    planted(
        "SSP2",
        "a repeated update is applied again",
        SSP1,
        ONCE,
        LABEL,
        server=asynchronous.AppliesAgain,
        legal=asynchronous.RepeatsPushes,
    ),
    planted("SSP3", "a clock travels apart from its update", SSP1, LABEL, FRESH, server=asynchronous.ClockFirst),
    planted(
        "SSP4",
        "a view is labelled with the largest clock instead of the smallest",
        SSP1,
        LABEL,
        FRESH,
        server=asynchronous.LargestClock,
    ),
    planted("SSP7", "only the first eligible worker is released", SSP1, VAIN, server=asynchronous.ReleasesOne),
    planted(
        "SSP8",
        "reads are not asked again after a server crash",
        SSP1,
        "done",
        worker=asynchronous.ForgetsReads,
        budget=EVERYBODY,
    ),
    planted("SSP9", "updates of slow workers are discarded", SSP1, ONCE, LABEL, server=asynchronous.DiscardsSlow),
    planted(
        "SSP10",
        "a worker that was down rejoins without catching up",
        EVICTS,
        SPREAD,
        DUE,
        server=asynchronous.NoCatchingUp,
    ),
    planted("SSP11", "the view that was sent is the live table", SSP1, "error", server=asynchronous.SendsTheLiveTable),
    planted(
        "SSP12",
        "after a restart batches are drawn from the beginning",
        SSP1,
        ONCE,
        LABEL,
        FRESH,
        worker=asynchronous.BatchesFromTheStart,
    ),
)

ANY_PROTOCOL = (
    planted("X1", "a timer is set once, and not again", SKIPPING, RESTS, worker=coding.SetsItsTimerOnce),
    planted(
        "X3",
        "what is said again gets a new number",
        SSP1,
        ONCE,
        LABEL,
        BEGUN,
        worker=asynchronous.RepeatsUnderANewClock,
        legal=asynchronous.RepeatsPushes,
    ),
    planted(
        "X5, coding",
        "what a worker was busy with outlives it",
        WAITING,
        "done",
        server=coding.KeepsTheDeadBusy,
    ),
    planted(
        "X5, updates",
        "what a server had said outlives it",
        SSP1,
        "done",
        worker=asynchronous.KeepsTheFormerServer,
        budget=EVERYBODY,
    ),
    planted(
        "X6",
        "who rejoins is appended to the members again",
        UNCODED,
        EXACT,
        server=coding.CountsWhoRejoinsTwice,
    ),
    planted("X7", "a draw from the state of the process", SSP1, RUN_TWICE, worker=asynchronous.DrawsFromTheProcess),
    planted(
        "X8",
        "two nodes hold back their answers until the other's comes",
        IN_STEP,
        "done",
        worker=asynchronous.HoldsBack,
        describe=goes_on,
    ),
)

MUTANTS = (*GRADIENT_CODING, *ASYNCHRONOUS, *ANY_PROTOCOL)

ELSEWHERE = {"X4": "effects in the order of a set of strings: see test_hash_seeds.py, which runs two processes"}

NOT_YET = {
    "GC7": "an older question replaces a newer one: links keep order, there are no datagrams",
    "GC12": "a deadline timer outlives its round: the server of gradient coding sets no timer",
    "SSP5": "clocks are saved apart from the table: the server keeps nothing across a crash",
    "SSP6": "an update is acknowledged before it is durable: the server keeps nothing across a crash",
    "SSP13": "release is judged by clocks that are not durable: the server keeps nothing across a crash",
    "X2": "own time is compared with another node's: all clocks are one, none is off",
}
"""Planted bugs that no protocol can have today, and why."""

CONTROLS = {
    "E1": Swapped(SSP1, asynchronous.KeepsOldReads),
    "E2": Swapped(SKIPPING),
    "E2, with the message": Swapped(SKIPPING, coding.AsksThenCancels, coding.Cancellable),
    "E3, all": Swapped(UNCODED, worker=coding.AnswersTwice),
    "E3, some": Swapped(PARTIAL, worker=coding.AnswersTwice),
    "E3, updates": Swapped(SSP1, worker=asynchronous.RepeatsPushes),
    "E4": Swapped(PARTIAL, coding.AsksInReverse),
    "E4, updates": Swapped(SSP1, asynchronous.AnswersInReverse),
    "E5": Swapped(SKIPPING, worker=coding.Dawdles),  # of the one timer that there is, which is of 0 s
}
"""Slower or more talkative, not wrong."""
