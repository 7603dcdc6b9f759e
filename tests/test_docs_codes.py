"""The pages of single codes do what they say: files are experiments, and code prints what stands below it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from emuml.experiment.config import loads
from emuml.protocols import AdaptiveCoding, SequentialGradientCoding
from tests.test_docs import blocks_of, run_script

HOME = Path(__file__).resolve().parents[1] / "docs" / "codes"
PAGES = sorted(set(HOME.glob("*.md")) - {HOME / "README.md"})


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    blocks = blocks_of(page)
    followed = list(zip(blocks, [*blocks[1:], ("", "")], strict=True))
    script = [text for (language, text), _ in followed if language == "python"]
    expected = [following for (language, _), (_, following) in followed if language == "python"]
    assert script
    path = tmp_path / "page.py"
    path.write_text("\n".join(script))
    assert run_script(path) == "".join(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_of_a_page_are_experiments_whose_code_can_be_built(page: Path) -> None:
    files = [text for language, text in blocks_of(page) if language == "yaml"]
    assert files
    for text in files:
        experiment = loads(text).experiment
        protocol, workers = experiment.protocol, experiment.cluster.workers
        if isinstance(protocol, AdaptiveCoding):
            assert len(protocol.menu(workers, experiment.seed)) > 1
        elif isinstance(protocol, SequentialGradientCoding):
            assert protocol.sequence(workers, experiment.seed).workers > 0
        else:
            assert protocol.code.build(workers, experiment.seed, protocol.collect).workers > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", [HOME / "README.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.slow
def test_the_figure_of_adaptive_coding_comes_from_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PAGES[0].parents[1] / "figures" / "adaptive.py"
    monkeypatch.syspath_prepend(str(path.parent))
    assert runpy.run_path(str(path))["draw"]() == path.with_suffix(".svg").read_text()
