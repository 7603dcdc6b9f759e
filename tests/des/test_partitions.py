"""Cut, slow and lossy links: exact times of arrival, what both ends are told and when, and wrong suspicion."""

import numpy as np
import pytest

from emuml.cluster import Star, TopologyNetwork
from emuml.cluster.cluster import Cluster, Detection, Network
from emuml.cluster.faults import Crash, Lossy, Partition, SlowLink, isolated
from emuml.des.wires import backoff_s
from emuml.errors import UserError
from emuml.message import size_bytes
from emuml.node import NodeId
from emuml.streams import stream_key, uniform
from tests.des.scripted import Bulk, Note, emulate, on

SERVER, WORKER = NodeId("server", 0), NodeId("worker", 0)
SUSPECTS, KILLS = 0.809, 2.061
"""Seconds of silence that the detector's setting for one rack stands, rounded."""


def cluster(latency_s=0.25, bytes_per_s=None, **detection):
    network = Network(latency_s, bytes_per_s and 8 * bytes_per_s)
    return Cluster(workers=1, network=network, detection=Detection(**detection))


def ticks(*times, to=SERVER, make=lambda name: Note(name)):
    """Return a script that sends at these times."""

    def start(ctx, saved):
        for time_s in times:
            ctx.set_timer(f"{time_s:g}", time_s)

    return on(start=start, timer=lambda ctx, name: ctx.send(to, make(name)))


def told(seen, node):
    return seen.of(node, "peer")


def pair(script, faults, model, until_s=99):
    run, seen = emulate({"server-0": None, "worker-0": script}, model, faults, until_s=until_s)
    assert run.error is None
    return run, seen


# Cuts


def test_what_waits_for_a_cut_to_heal_arrives_after_it_in_order():
    cut = Partition(("worker-0",), ("server-0",), 1.0, at_s=1.0)
    run, seen = pair(ticks(0.875, 1.0, 1.5, 2.5), [cut], cluster(suspect_s=5, down_s=9))

    assert seen.of("server-0", "message") == [
        (1.125, "worker-0", "0.875"), (2.25, "worker-0", "1"), (2.25, "worker-0", "1.5"), (2.75, "worker-0", "2.5"),
    ]  # fmt: skip
    assert told(seen, "server-0") == told(seen, "worker-0") == []
    assert [(row.time_s, row.node, row.kind, row.details["what"]) for row in run.trace.of("fault", "healed")] == [
        (1.0, "worker-0", "fault", "Partition"), (2.0, "worker-0", "healed", "Partition"),
    ]  # fmt: skip


def test_bytes_that_have_not_left_wait_and_the_rest_of_them_leaves_after_the_cut():
    message = Bulk(np.zeros(100))
    one_s = size_bytes(message) / 1e3
    cut = Partition(("worker-0",), ("server-0",), 8.0, at_s=one_s / 2)
    script = on(start=lambda ctx, saved: [ctx.send(SERVER, message), ctx.send(SERVER, message)])
    _, seen = pair(script, [cut], cluster(0.25, 1e3, suspect_s=50, down_s=90))

    times = [row[0] for row in seen.of("server-0", "message")]
    assert times == pytest.approx([8 + one_s + 0.25, 8 + 2 * one_s + 0.25], rel=1e-15)


def test_a_cut_of_one_direction_lets_the_other_pass():
    cut = Partition(("worker-0",), ("server-0",), 4.0, at_s=1.0, one_way=True)
    scripts = {"server-0": ticks(2.0, to=WORKER), "worker-0": ticks(2.0)}
    _, seen = emulate(scripts, cluster(suspect_s=8, down_s=9), [cut], until_s=99)

    assert seen.of("worker-0", "message") == [(2.25, "server-0", "2")]
    assert seen.of("server-0", "message") == [(5.25, "worker-0", "2")]


def test_cuts_add_up_and_the_last_one_to_heal_lets_go():
    cuts = [Partition(("worker-0",), ("server-0",), 2.0, at_s=1.0), isolated("worker-0", for_s=0.5, at_s=2.75)]
    _, seen = pair(ticks(1.5), cuts, cluster(suspect_s=8, down_s=9))

    assert seen.of("server-0", "message") == [(3.5, "worker-0", "1.5")]


