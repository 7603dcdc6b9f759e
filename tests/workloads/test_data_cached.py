"""What scikit-learn has fetched before is taken through its own loaders; what is not there is never fetched.

The caches are filled here as its loaders fill them: dumps of joblib, answers of OpenML's interface packed by gzip.
"""

import gzip
import hashlib
import json
import lzma
import socket
import sys

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.workloads import data
from emuml.workloads.data.facts import ORIGINALS
from tests.datafiles import data_file

pytestmark = pytest.mark.slow  # importing scikit-learn

ARFF = "data/v1/download/4135/kept.arff"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache; a loader that wanted to fetch would have no socket to do it."""
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install emuml[data]")
    monkeypatch.delenv("EMUML_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))

    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    return tmp_path / "home"


def keep_covertype(home, X, y):
    joblib = pytest.importorskip("joblib")
    (home / "covertype").mkdir(parents=True)
    joblib.dump(X.astype(float), home / "covertype" / "samples_py3")
    joblib.dump(y.astype(np.int32), home / "covertype" / "targets_py3")


def terrain(rows):
    draws = np.random.default_rng(rows)
    areas, soils = np.eye(4, dtype=int)[draws.integers(0, 4, rows)], np.eye(40, dtype=int)[draws.integers(0, 40, rows)]
    return np.hstack([draws.integers(-300, 7000, (rows, 10)), areas, soils]), draws.integers(1, 8, rows)


def test_covertype_is_taken_from_the_cache(home):
    X, y = terrain(60)
    keep_covertype(home, X, y)
    table = data.load("covertype", 0, "here")
    kept = y <= 2
    assert data.one_hot(list(X[kept].T)) == table.X
    np.testing.assert_array_equal(table.y, y[kept])
    assert table.source.startswith("covertype: scikit-learn ")
    assert f"fetch_covtype() of {home / 'covertype'}" in table.source


def test_all_real_rows_pass_through_the_cache(home):
    with np.load(packed := _unpacked(data_file("ml/covtype_full.npz.xz"), home.parent)) as planes:
        measures = (planes["hi"].astype(np.int16) * 256 + planes["lo"]).T
        X = np.hstack([measures, np.eye(4, dtype=np.int16)[planes["wild"]], np.eye(40, dtype=np.int16)[planes["soil"]]])
        keep_covertype(home, X, planes["y"])
    table = data.load("covertype", 0, "here")
    assert table.X.shape == (495_141, 15_508)
    assert data.load(f"covertype:{packed}", 0, "here").X == table.X


def _unpacked(path, folder):
    (folder / "covtype_full.npz").write_bytes(lzma.decompress(path.read_bytes()))
    return folder / "covtype_full.npz"


def test_half_a_cache_is_none(home):
    keep_covertype(home, *terrain(5))
    (home / "covertype" / "targets_py3").unlink()
    with pytest.raises(UserError, match="is not on this machine"):
        data.load("covertype", 0, "here")


def test_a_damaged_dump_is_named(home):
    keep_covertype(home, *terrain(5))
    (home / "covertype" / "samples_py3").write_bytes(b"no dump")
    with pytest.raises(UserError, match=r"fetch_covtype cannot load what is in .*covertype"):
        data.load("covertype", 0, "here")


def test_a_cache_without_scikit_learn_names_the_extra(home, monkeypatch):
    keep_covertype(home, *terrain(5))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "sklearn.datasets", raising=False)
    with pytest.raises(UserError, match=r"need scikit-learn, which is not installed.*pip install emuml\[data\]"):
        data.load("covertype", 0, "here")


def keep_openml(home, number, columns, target, **changes):
    """Keep a data set of whole numbers; columns with ``nominal`` in the dict are lists of text in OpenML's eyes."""
    root = home / "openml" / "openml.org"
    names = [*columns, target[0]]
    kinds = {name: kind for name, (kind, _) in columns.items()} | {target[0]: target[1]}
    cells = np.column_stack([values for _, values in columns.values()] + [target[2]])

    def declared(name, j):
        if kinds[name] != "nominal":
            return f"@ATTRIBUTE {name} NUMERIC"
        return f"@ATTRIBUTE {name} {{{','.join(map(str, dict.fromkeys(cells[:, j].tolist()[::-1])))}}}"

    lines = ["@RELATION kept", *(declared(name, j) for j, name in enumerate(names)), "@DATA"]
    arff = "\n".join([*lines, *(",".join(map(str, row)) for row in cells.tolist())]).encode() + b"\n"
    flags = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    features = [
        {"index": str(j), "name": name, "data_type": kinds[name], "is_target": str(name == target[0]).lower(), **flags}
        for j, name in enumerate(names)
    ]
    description = {"id": str(number), "name": "kept", "version": "1", "format": "ARFF", "status": "active"}
    description |= {"description": "made here", "url": f"https://api.openml.org/data/v1/download/{number}/kept.arff"}
    description |= {"md5_checksum": hashlib.md5(arff).hexdigest(), **changes}
    answers = {
        str(number): {"data_set_description": description},
        f"features/{number}": {"data_features": {"feature": features}},
        f"qualities/{number}": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": len(cells)}]}},
    }
    files = {f"api/v1/json/data/{part}": json.dumps(answer).encode() for part, answer in answers.items()}
    for path, content in (files | {f"data/v1/download/{number}/kept.arff": arff}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{path}.gz").write_bytes(gzip.compress(content))
    return root


def amazon(kind="nominal"):
    """Columns in which OpenML's order of the values is none of numbers; and targets."""
    draws = np.random.default_rng(9)
    columns = {name: (kind, draws.integers(5, 200, 60)) for name in ORIGINALS["amazon-access"].columns}
    return columns, draws.integers(0, 2, 60)


@pytest.mark.parametrize("kind", ["nominal", "numeric"])
@pytest.mark.parametrize("number", [4135, 46905])
def test_amazon_is_taken_from_the_cache(home, kind, number, tmp_path):
    columns, y = amazon(kind)
    keep_openml(home, number, columns, ("target", "nominal", y))
    table = data.load("amazon-access", 0, "here")
    X = np.column_stack([values for _, values in columns.values()])
    np.savez(tmp_path / "same.npz", X=X, y=y)
    assert data.load(f"amazon-access:{tmp_path / 'same.npz'}", 0, "here").X == table.X
    np.testing.assert_array_equal(table.y, y)
    assert f"fetch_openml(data_id={number}) of {home / 'openml'}" in table.source


def test_house_sales_are_taken_by_the_names_of_their_columns(home):
    draws = np.random.default_rng(4)
    wanted = {name: ("numeric", draws.integers(0, 9, 30)) for name in ORIGINALS["kc-house"].columns}
    shuffled = {"date_month": ("nominal", draws.integers(1, 13, 30)), **dict(reversed(wanted.items()))}
    prices = draws.integers(75_000, 900_000, 30)
    keep_openml(home, 42731, shuffled, ("price", "numeric", prices))
    table = data.load("kc-house", 0, "here")
    assert data.one_hot([values for _, values in wanted.values()]) == table.X
    np.testing.assert_array_equal(table.y, prices / 1e6)


def test_a_copy_without_a_column_is_named(home):
    columns, y = amazon()
    del columns["ROLE_CODE"]
    keep_openml(home, 4135, columns, ("target", "nominal", y))
    with pytest.raises(UserError, match=r"kept has no column 'ROLE_CODE'; allowed: RESOURCE, MGR_ID"):
        data.load("amazon-access", 0, "here")


@pytest.mark.parametrize("part", ["api/v1/json/data/features/4135", ARFF])
def test_what_is_not_whole_is_not_fetched(part, home):
    columns, y = amazon()
    root = keep_openml(home, 4135, columns, ("target", "nominal", y))
    (root / f"{part}.gz").unlink()
    with pytest.raises(UserError, match="is not on this machine"):
        data.load("amazon-access", 0, "here")


@pytest.mark.parametrize("part", [f"api/v1/json/data/{part}4135" for part in ("", "features/")] + [ARFF])
@pytest.mark.parametrize("how", ["cut", "text", "empty"])
def test_what_is_damaged_is_named_and_kept(part, how, home):
    columns, y = amazon()
    file = keep_openml(home, 4135, columns, ("target", "nominal", y)) / f"{part}.gz"
    file.write_bytes({"cut": file.read_bytes()[:-9], "text": b"no archive", "empty": gzip.compress(b"")}[how])
    with pytest.raises(UserError) as caught:
        data.load("amazon-access", 0, "here")
    assert caught.value.what.startswith(f"{file} is damaged")
    assert caught.value.hint == "delete it and fetch it again"
    assert file.is_file()


def test_a_changed_table_is_not_taken(home):
    columns, y = amazon()
    keep_openml(home, 4135, columns, ("target", "nominal", y), md5_checksum="0" * 32)
    with pytest.raises(UserError, match=r"MD5 is .*, its description says 0000"):
        data.load("amazon-access", 0, "here")
