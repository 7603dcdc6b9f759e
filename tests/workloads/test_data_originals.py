"""The original's data sets: their shapes on the real rows, every file layout, the order of search, every refusal."""

import gzip
import lzma
import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from emuml.errors import UserError
from emuml.workloads import data
from emuml.workloads.data.facts import ORIGINALS
from emuml.workloads.regression import LinearRegression, LogisticRegression
from tests.datafiles import data_file

REAL = {"covertype": "ml/covtype_full.npz.xz", "kc-house": "ml/kc_house_data.csv.xz"}


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path, monkeypatch):
    """Tests see neither the data folder nor the cache of whoever runs them."""
    monkeypatch.delenv("EMUML_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "no-cache"))


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_facts_agree_with_each_other(name):
    original = ORIGINALS[name]
    assert len(original.columns) == len(set(original.columns)) == len(original.cardinalities)
    crossed = original.one_hot_columns - sum(original.cardinalities)
    assert crossed == 0 if not original.pairs else crossed > 0


def test_the_shapes_are_those_of_the_original():
    shapes = {
        name: (fact.rows - math.ceil(0.2 * fact.rows), fact.one_hot_columns + 1) for name, fact in ORIGINALS.items()
    }
    assert shapes == {"covertype": (396_112, 15_509), "kc-house": (17_290, 27_654), "amazon-access": (26_215, 241_915)}
    entries = {name: len(fact.columns) + len(fact.pairs) + 1 for name, fact in ORIGINALS.items()}
    assert entries == {"covertype": 55, "kc-house": 19, "amazon-access": 44}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REAL))
def test_real_rows_have_the_original_shape(name):
    path, original = data_file(REAL[name]), ORIGINALS[name]
    tracemalloc.start()
    try:
        table = data.load(f"{name}:{path}", 0, "here")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.X.shape == (original.rows, original.one_hot_columns)
    assert table.X.values is None
    codes = table.X.indices.reshape(original.rows, -1)
    assert tuple(len(np.unique(codes[:, j])) for j in range(codes.shape[1])) == original.cardinalities
    assert (np.diff(table.X.indptr) == len(original.columns)).all()
    assert "where the original has" not in table.source
    assert peak_bytes < 600e6


@pytest.mark.slow
def test_covertype_splits_as_the_original():
    problem = LogisticRegression(data=f"covertype:{data_file(REAL['covertype'])}", l2=0.0).problem(0)
    assert problem.features.shape == (396_112, 15_509)
    assert problem.features.nnz == 55 * 396_112
    # Of classes 1 and 2, the larger one is +1.
    both = np.concatenate([problem.targets, problem.validation_targets])
    assert (np.count_nonzero(both == -1), np.count_nonzero(both == 1)) == (211_840, 283_301)


@pytest.mark.slow
def test_house_sales_split_as_the_original(monkeypatch):
    monkeypatch.setenv("EMUML_DATA", str(data_file(REAL["kc-house"]).parents[1]))
    problem = LinearRegression(data="kc-house", l2=0.0).problem(0)
    assert problem.features.shape == (17_290, 27_654)
    assert problem.features.nnz == 19 * 17_290
    assert round(1e6 * (problem.targets.sum() + problem.validation_targets.sum())) == 11_674_956_998
    assert "c7b7d95c061ccdf797c757a81d87ee652ccb150674d98e5bcdf4da1ac9f1c232" in problem.source


HOUSES = [[3 + i % 2, 1.5, 900 + i, *range(14), 100 * i] for i in range(5)]
PRICES = [250_000.0 + 1000 * i for i in range(5)]
TERRAIN = np.array([[2000 + i % 3, *range(9), *(np.eye(4)[i % 4]), *(np.eye(40)[i % 5])] for i in range(8)], int)
CLASSES = np.array([1, 2, 7, 2, 1, 1, 3, 2])


def house_csv(header="price,id,{}", line="{1},{0},{2}"):
    lines = [header.format(",".join(ORIGINALS["kc-house"].columns))]
    for i, (price, row) in enumerate(zip(PRICES, HOUSES, strict=True)):
        lines.append(line.format(i, price, ",".join(map(str, row))))
    return "\n".join(lines) + "\n"


def terrain_csv():
    return "".join(",".join(map(str, (*row, label))) + "\n" for row, label in zip(TERRAIN, CLASSES, strict=True))


WRITERS = {
    "": lambda path, text: path.write_bytes(text),
    ".gz": lambda path, text: path.write_bytes(gzip.compress(text)),
    ".xz": lambda path, text: path.write_bytes(lzma.compress(text)),
}


