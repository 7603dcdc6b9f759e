"""The helper that finds optional data."""

import pytest

from tests import datafiles


def test_the_folder_that_is_named_is_taken(tmp_path, monkeypatch):
    (tmp_path / "some.npz").touch()
    monkeypatch.setattr(datafiles, "NAMED", str(tmp_path))
    assert datafiles.data_file("some.npz") == tmp_path / "some.npz"


def test_a_missing_file_skips_and_names_file_and_variable(tmp_path, monkeypatch):
    monkeypatch.setattr(datafiles, "NAMED", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"needs ml/other\.npz: set EMUML_DATA .*docs/data\.md"):
        datafiles.data_file("ml/other.npz")


def test_a_wrong_folder_fails(monkeypatch):
    monkeypatch.setattr(datafiles, "NAMED", "/nowhere/at/all")
    with pytest.raises(pytest.fail.Exception, match="'/nowhere/at/all', which is no folder"):
        datafiles.data_file("some.npz")
