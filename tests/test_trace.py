"""Traces: rows by name, files that may be cut anywhere, digests, merging."""

import io
import struct

import pytest

from emuml.errors import FormatError
from emuml.trace import KINDS, Trace, as_record, merge, read_rows

ROWS = [
    (0.0, "worker-0", "start", 1),
    (0.5, "worker-0", "send", "server-0", "Gradient", 78),
    (0.75, "server-0", "log", {"round": 1, "loss": 0.25}),
    (0.75, "server-0", "stop", "done"),
]


def filled(stream=None, keep=True):
    trace = Trace(stream, keep)
    for row in ROWS:
        trace.add(*row)
    return trace


def written():
    stream = io.BytesIO()
    filled(stream)
    return stream.getvalue()


def read(data, tmp_path):
    path = tmp_path / "trace"
    path.write_bytes(data)
    return list(read_rows(path))


def test_records_have_names():
    trace = filled()
    record = list(trace)[1]

    assert (record.time_s, record.node, record.kind) == (0.5, "worker-0", "send")
    assert record.details == {"peer": "server-0", "type": "Gradient", "size_bytes": 78}
    assert [row.kind for row in trace.of("log", "start")] == ["start", "log"]
    assert len(trace) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_has_exactly_the_details_of_its_kind(kind):
    names = KINDS[kind]

    assert list(as_record((0.0, "n", kind, *names)).details) == list(names)
    with pytest.raises(ValueError, match="zip"):
        as_record((0.0, "n", kind, *names, "one too many"))


def test_a_file_has_what_memory_has(tmp_path):
    assert read(written(), tmp_path) == ROWS


def test_rows_can_be_written_without_being_kept(tmp_path):
    stream = io.BytesIO()

    assert len(filled(stream, keep=False)) == 0
    assert read(stream.getvalue(), tmp_path) == ROWS


def test_a_file_cut_anywhere_is_a_prefix(tmp_path):
    data, header, lengths = written(), 12, []
    for size in range(header, len(data) + 1):
        rows = read(data[:size], tmp_path)
        assert rows == ROWS[: len(rows)]
        lengths.append(len(rows))

    assert lengths == sorted(lengths)
    assert set(lengths) == {0, 1, 2, 3, 4}
    for size in range(header):
        with pytest.raises(FormatError, match="this is no trace file"):
            read(data[:size], tmp_path)


def test_another_format_is_refused_by_number(tmp_path):
    data = written()

    with pytest.raises(FormatError, match=r"trace format 2; allowed: format 1"):
        read(data[:8] + struct.pack("<I", 2) + data[12:], tmp_path)
    with pytest.raises(FormatError, match="this is no trace file"):
        read(b"EMUMLJNL" + data[8:], tmp_path)


def test_digests_tell_traces_apart_by_content_and_order():
    changed = [[*ROWS[:3]], [*ROWS, ROWS[0]], ROWS[::-1], [*ROWS[:3], (0.75, "server-0", "stop", "Done")]]
    digests = {filled().digest()}
    for rows in changed:
        trace = Trace()
        trace.rows = rows
        digests.add(trace.digest())

    assert len(digests) == 5
    assert filled().digest() == filled(io.BytesIO()).digest()


def test_merging_goes_by_time_and_keeps_the_order_given():
    first = [(0.0, "a", "start", 1), (2.0, "a", "stop", "x")]
    second = [(0.0, "b", "start", 1), (1.0, "b", "stop", "y")]

    assert merge([first, second]).rows == [first[0], second[0], second[1], first[1]]
    assert merge([second, first]).rows == [second[0], first[0], second[1], first[1]]
