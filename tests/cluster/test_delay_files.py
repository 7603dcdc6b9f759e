"""Files of recorded delays: every form that is read, and every doubt refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from emuml.cluster import DelayTrace
from emuml.errors import UserError

TABLE = [[0.5, 0.25, 2.0], [1.0, 0.75, 0.125]]


def written(folder: Path, text: str, name: str = "delays.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", "   ", ", ", " ; "])
@pytest.mark.parametrize("header", [False, True])
def test_a_table_is_read_with_any_separator_with_and_without_a_header(
    separator: str, header: bool, tmp_path: Path
) -> None:
    lines = [separator.join(map(str, row)) for row in TABLE]
    names = [separator.join(["worker-0", "worker-1", "w2"])] if header else []
    assert DelayTrace(written(tmp_path, "\n".join([*names, *lines]))).array.tolist() == TABLE


@pytest.mark.parametrize(
    "text",
    [
        "0.5,0.25,2\r\n1,.75,125e-3\r\n",
        "\ufeff0.5,0.25,2\n1,0.75,0.125\n",
        "# seconds\n\n0.5,0.25,2\n\n1,0.75,0.125\n\n",
        '"first, one";"second";third\n"0.5";0.25;2\n1;0.75;0.125',
        "  0.5 0.25 2\n  1 0.75 +0.125",
    ],
)
def test_what_editors_and_spreadsheets_leave_is_read(text: str, tmp_path: Path) -> None:
    assert DelayTrace(written(tmp_path, text)).array.tolist() == TABLE


@settings(max_examples=30)
@given(table=arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 1e12)))
@pytest.mark.parametrize("separator", [",", " "])
def test_what_numpy_writes_is_read_back(separator: str, table: np.ndarray, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("written")
    np.savetxt(folder / "delays.txt", table, delimiter=separator)
    np.save(folder / "delays.npy", table)
    np.savez(folder / "delays.npz", seconds=table)
    assert np.array_equal(DelayTrace(folder / "delays.npy").array, table)
    assert np.array_equal(DelayTrace(str(folder / "delays.npz")).array, table)
    assert np.allclose(DelayTrace(folder / "delays.txt").array, table, rtol=1e-15, atol=0)


def test_one_column_is_one_worker(tmp_path: Path) -> None:
    assert DelayTrace(written(tmp_path, "seconds\n0.5\n0.25")).array.tolist() == [[0.5], [0.25]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.5,0.25\n1,x", "delays.csv, line 2, column 2 is 'x'; allowed: seconds, in decimal digits"),
        ("a,b\n\n# x\n0.5,-1", "delays.csv, line 4, column 2 is -1.0; allowed: seconds from 0 to 1e12"),
        ("0.5,inf", "delays.csv, line 1, column 2 is inf"),
        ("0.5,1e13", "delays.csv, line 1, column 2 is 10000000000000.0"),
        ("0.5,1_0", "delays.csv, line 1, column 2 is '1_0'"),
        ("0.5,0x1", "delays.csv, line 1, column 2 is '0x1'"),
        ("0.5 s,0.25 s\n1,2", "line 1, column 1 is '0.5 s'"),
        ("0,5;0,25\n1;2", "column 1 is '0,5'; allowed: seconds, in decimal digits; write decimals with a point"),
        ("0.5,0.25\n1,2,3", "delays.csv, line 2 has 3 cells, line 1 has 2"),
        ("a,b,c\n1,2", "delays.csv, line 2 has 2 cells, line 1 has 3"),
        ("", "delays.csv has no rounds"),
        ("worker-0,worker-1\n", "delays.csv has no rounds"),
        ("# nothing\n", "delays.csv has no rounds"),
        ("1,0.5\n2,0.25\n3,0.125", "delays.csv, column 1 counts from 1 to 3, as numbers of rounds do"),
        ("i,w\n0,0.5\n1,0.25\n2,0.125", "delays.csv, column 1 counts from 0 to 2, as numbers of rounds do"),
        ("0,1,2\n0.5,0.25,1", "delays.csv, line 1 counts from 0 to 2, as a header of numbers does"),
        ("round,w0\n4,0.5\n9,0.25", "delays.csv, line 1, column 1 is called 'round', which is no worker"),
        (",0,1,2\n0,0.5,0.5,1", "delays.csv, line 1, column 1 is called '', which is no worker"),
    ],
)  # fmt: skip
def test_what_may_be_no_delay_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as refused:
        DelayTrace(written(tmp_path, text))
    assert refused.value.where == "delay-trace.array"


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "NA", "n/a", "null", "None"])
def test_missing_values_are_refused_with_their_place_or_their_rounds_left_out_on_request(
    cell: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"a,b\n0.5,0.25\n0.75,{cell}\n1,2")
    with pytest.raises(UserError, match=r"line 3, column 2 is missing; .* drop-rounds leaves such rounds out"):
        DelayTrace(path)
    kept = DelayTrace(path, missing="drop-rounds")
    assert kept.array.tolist() == [[0.5, 0.25], [1.0, 2.0]]
    assert kept.source.endswith("2 rounds x 2 workers, 1 rounds with missing values left out")


def test_dropping_rounds_lets_nothing_else_through(tmp_path: Path) -> None:
    for text, message in [
        ("nan,0.5\n-1,2", r"line 2, column 1 is -1\.0"),
        ("nan,1\n2,nan", "every round has a missing"),
    ]:
        with pytest.raises(UserError, match=message):
            DelayTrace(written(tmp_path, text), missing="drop-rounds")
    with pytest.raises(UserError, match=r"entry \[1, 0\] is inf"):
        DelayTrace([[0.5, np.nan], [np.inf, 1.0]], missing="drop-rounds")
    assert DelayTrace([[0.5, np.nan], [2.0, 1.0]], missing="drop-rounds").array.tolist() == [[2.0, 1.0]]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in (tmp_path / "none.csv", tmp_path, "a\0b", ""):
        with pytest.raises(UserError, match=r"there is no file .* allowed: text \(rounds x workers, by comma"):
            DelayTrace(name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"", "cannot be read"),
        ("a.npz", b"PK\x03\x04 no archive", "cannot be read"),
        ("a.csv", b"0.5,\xff", "cannot be read: 'utf-8' codec"),
        ("a.csv", "0.5,1".encode("utf-16"), "cannot be read: 'utf-8' codec"),
    ],
)
def test_damaged_files_are_one_sentence(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        DelayTrace(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), r"got shape \(3,\) in .*a\.npy"),
        (np.ones((2, 2)) * 1j, r"not an array of numbers in .*a\.npy \(complex numbers\)"),
        (np.array([["a"]]), "not an array of numbers"),
        (np.array([[0.5, np.nan]]), r"a\.npy, entry \[0, 1\] is missing"),
        (np.array([[0.5, -1.0]]), r"a\.npy, entry \[0, 1\] is -1\.0"),
        (np.array([[None]]), "cannot be read"),
    ],
)
def test_arrays_that_are_no_delays_are_refused(array: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UserError, match=message):
        DelayTrace(tmp_path / "a.npy")


def test_an_archive_of_two_arrays_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", first=np.ones((1, 1)), second=np.ones((1, 1)))
    with pytest.raises(UserError, match=r"a\.npz has 2 arrays \(first, second\); allowed: one array"):
        DelayTrace(tmp_path / "a.npz")