@pytest.mark.parametrize("packing", sorted(WRITERS))
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_house_sales_from_csv(packing, mark, tmp_path):
    path = tmp_path / f"mine.csv{packing}"
    WRITERS[packing](path, (mark + house_csv()).encode())
    table = data.load(f"kc-house:{path}", 0, "here")
    wanted = data.one_hot(list(np.array(HOUSES).T))
    assert wanted == table.X
    np.testing.assert_array_equal(table.y, np.array(PRICES) / 1e6)
    shape = f"5 rows x {wanted.columns} one-hot columns, where the original has 21613 x 27653"
    assert table.source.startswith(f"kc-house: file {path} (SHA-256 ")
    assert table.source.endswith(shape)


TERRAIN_HEADER = ",".join((*ORIGINALS["covertype"].columns, "Cover_Type")) + "\n"
OTHER_HEADER = TERRAIN_HEADER.replace("Area_", "Area").lower().replace("cover_type", '"class"')


@pytest.mark.parametrize("name", ["covtype.data", "covtype.data.gz", "mine.csv", "mine.csv.xz"])
@pytest.mark.parametrize("header", ["", TERRAIN_HEADER, OTHER_HEADER])
def test_covertype_from_csv(name, header, tmp_path):
    packing = next(ending for ending in (".gz", ".xz", "") if name.endswith(ending))
    WRITERS[packing](tmp_path / name, (header + terrain_csv()).encode())
    table = data.load(f"covertype:{tmp_path / name}", 0, "here")
    kept = np.isin(CLASSES, (1, 2))
    assert data.one_hot(list(TERRAIN[kept].T)) == table.X
    np.testing.assert_array_equal(table.y, CLASSES[kept])


def planes():
    high, low = np.divmod(TERRAIN[:, :10].T, 256)
    indicators = {"wild": TERRAIN[:, 10:14].argmax(1), "soil": TERRAIN[:, 14:].argmax(1)}
    return {"hi": high.astype(np.int8), "lo": low.astype(np.uint8), **indicators, "y": CLASSES}


def test_covertype_from_arrays(tmp_path):
    np.savez(tmp_path / "X.npz", X=TERRAIN.astype(float), y=CLASSES)
    np.savez(tmp_path / "planes.npz", **planes())
    (tmp_path / "packed.npz.xz").write_bytes(lzma.compress((tmp_path / "planes.npz").read_bytes()))
    tables = [data.load(f"covertype:{tmp_path / name}", 0, "x") for name in ("X.npz", "planes.npz", "packed.npz.xz")]
    wanted = data.one_hot(list(TERRAIN[np.isin(CLASSES, (1, 2))].T))
    assert all(wanted == table.X for table in tables)


def test_amazon_crosses_its_pairs(tmp_path):
    draws = np.random.default_rng(5)
    X, y = draws.integers(0, 3, (40, 9)), draws.integers(0, 2, 40)
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    names = ",".join(("ACTION", *ORIGINALS["amazon-access"].columns))
    np.savetxt(tmp_path / "mine.csv", np.column_stack([y, X]), "%d", ",", header=names, comments="")
    table = data.load(f"amazon-access:{tmp_path / 'mine.npz'}", 0, "here")
    distinct = sum(len(np.unique(X[:, [a, b]], axis=0)) for a in range(9) for b in range(a, 9))
    left_out = sum(len(np.unique(X[:, pair], axis=0)) for pair in ([2, 3], [5, 7]))
    assert table.X.columns == distinct - left_out
    assert table.X.nnz == 43 * 40
    np.testing.assert_array_equal(table.y, y)
    assert data.load(f"amazon-access:{tmp_path / 'mine.csv'}", 0, "here").X == table.X


def test_a_matrix_that_is_encoded_already_is_taken_as_it_is(tmp_path):
    X = sparse.csr_array(np.eye(3))
    stored = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "y": np.array([1, 2, 2])}
    np.savez(tmp_path / "covertype.npz", **stored)
    table = data.load(f"covertype:{tmp_path / 'covertype.npz'}", 0, "here")
    assert table.X.shape == (3, 3)
    np.testing.assert_array_equal(table.y, [1, 2, 2])
    assert table.source.endswith("3 rows x 3 one-hot columns, where the original has 495141 x 15508")


def test_a_path_comes_before_the_data_folder_and_its_name_before_ml(tmp_path, monkeypatch):
    (tmp_path / "ml").mkdir()
    for place in ("mine", "covertype", "ml/covtype_full"):
        np.savez(tmp_path / f"{place}.npz", **planes())
    packed = tmp_path / "ml" / "covtype_full.npz.xz"
    packed.write_bytes(lzma.compress((tmp_path / "ml" / "covtype_full.npz").read_bytes()))
    monkeypatch.setenv("EMUML_DATA", str(tmp_path))
    assert f"file {tmp_path / 'mine.npz'} " in data.load("covertype:mine.npz", 0, "here").source
    assert f"file {tmp_path / 'covertype.npz'} " in data.load("covertype", 0, "here").source
    (tmp_path / "covertype.npz").unlink()
    assert f"file {packed} " in data.load("covertype", 0, "here").source


