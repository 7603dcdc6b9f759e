"""Names of run folders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emuml.cli.folders import new_folder


def test_two_runs_in_one_second_get_different_folders(tmp_path: Path) -> None:
    folders = set()
    for _ in range(4):
        folder = new_folder("demo", tmp_path)
        folder.mkdir()
        folders.add(folder)
    assert len(folders) == 4


@pytest.mark.parametrize(
    ("name", "plain"), [("a b/../c", "a-b-..-c"), ("..", "run"), ("x" * 99, "x" * 60), ("ü", "run")]
)
def test_names_cannot_leave_the_folder_of_runs(name: str, plain: str, tmp_path: Path) -> None:
    folder = new_folder(name, tmp_path)
    assert folder.parent == tmp_path
    assert re.fullmatch(r"\d{8}T\d{6}Z-" + re.escape(plain), folder.name)