def test_isolation_cuts_a_group_off_from_all_others_but_not_from_itself():
    fault = isolated("worker-0", "worker-1", for_s=2.0, at_s=1.0)
    ids = [SERVER, WORKER, NodeId("worker", 1)]

    assert {f"{a}>{b}" for a, b in fault.links(ids)} == {
        "worker-0>server-0", "worker-1>server-0", "server-0>worker-0", "server-0>worker-1",
    }  # fmt: skip


def test_the_logical_form_cuts_before_what_follows_the_log_is_sent():
    def start(ctx, saved):
        ctx.send(SERVER, Note("before"))
        ctx.log(round=3)
        ctx.send(SERVER, Note("after"))

    cut = Partition(("worker-0",), ("server-0",), 1.0, after=("round", 3))
    _, seen = pair(on(start=start), [cut], cluster(suspect_s=8, down_s=9))

    assert seen.of("server-0", "message") == [(0.25, "worker-0", "before"), (1.25, "worker-0", "after")]


# Suspicion


def test_silence_shorter_than_patience_is_at_most_suspect_then_up():
    cut = Partition(("worker-0",), ("server-0",), 1.5, at_s=1.0)
    _, seen = pair(ticks(1.5), [cut], cluster(suspect_s=0.5, down_s=4))

    # Heard last at 1 + 0.25, and again, before what had waited, at 2.5 + 0.25.
    assert told(seen, "server-0") == [(1.75, "worker-0", "SUSPECT"), (2.75, "worker-0", "UP")]
    assert told(seen, "worker-0") == [(1.75, "server-0", "SUSPECT"), (2.75, "server-0", "UP")]
    assert seen.of("server-0", "message") == [(2.75, "worker-0", "1.5")]
    assert [row[3] for row in seen if row[1] == "server-0"] == ["start", "peer", "peer", "message"]


def test_silence_past_the_limit_ends_the_session_and_a_new_one_begins_after_the_cut():
    cut = Partition(("worker-0",), ("server-0",), 6.0, at_s=1.0)
    run, seen = pair(ticks(2.0, 5.0, 8.0), [cut], cluster(suspect_s=0.5, down_s=2, connect_s=0.5))

    assert told(seen, "server-0") == [
        (1.75, "worker-0", "SUSPECT"), (3.25, "worker-0", "DOWN"), (7.75, "worker-0", "UP"),
    ]  # fmt: skip
    assert told(seen, "worker-0") == [
        (1.75, "server-0", "SUSPECT"), (3.25, "server-0", "DOWN"), (7.75, "server-0", "UP"),
    ]  # fmt: skip
    # What was queued when the session ended is lost, what was sent to a peer that is down is discarded.
    assert seen.of("server-0", "message") == [(8.25, "worker-0", "8")]
    assert [row.time_s for row in run.trace.of("discarded")] == [5.0]
    assert run.ends == []


def test_the_end_that_heard_everything_is_told_by_the_one_that_did_not():
    cut = Partition(("worker-0",), ("server-0",), 6.0, at_s=1.0, one_way=True)
    _, seen = pair(None, [cut], cluster(suspect_s=0.5, down_s=2))

    assert told(seen, "server-0") == [
        (1.75, "worker-0", "SUSPECT"), (3.25, "worker-0", "DOWN"), (7.25, "worker-0", "UP"),
    ]  # fmt: skip
    assert told(seen, "worker-0") == [(3.5, "server-0", "DOWN"), (7.25, "server-0", "UP")]


def test_a_peer_that_falls_silent_before_it_is_heard_again_is_judged_anew():
    cuts = [Partition(("worker-0",), ("server-0",), for_s, at_s=at_s) for at_s, for_s in ((1.0, 1.0), (2.125, 9.0))]
    _, seen = pair(None, cuts, cluster(suspect_s=0.5, down_s=2))

    assert told(seen, "server-0")[:4] == [
        (1.75, "worker-0", "SUSPECT"), (2.25, "worker-0", "UP"), (2.875, "worker-0", "SUSPECT"),
        (4.375, "worker-0", "DOWN"),
    ]  # fmt: skip


