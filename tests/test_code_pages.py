"""The pages of codes: their Python prints what they say, and their YAML is an experiment that can be planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from emuml.experiment.config import loads
from emuml.experiment.plan import plan
from tests.test_docs import PROJECT, blocks_of, run_script

PAGES = sorted((PROJECT / "docs" / "codes").glob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_page_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    blocks, script, expected = blocks_of(page), [], []
    for (language, text), (_, following) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            script.append(text)
            expected.append(following)
    path = tmp_path / "page.py"
    path.write_text("\n".join(script))
    assert run_script(path) == "".join(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_yaml_of_a_page_is_an_experiment(page: Path) -> None:
    for language, text in blocks_of(page):
        if language == "yaml":
            assert plan(loads(text).experiment).rounds
