"""Settings and files that nobody should break anything with: each is refused in words, or means one thing."""

import csv
import io
import lzma
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.workloads import data
from emuml.workloads.data import files
from emuml.workloads.data.cells import typed
from emuml.workloads.data.facts import ORIGINALS

AMAZON = ORIGINALS["amazon-access"]
HOUSES = ORIGINALS["kc-house"]
ONES = ",".join(["1"] * 54) + ",2\n"
CSR = {"data": np.ones(3), "indices": np.arange(3), "indptr": np.arange(4), "shape": [3, 3], "y": np.ones(3)}
PLANES = {
    **{name: np.zeros((10, 3), np.uint8) for name in ("lo", "hi")},
    **{name: np.zeros(3, np.uint8) for name in ("wild", "soil")},
    "y": np.ones(3),
}
HUGE = np.longdouble("1e400")  # beyond float64, and on some platforms infinite
SEVEN = np.zeros((7, 3), np.uint8)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EMUML_DATA", raising=False)


def refused(spec):
    with pytest.raises(UserError) as caught:
        data.load(spec, 7, "here")
    assert caught.value.where.startswith("here")
    return caught.value


def write_csv(original, ids, name="mine.csv", first=None):
    """A table of ones but for its first input column (or the one named ``first``)."""
    with open(name, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([original.target, *original.columns])
        place = original.columns.index(first) if first else 0
        for i, value in enumerate(ids):
            rows.writerow([i % 2, *(value if j == place else 1 for j in range(len(original.columns)))])
    return name


@pytest.mark.parametrize("first", ["1.5", "x", "", '"1"', "#1", "1e0", "1_0", "99999999999"])
@pytest.mark.parametrize("place", [0, 1])
def test_no_line_of_covertype_is_passed_over(first, place, tmp_path):
    lines = [ONES, ONES]
    lines[place] = ONES.replace("1,", f"{first},", 1)
    (tmp_path / "mine.csv").write_text("".join(lines))
    assert "mine.csv cannot be read" in refused("covertype:mine.csv").what


def test_a_header_names_the_columns(tmp_path):
    names = [*ORIGINALS["covertype"].columns, "Cover_Type"]
    swapped = [names[1], names[0], *names[2:]]
    for header in (swapped, names[:-1], [f"c{i}" for i in range(55)]):
        (tmp_path / "mine.csv").write_text(",".join(header) + "\n" + ONES)
        assert "mine.csv cannot be read" in refused("covertype:mine.csv").what


@pytest.mark.parametrize(
    "ids",
    [
        [2**53 + i for i in range(4)],
        [-(2**53) - i for i in range(4)],
        [2**64 + i for i in range(4)],
        ["007", "7", "7.0", "07"],
        ["1_0", "10", "11", "12"],
        [2**53 + 1, 2**53, "1.5", "2.5"],
        ["\u0663", "3", "4", "5"],
        ["a", "A", "b", "1"],
    ],
)
def test_ids_stay_apart(ids):
    table = data.load(f"amazon-access:{write_csv(AMAZON, ids)}", 7, "here")
    assert len(set(table.X.indices.reshape(4, -1)[:, 0])) == 4


def test_numbers_are_equal_however_they_are_written():
    table = data.load(f"amazon-access:{write_csv(AMAZON, ['7', '7.0', '7e0', ' 7'])}", 7, "here")
    assert len(set(table.X.indices.reshape(4, -1)[:, 0])) == 1


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_whole_numbers_come_as_they_are(numbers):
    column = typed([str(number) for number in numbers])
    assert column.dtype == np.int64
    assert column.tolist() == numbers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_fractions_come_as_they_are(numbers):
    np.testing.assert_array_equal(typed([repr(number) for number in numbers]).astype(float), numbers)


@pytest.mark.parametrize("word", ["nan", "-Infinity", "1e999"])
def test_cells_that_are_not_finite_are_refused(word):
    assert "row 1 is" in refused(f"kc-house:{write_csv(HOUSES, ['1', word])}").what


@pytest.mark.parametrize("cell", ["", "  "])
def test_an_empty_cell_is_named_by_line_and_column(cell):
    name = write_csv(HOUSES, ["1", cell, "3"], first="sqft_lot")
    assert refused(f"kc-house:{name}").what == "mine.csv, line 3: sqft_lot is empty"


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    (tmp_path / "mine.csv").write_text(",".join([HOUSES.target, *HOUSES.columns, "grade"]) + "\n")
    assert refused("kc-house:mine.csv").what == "mine.csv has 2 columns 'grade'"


@pytest.mark.parametrize(
    ("name", "arrays", "what"),
    [
        ("", {**CSR, "format": np.array([b"csr", b"x"])}, "holds a matrix in the format [b'csr', b'x']"),
        ("", {**CSR, "format": np.array("cs\u00e9")}, "holds a matrix in the format 'cs\u00e9'"),
        ("", {**CSR, "format": np.array(b"cs\xe9")}, "holds a matrix in the format 'cs\ufffd'"),
        ("", {**CSR, "format": np.array(3)}, "holds a matrix in the format 3"),
        ("", {**CSR, "data": np.array([1, 2, HUGE])}, f"values: values[2] is {HUGE!s}"),
        ("", {"X": np.ones((3, 2)), "y": np.array([1, 2, HUGE])}, "y[2] is inf"),
        ("covertype:", {**PLANES, "lo": np.zeros(10, np.uint8)}, "lo has dtype uint8 and shape (10,)"),
        ("covertype:", {**PLANES, "hi": SEVEN}, "hi has dtype uint8 and shape (7, 3)"),
        ("covertype:", {**PLANES, "hi": SEVEN, "lo": SEVEN}, "lo has dtype uint8 and shape (7, 3)"),
        ("covertype:", {**PLANES, "lo": np.full((10, 3), "a")}, "lo has dtype <U1 and shape (10, 3)"),
        ("covertype:", {**PLANES, "lo": np.full((10, 3), 256)}, "lo goes from 256 to 256"),
        ("covertype:", {**PLANES, "wild": np.full(3, 77)}, "wild goes from 77 to 77"),
        ("covertype:", {**PLANES, "soil": np.array([0, 40, 1])}, "soil goes from 0 to 40"),
        ("covertype:", {**PLANES, "wild": np.zeros((3, 2), int)}, "wild has dtype int64 and shape (3, 2)"),
        ("covertype:", {**PLANES, "y": np.array(1.0)}, "lo has dtype uint8 and shape (10, 3)"),
        ("covertype:", {**PLANES, "y": np.ones(3, bool)}, "Cover_Type has dtype bool and shape (3,)"),
        ("covertype:", {**CSR, "y": np.arange(3)}, "Cover_Type of row 0 is 0"),
        ("amazon-access:", {**CSR, "y": np.arange(3)}, "ACTION of row 2 is 2"),
        ("amazon-access:", {"X": np.ones((3, 9)), "y": np.arange(3)}, "ACTION of row 2 is 2"),
        ("kc-house:", {**CSR, "y": np.ones(3, bool)}, "price has dtype bool and shape (3,)"),
        ("kc-house:", {"X": np.ones((3, 18)), "y": np.ones(3, bool)}, "price has dtype bool and shape (3,)"),
        ("kc-house:", {"X": np.ones((3, 18)), "y": np.array(["1", "2", "3"])}, "price has dtype <U1 and shape (3,)"),
        ("kc-house:", {"X": np.ones((3, 18)), "y": np.array([1, np.nan, 3])}, "y[1] is nan"),
    ],
)
def test_arrays_that_mean_nothing_are_refused(name, arrays, what):
    np.savez("mine.npz", **arrays)
    assert refused(f"{name}mine.npz").what == what


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_a_matrix_of_another_shape_says_so(name):
    np.savez("mine.npz", **CSR)
    original = ORIGINALS[name]
    shapes = f"3 rows x 3 one-hot columns, where the original has {original.rows} x {original.one_hot_columns}"
    assert data.load(f"{name}:mine.npz", 7, "here").source.endswith(shapes)


def member(header):
    """A member of an archive by the text of its header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    "X",
    [
        member(b"((((((((((((((\n"),
        member(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000, 18), }\n"),
        member(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 18), }\n"),
        member(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 18), }\n"),
    ],
)
def test_members_of_archives_that_lie_are_refused(X):
    y = io.BytesIO()
    np.save(y, np.ones(3))
    with zipfile.ZipFile("mine.npz", "w") as archive:
        archive.writestr("X.npy", X)
        archive.writestr("y.npy", y.getvalue())
    assert "mine.npz cannot be read: " in refused("kc-house:mine.npz").what


def test_a_member_that_is_no_array_does_not_count():
    with zipfile.ZipFile("mine.npz", "w") as archive:
        archive.writestr("y.npy", b"")
    assert refused("kc-house:mine.npz").what == "has no array y"


@given(st.data())
def test_damaged_archives_are_read_or_refused(drawn):
    stream = io.BytesIO()
    np.savez(stream, **CSR)
    damaged = bytearray(stream.getvalue())
    for _ in range(drawn.draw(st.integers(1, 3))):
        damaged[drawn.draw(st.integers(0, len(damaged) - 1))] = drawn.draw(st.integers(0, 255))
    with open("mine.npz", "wb") as file:
        file.write(damaged)
    try:
        data.load("mine.npz", 7, "here")
    except UserError as error:
        assert error.where.startswith("here")  # noqa: PT017


@pytest.mark.parametrize("name", ["mine.csv.xz", "mine.npz.xz"])
def test_files_that_unpack_to_too_much_are_refused(name, monkeypatch):
    monkeypatch.setattr(files, "UNPACKED_MAX_BYTES", 2**20)
    with open(name, "wb") as file:
        file.write(lzma.compress(bytes(2**20 + 1)))
    assert refused(f"kc-house:{name}").what == f"{name} cannot be read: it unpacks to more than 1 MiB"


def test_an_archive_larger_than_memory_is_refused_unread(monkeypatch):
    monkeypatch.setattr("emuml.workloads.data.limits.os.sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 64}.__getitem__)
    np.savez("mine.npz", **CSR)
    assert "the content of mine.npz takes 0.0 GiB" in refused("mine.npz").what


@pytest.mark.parametrize("spec", ["covertype-twin:99999999999", "two-gaussians:999999999x999999"])
def test_what_cannot_fit_into_memory_is_refused_at_once(spec):
    error = refused(spec)
    assert error.what.startswith(f"{spec} takes ")
    assert error.allowed.endswith("GiB of this machine")


@pytest.mark.parametrize(
    "spec",
    [
        "two-gaussians:\u0663x\u0663",
        "two-gaussians:5x",
        "two-gaussians:3x3x3",
        f"two-gaussians:{'9' * 5000}x1",
        "kc-house-twin:\u0663\u0660",
        "kc-house-twin:\u00b20",
        f"kc-house-twin:{'9' * 5000}",
    ],
)
def test_sizes_are_ascii_digits(spec):
    assert refused(spec).what.endswith((spec, repr(spec)))