def test_a_second_cut_is_no_sign_of_life():
    cuts = [Partition(("worker-0",), ("server-0",), for_s, at_s=at_s) for at_s, for_s in ((1.0, 8.0), (2.0, 3.0))]
    _, seen = pair(None, cuts, cluster(suspect_s=0.5, down_s=2))

    assert told(seen, "server-0")[:2] == [(1.75, "worker-0", "SUSPECT"), (3.25, "worker-0", "DOWN")]


def test_what_a_node_that_crashed_had_not_sent_never_arrives():
    plan = [Partition(("worker-0",), ("server-0",), 4.0, at_s=1.0), Crash("worker-0", at_s=3.0)]
    _, seen = pair(ticks(0.5, 2.0), plan, cluster(suspect_s=50, down_s=90))

    assert [text for *_, text in seen.of("server-0", "message")] == ["0.5"]


@pytest.mark.parametrize(
    ("silence", "interval_s", "suspect_s", "down_s"), [("lan", 0.5, SUSPECTS, KILLS), ("wan", 1.0, 1.7726, 6.403)]
)
def test_verdicts_come_when_the_detector_of_the_runtime_would_give_them(silence, interval_s, suspect_s, down_s):
    """Signs of life come at multiples of the interval; the last one before 10.2 s is that of 10 s."""
    cut = Partition(("worker-0",), ("server-0",), 50.0, at_s=10.2)
    _, seen = pair(None, [cut], cluster(silence=silence))

    (suspected, _, _), (down, _, state), *_ = told(seen, "server-0")
    assert suspected == pytest.approx(10.25 + suspect_s, abs=1e-3)
    assert down == pytest.approx(10.25 + down_s, abs=1e-3)
    assert state == "DOWN"


def test_a_message_that_was_on_its_way_is_a_sign_of_life():
    cut = Partition(("worker-0",), ("server-0",), 50.0, at_s=10.2)
    _, seen = pair(ticks(10.125), [cut], cluster(silence="lan"))

    assert told(seen, "server-0")[0][0] == pytest.approx(10.375 + SUSPECTS, abs=1e-3)


def test_a_restart_behind_a_cut_joins_when_it_heals():
    plan = [Partition(("worker-0",), ("server-0",), 6.0, at_s=1.0), Crash("worker-0", at_s=2.0, restart_after_s=1.0)]
    _, seen = pair(None, plan, cluster(suspect_s=5, down_s=9, exit_s=0.5, unreachable_s=1.0))

    assert told(seen, "server-0") == [(2.5, "worker-0", "DOWN"), (7.25, "worker-0", "RESTARTED")]
    assert told(seen, "worker-0") == [(4.25, "server-0", "DOWN"), (7.25, "server-0", "UP")]


# Slow and lossy links


def test_a_slow_link_adds_latency_to_what_leaves_meanwhile_and_nothing_overtakes():
    slow = SlowLink("server-0", "worker-0", 1.0, 1.0, at_s=1.0)
    _, seen = pair(ticks(0.75, 1.0, 1.75, 2.0, 3.0), [slow], cluster(suspect_s=5, down_s=9))

    assert [row[0] for row in seen.of("server-0", "message")] == [1.0, 2.25, 3.0, 3.0, 3.25]


def test_a_slow_link_may_look_like_a_dead_peer():
    slow = SlowLink("server-0", "worker-0", 4.0, 10.0, at_s=1.0)
    _, seen = pair(None, [slow], cluster(suspect_s=0.5, down_s=2), until_s=20)

    # Heard last at 1.25, and next at 5.25; the new session begins a slow latency after the verdict.
    assert told(seen, "server-0") == [
        (1.75, "worker-0", "SUSPECT"), (3.25, "worker-0", "DOWN"), (7.5, "worker-0", "UP"),
    ]  # fmt: skip