@pytest.mark.parametrize("name", sorted(ORIGINALS))
def test_what_is_nowhere_says_what_to_do(name, tmp_path):
    with pytest.raises(UserError) as caught:
        data.load(name, 0, "workload.data")
    text = str(caught.value)
    assert text.startswith(f"workload.data: {name!r} is not on this machine")
    assert f"'{name}:PATH'" in text
    assert f"a folder EMUML_DATA with {name}.npz" in text
    assert 'python -c "from sklearn.datasets import fetch_' in text
    assert f"'{name}-twin'" in text
    assert not (tmp_path / "no-cache").exists()


def test_the_data_folder_does_not_hide_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("EMUML_DATA", str(tmp_path))
    with pytest.raises(UserError, match="is not on this machine"):
        data.load("covertype", 0, "here")


def save(**arrays):
    return lambda path: np.savez(path, **arrays)


def write(text):
    return lambda path: path.write_bytes(text.encode())


HEADER = ",".join(("price", *ORIGINALS["kc-house"].columns))


@pytest.mark.parametrize(
    ("name", "make", "what"),
    [
        ("covertype:bad.npz", save(X=TERRAIN), "has no array y"),
        ("covertype:bad.npz", save(X=TERRAIN[:, 1:], y=CLASSES), "X has shape (8, 53)"),
        ("covertype:bad.npz", save(X=TERRAIN, y=CLASSES[1:]), "Cover_Type has dtype int64 and shape (7,)"),
        ("covertype:bad.npz", save(X=TERRAIN, y=CLASSES.astype(str)), "Cover_Type has dtype <U21 and shape (8,)"),
        ("covertype:bad.npz", save(X=TERRAIN, y=CLASSES + 2), "there are no rows of these classes"),
        ("covertype:bad.npz", save(X=np.where(TERRAIN == 2001, np.nan, TERRAIN), y=CLASSES), "row 1 is nan"),
        ("covertype:bad.npz", save(X=np.array([{}], object), y=CLASSES), "bad.npz cannot be read"),
        ("covertype:bad.npz", save(y=CLASSES), "has no array data"),
        ("covertype:bad.npz", write("no archive"), "bad.npz cannot be read"),
        ("covertype:bad.npz.xz", write("not packed"), "bad.npz.xz cannot be read"),
        ("covertype:bad.data.gz", write("not packed"), "bad.data.gz cannot be read"),
        ("covertype:bad.csv", write("1,2,3\n"), "bad.csv has 1 rows of 3 numbers"),
        ("covertype:bad.csv", write("1,2,3\n1,2\n"), "bad.csv cannot be read"),
        ("covertype:bad.csv", write("1,2,3\n1,2,x\n"), "bad.csv cannot be read"),
        ("covertype:bad.csv", write(TERRAIN_HEADER), "bad.csv has 0 rows"),
        ("covertype:bad.txt", write("1"), "bad.txt is of no known kind"),
        ("covertype:nowhere.npz", write(""), "there is no file 'nowhere.npz'"),
        ("covertype:", write(""), "there is no file ''"),
        ("kc-house:bad.data", write("1"), "bad.data is of no known kind"),
        ("kc-house:bad.csv", write(""), "bad.csv has no column 'bedrooms'"),
        ("kc-house:bad.csv", write(house_csv("prize,id,{}")), "bad.csv has no column 'price'"),
        ("kc-house:bad.csv", write(HEADER + "\n"), "bad.csv has no rows"),
        ("kc-house:bad.csv", write(HEADER + "\n\n1,2\n"), "bad.csv, line 3: 2 cells"),
        ("kc-house:bad.csv", write(house_csv(line="{1}$,{0},{2}")), "price has dtype <U9 and shape (5,)"),
        ("kc-house:bad.csv", lambda path: path.write_bytes(HEADER.encode() + b"\n\xff"), "bad.csv cannot be read"),
    ],
)
def test_bad_files_are_named(name, make, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / (name.partition(":")[2].replace("nowhere", "there") or "there"))
    with pytest.raises(UserError) as caught:
        data.load(name, 0, "here")
    assert what in caught.value.what
    assert caught.value.where.startswith("here")
    assert caught.value.allowed


def test_a_near_name_is_offered():
    with pytest.raises(UserError, match="did you mean 'covertype'"):
        data.load("covertyp", 0, "here")
