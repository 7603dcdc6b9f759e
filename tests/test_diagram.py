"""Space-time diagrams: golden drawings, pairing of sends and receives, causal past, folding, width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.diagram import WIDTH, causal_past, diagram, matched

ROWS = [
    (0.0, "server-0", "start", 1),
    (0.0, "worker-0", "start", 1),
    (0.0, "server-0", "send", "worker-0", "Step", 9),
    (0.5, "worker-0", "receive", "server-0", "Step", 9),
    (0.5, "worker-0", "begin", "task", 0),
    (0.5, "worker-0", "save", "v1", 8),
    (1.5, "worker-0", "computed", "task", 0),
    (1.5, "worker-0", "send", "server-0", "Saved", 9),
    (1.6, "worker-0", "crash", 1),
    (2.0, "server-0", "receive", "worker-0", "Saved", 9),
    (2.1, "server-0", "peer", "worker-0", "down"),
    (2.5, "server-0", "log", {"round": 1, "error": 0.5, "third": 3}),
    (2.6, "worker-0", "start", 2),
    (2.7, "server-0", "peer", "worker-0", "restarted"),
    (2.7, "server-0", "send", "worker-0", "Step", 9),
    (3.2, "worker-0", "receive", "server-0", "Step", 9),
]

GOLDEN = """
   t/s  server-0                      worker-0
     0  | (life 1) start              |
     0  |                             | (life 1) start
   0.5  |-----------Step 0----------->|
   0.5  |                             | s...v1
   1.5  |                             | computed task 0*
   1.6  |                             X life 1 crashed
     2  |<----------Saved 0-----------|
   2.1  | worker-0 down               .
   2.5  | log round=1, error=0.5      .
   2.6  |                             | (life 2) start
   2.7  | worker-0 restarted          |
   3.2  |----------Step 1*----------->|
        ^ v = 1, acknowledged 3
"""


def test_a_crash_and_a_return_are_drawn_as_by_hand():
    marks = ["message/server-0/worker-0/Step/1", "compute/worker-0/task/0"]
    assert diagram(ROWS, marks, last="v = 1, acknowledged 3") == GOLDEN.strip("\n")


def test_sends_and_receives_are_paired_within_their_session():
    rows = [
        (0, "a-0", "send", "b-0", "X", 1),
        (0, "a-0", "send", "b-0", "X", 1),
        (1, "b-0", "receive", "a-0", "X", 1),
        (2, "a-0", "crash", 1),
        (3, "b-0", "peer", "a-0", "down"),
        (4, "a-0", "send", "b-0", "X", 1),
        (4, "b-0", "peer", "a-0", "restarted"),
        (4, "b-0", "send", "a-0", "X", 1),
        (4, "a-0", "peer", "b-0", "up"),
        (5, "b-0", "receive", "a-0", "X", 1),
        (5, "a-0", "receive", "b-0", "X", 1),
    ]
    found = matched(rows)
    assert found.sent_at == {2: 0, 9: 5, 10: 7}
    assert found.names[5] == "message/a-0/b-0/X/2"


def test_what_was_on_the_way_to_a_dead_node_is_lost():
    rows = [
        (0, "a-0", "send", "b-0", "X", 1),
        (1, "b-0", "crash", 1),
        (2, "a-0", "send", "b-0", "X", 1),
        (3, "b-0", "receive", "a-0", "X", 1),
    ]
    assert matched(rows).sent_at == {3: 2}


def test_only_the_causal_past_of_the_last_row_is_drawn():
    rows = [
        (0, "c-0", "timer", "early"),
        (0, "a-0", "send", "b-0", "X", 1),
        (1, "a-0", "timer", "later"),
        (1, "c-0", "send", "a-0", "X", 1),
        (2, "a-0", "receive", "c-0", "X", 1),
        (3, "b-0", "receive", "a-0", "X", 1),
    ]
    assert causal_past(rows, matched(rows)) == {1, 5}
    assert causal_past(rows[:5], matched(rows[:5])) == {0, 1, 2, 3, 4}
    assert "early" not in diagram(rows)
    assert "early" in diagram(rows, everything=True)


def test_more_nodes_than_fit_share_the_last_column():
    rows = [(float(i), f"worker-{i}", "timer", "t") for i in range(12)]
    text = diagram(rows, everything=True)
    assert text.splitlines()[0].split()[-2:] == ["8", "others"]
    assert "worker-10 | timer t" in text or "worker-10 | tim" in text


def test_cuts_hangs_and_slow_nodes_are_drawn_where_they_begin_and_end():
    rows = [
        (1.0, "worker-0", "fault", "Crash"),
        (1.5, "worker-1", "fault", "Hang"),
        (2.0, "worker-0", "fault", "Partition"),
        (2.5, "worker-1", "healed", "Hang"),
        (3.0, "worker-0", "healed", "Partition"),
        (4.0, "worker-1", "fault", "SlowNode"),
        (5.0, "worker-1", "healed", "SlowNode"),
    ]
    drawn = [line.split(None, 1)[1].strip(" |") for line in diagram(rows, everything=True).splitlines()[1:]]

    assert drawn == [
        "= stands still", "// cut off", "= goes on", "// heals", "~ slow", "~ fast again",
    ]  # fmt: skip


def test_the_middle_of_a_long_run_is_left_out_and_counted():
    rows = [(float(i), "a-0", "timer", "t") for i in range(100)]
    lines = diagram(rows, lines_max=20).splitlines()
    assert len(lines) == 1 + 21
    assert "... 80 lines ..." in lines[11]


def test_nothing_is_drawn_of_nothing():
    assert diagram([]) == "   t/s"


NODES = st.sampled_from([f"worker-{i}" for i in range(9)] + ["server-0"])
KINDS = st.one_of(
    st.tuples(st.just("send"), NODES, st.text("ABc", min_size=1, max_size=60), st.just(1)),
    st.tuples(st.just("receive"), NODES, st.text("ABc", min_size=1, max_size=60), st.just(1)),
    st.tuples(st.sampled_from(["start", "crash", "save", "saved", "timer", "stop"]), st.integers(0, 10**9)),
    st.tuples(st.just("peer"), NODES, st.sampled_from(["up", "down", "suspect", "restarted"])),
)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1e6), NODES, KINDS), max_size=30), st.booleans())
def test_no_line_is_wider_than_the_page(drawn, everything):
    rows = [(time_s, node, *details) for time_s, node, details in drawn]
    text = diagram(rows, everything=everything, last="x" * 300)
    assert all(len(line) <= WIDTH for line in text.splitlines())