def test_a_message_that_is_leaving_when_its_link_slows_down_is_split_exactly():
    message = Bulk(np.zeros(100))
    one_s = size_bytes(message) / 1e3
    slow = SlowLink("server-0", "worker-0", 0.0, one_s, at_s=one_s / 2, slowdown=4.0)
    script = on(start=lambda ctx, saved: ctx.send(SERVER, message))
    _, seen = pair(script, [slow], cluster(0.25, 1e3, suspect_s=50, down_s=90))

    # Half of it before, a quarter in a time of its own length while it is slow, a quarter after.
    ((at_s, *_),) = seen.of("server-0", "message")
    assert at_s == pytest.approx(one_s / 2 + one_s + one_s / 4 + 0.25, rel=1e-15)


def test_losses_show_as_delays_that_double_and_hold_up_what_follows():
    count, loss, timeout_s, latency_s = 400, 0.3, 0.125, 0.25
    fault = Lossy("server-0", "worker-0", loss, 1e4, at_s=0.5, timeout_s=timeout_s)
    times = [1.0 + n for n in range(count)]
    _, seen = pair(ticks(*times), [fault], cluster(latency_s, suspect_s=50, down_s=90), until_s=2000)

    key, latest, expected = stream_key(0, "", "loss/worker-0/server-0"), 0.0, []
    for number, time_s in enumerate(times):
        lost = 0
        while uniform(key, number) < loss ** (lost + 1):
            lost += 1
        late_s = timeout_s * (2**lost - 1 if lost <= 7 else 127 + 64 * (lost - 7))
        latest = max(latest, time_s + latency_s + late_s)
        expected.append(latest)
    assert [row[0] for row in seen.of("server-0", "message")] == pytest.approx(expected, rel=1e-12)
    assert [row[2] for row in seen.of("server-0", "message")] == [f"{time_s:g}" for time_s in times]


def test_the_mean_delay_of_losses_is_that_of_the_documentation():
    """Of k losses with probability loss**k (1 - loss); the sum to 60 stands for the series."""
    loss = 0.2
    mean = sum(loss**k * (1 - loss) * (2.0**k - 1) for k in range(60))
    assert mean == pytest.approx(loss / (1 - 2 * loss), rel=1e-12)
    assert [backoff_s(0.5, k) for k in range(4)] == [0.0, 0.5, 1.5, 3.5]
    assert backoff_s(1.0, 8) - backoff_s(1.0, 7) == 64.0
    assert backoff_s(1.0, 9) - backoff_s(1.0, 8) == 64.0


# Shared links


def shared(**detection):
    star = Star(hosts=3, bandwidth_bps=8e3, latency_s=0.125)
    network = TopologyNetwork(topology=star)
    return Cluster(workers=1, network=network, detection=Detection(**detection))


def test_cuts_and_added_latency_come_before_links_that_are_shared():
    message = Bulk(np.zeros(100))
    one_s = size_bytes(message) / 1e3
    script = ticks(0.0, 2.0, 2.5, make=lambda name: message)
    _, plain = pair(script, [], shared(suspect_s=50, down_s=90))
    first_s = plain.of("server-0", "message")[0][0]
    cut = Partition(("worker-0",), ("server-0",), 8.0, at_s=1.0)
    slow = SlowLink("server-0", "worker-0", 2.0, 50.0, at_s=8.75)
    _, seen = pair(script, [cut, slow], shared(suspect_s=50, down_s=90))

    times = [row[0] for row in seen.of("server-0", "message")]
    assert times == pytest.approx([first_s, 9.0 + first_s + 2.0, 9.0 + first_s + one_s + 2.0], rel=1e-12)


def test_a_session_that_ends_behind_a_cut_on_shared_links_loses_what_waited():
    cut = Partition(("worker-0",), ("server-0",), 6.0, at_s=1.0)
    _, seen = pair(ticks(2.0, 9.0), [cut], shared(suspect_s=0.5, down_s=2))

    assert [state for *_, state in told(seen, "server-0")] == ["SUSPECT", "DOWN", "UP"]
    assert [text for *_, text in seen.of("server-0", "message")] == ["9"]


def test_how_fast_bytes_leave_shared_links_is_not_a_fault_of_one_of_them():
    with pytest.raises(UserError, match=r"faults\[0\].slowdown: got 2 where messages share links"):
        pair(None, [SlowLink("server-0", "worker-0", 0.0, 1.0, at_s=1.0, slowdown=2.0)], shared())
