"""Tables: what is taken from where, and what is refused."""

import io
import sys

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.workloads import data

X = np.arange(12.0).reshape(6, 2)
y = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])


def test_arrays_are_taken_as_they_are():
    table = data.load((X, y), 0, "here")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    assert table.source == "arrays given by the caller"


def test_a_path_is_taken_before_the_data_folder(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    np.savez(tmp_path / "folder" / "mine.npz", X=X + 1, y=y)
    np.savez(tmp_path / "folder" / "other.npz", X=X + 2, y=y)
    monkeypatch.setenv("EMUML_DATA", str(tmp_path / "folder"))
    monkeypatch.chdir(tmp_path)
    assert data.load("mine.npz", 0, "here").X[0, 0] == 0
    found = data.load("other.npz", 0, "here")
    assert found.X[0, 0] == 2
    assert found.source == f"file {tmp_path / 'folder' / 'other.npz'}"


def test_a_file_in_the_data_folder_does_for_a_named_set(tmp_path, monkeypatch):
    np.savez(tmp_path / "diabetes.npz", X=X, y=y)
    monkeypatch.setenv("EMUML_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert data.load("diabetes", 0, "here").source == f"file {tmp_path / 'diabetes.npz'}"


@pytest.mark.slow
def test_a_file_in_the_working_directory_does_not_hide_a_named_set(tmp_path, monkeypatch):
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install emuml[data]")
    np.savez(tmp_path / "diabetes.npz", X=X, y=y)
    monkeypatch.delenv("EMUML_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert data.load("diabetes", 0, "here").X.shape == (442, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape", "labels"),
    [("breast-cancer", (569, 30), {0.0, 1.0}), ("digits", (1797, 64), {0.0, 1.0}), ("diabetes", (442, 10), None)],
)
def test_named_sets(name, shape, labels, monkeypatch):
    sklearn = pytest.importorskip("sklearn", reason="needs scikit-learn: pip install emuml[data]")
    monkeypatch.delenv("EMUML_DATA", raising=False)
    table = data.load(name, 0, "here")
    assert table.X.shape == shape
    assert table.y.shape == shape[:1]
    assert len(table.names) == shape[1]
    assert labels is None or set(table.y) == labels
    assert table.source.startswith(f"scikit-learn {sklearn.__version__}, load_")


@pytest.mark.slow
def test_digits_are_odd_or_even(monkeypatch):
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn: pip install emuml[data]")
    monkeypatch.delenv("EMUML_DATA", raising=False)
    np.testing.assert_array_equal(data.load("digits", 0, "here").y, datasets.load_digits().target % 2 == 1)


def test_a_missing_scikit_learn_names_the_extra_and_the_file(monkeypatch):
    monkeypatch.delenv("EMUML_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "sklearn.datasets", raising=False)
    with pytest.raises(UserError) as caught:
        data.load("digits", 0, "workload.data")
    text = str(caught.value)
    assert text.startswith("workload.data: 'digits' comes with scikit-learn, which is not installed")
    assert "digits.npz in the folder EMUML_DATA names" in text
    assert text.endswith("pip install emuml[data]")


def test_two_gaussians_are_what_they_say():
    rows, columns = 20_000, 4
    table = data.load(f"two-gaussians:{rows}x{columns}", 5, "here")
    assert table.X.shape == (rows, columns)
    assert table.source == "synthetic two-gaussians, 20000 rows x 4 columns, seed 5"
    # Variance of a column: noise 100/4 and the means' (1.5/4)^2; the band is 5 standard deviations, 5 * sqrt(2/rows).
    expected = 25 + 0.375**2
    assert np.abs(table.X.var(axis=0) / expected - 1).max() < 0.05
    # A label agrees with the side z of its row with probability 1/(1 + exp(-|z|)), z being the row along b.
    direction = np.sign(table.X.T @ (table.y - table.y.mean()))
    z = table.X @ direction
    likely = np.mean(1 / (1 + np.exp(-np.abs(z))))
    assert abs(np.mean((z > 0) == (table.y == 1)) - likely) < 5 * np.sqrt(0.25 / rows)
    assert abs(table.y.mean() - 0.5) < 5 * np.sqrt(0.25 / rows)


def test_two_gaussians_lie_around_two_means():
    # One column: variance 1.5^2 + 10^2; of 400,000 rows, 5 standard deviations are 1.1 %, and 1.5^2 is 2.2 %.
    assert data.load("two-gaussians:400000x1", 5, "here").X.var() == pytest.approx(102.25, rel=0.011)


def test_two_gaussians_follow_the_seed():
    one, again, other = (data.load("two-gaussians:50x3", seed, "here") for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.X, again.X)
    np.testing.assert_array_equal(one.y, again.y)
    assert (one.X != other.X).all()
    assert data.load("two-gaussians", 1, "here").X.shape == (3000, 100)


@pytest.mark.parametrize("name", ["two-gaussians:", "two-gaussians:30", "two-gaussians:0x3", "two-gaussians:axb"])
def test_a_wrong_size_is_refused(name):
    if name == "two-gaussians:":
        assert data.load(name, 1, "here").X.shape == (3000, 100)
        return
    with pytest.raises(UserError, match="ROWSxCOLUMNS"):
        data.load(name, 1, "here")


@pytest.mark.parametrize(
    ("given", "what", "where"),
    [
        ((X, y[:5]), "has shape (5,)", "here.y"),
        ((X[:, 0], y), "has shape (6,)", "here.X"),
        ((X[:0], y[:0]), "has shape (0, 2)", "here.X"),
        ((X[:, :0], y), "has shape (6, 0)", "here.X"),
        ((np.where(X == 5, np.nan, X), y), "X[2, 1] is nan", "here.X"),
        ((X, np.where(y == 1, np.inf, y)), "y[1] is inf", "here.y"),
        ((X.astype(str), y), "has dtype <U32", "here.X"),
        ((X, y + 1j), "has dtype complex128", "here.y"),
        (([[1.0], [1.0, 2.0]], y), "inhomogeneous", "here.X"),
        ("breast-cancr", "'breast-cancr' is unknown", "here"),
        ("nowhere.npz", "there is no file 'nowhere.npz'", "here"),
    ],
)
def test_bad_data_are_named(given, what, where, monkeypatch):
    monkeypatch.delenv("EMUML_DATA", raising=False)
    with pytest.raises(UserError) as caught:
        data.load(given, 0, "here")
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.allowed


def test_a_near_name_is_offered():
    with pytest.raises(UserError, match="did you mean 'breast-cancer'"):
        data.load("breast-cancr", 0, "here")


def _npy_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_bad_files_are_named(tmp_path):
    np.savez(tmp_path / "no_y.npz", X=X)
    (tmp_path / "text.npz").write_text("not a zip file")
    (tmp_path / "array.npz").write_bytes(_npy_bytes(X))
    (tmp_path / "short.npz").write_bytes((tmp_path / "no_y.npz").read_bytes()[:40])
    np.savez(tmp_path / "objects.npz", X=np.array([{}], object), y=y)
    np.savez(tmp_path / "nan.npz", X=X * np.nan, y=y)
    for name, what in [
        ("no_y", "has no array y"),
        ("text", "cannot be read"),
        ("short", "cannot be read"),
        ("array", "holds a single array"),
        ("objects", "cannot be read"),
        ("nan", "X[0, 0] is nan"),
    ]:
        with pytest.raises(UserError) as caught:
            data.load(str(tmp_path / f"{name}.npz"), 0, "here")
        assert what in caught.value.what, name
        assert f"{name}.npz" in str(caught.value)
        assert caught.value.allowed


def test_a_wrong_data_folder_is_an_error(monkeypatch):
    monkeypatch.setenv("EMUML_DATA", "/nowhere/at/all")
    with pytest.raises(UserError, match="EMUML_DATA names '/nowhere/at/all', which is no folder"):
        data.load("breast-cancer", 0, "here")
