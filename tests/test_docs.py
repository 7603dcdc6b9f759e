"""The README and the examples do what they say: they are run, and what they print is compared."""

from __future__ import annotations

import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from emuml.cli import demo
from emuml.cli.main import status
from emuml.experiment.config import load, loads

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md")), *sorted(PROJECT.glob("papers/*/README.md"))]
README = PAGES[0].read_text()


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each block of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


BLOCKS = blocks_of(PAGES[0])


def run_script(path: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "COLUMNS": "80"}
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((PROJECT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_print_what_is_committed(path: Path) -> None:
    assert run_script(path) == path.with_suffix(".out").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("README.md", 3),
        ("docs/stragglers.md", 4),
        ("docs/script.md", 2),
        ("docs/simpy.md", 2),
        ("docs/delays.md", 4),
        ("docs/networks.md", 3),
        ("docs/testing.md", 1),
        ("docs/faults.md", 2),
        ("docs/tiers.md", 1),
        ("papers/erasurehead/README.md", 1),
    ],
)
def test_code_of_a_page_prints_what_the_page_says(page: str, count: int, tmp_path: Path) -> None:
    blocks, script, expected = blocks_of(PROJECT / page), [], []
    for (language, text), (_, following) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            script.append(text)
            expected.append(following)
    assert len(script) == count
    path = tmp_path / "page.py"
    path.write_text("\n".join(script))
    assert run_script(path) == "".join(expected)


def test_the_table_of_stragglers_is_what_its_example_prints() -> None:
    printed = (PROJECT / "examples" / "erasurehead_trace.out").read_text()
    assert printed in [text for _, text in blocks_of(PROJECT / "docs" / "stragglers.md")]


def test_the_table_of_own_delays_is_what_its_example_prints() -> None:
    printed = (PROJECT / "examples" / "own_delays.out").read_text()
    assert printed in [text for _, text in blocks_of(PROJECT / "docs" / "delays.md")]


@pytest.mark.slow
def test_readme_table_is_what_the_demo_prints(tmp_path: Path) -> None:
    target, rows = demo.compare(demo.emulate(tmp_path))
    console = Console(file=io.StringIO(), width=80)
    console.print(demo.table(rows, target))
    printed = [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]
    (shown,) = [text for language, text in BLOCKS if language == "text" and "speed-up" in text]
    assert shown.splitlines() == printed


@pytest.mark.slow
def test_figure_of_the_readme_comes_from_the_code() -> None:
    path = PROJECT / "docs" / "figures" / "stragglers.py"
    assert runpy.run_path(str(path))["draw"]() == path.with_suffix(".svg").read_text()
    assert "docs/figures/stragglers.svg" in README


def test_the_page_of_settings_comes_from_the_declarations() -> None:
    """Run docs/settings.py after a declaration has changed."""
    path = PROJECT / "docs" / "settings.py"
    assert runpy.run_path(str(path))["page"]() == path.with_suffix(".md").read_text()


def test_readme_yaml_is_an_experiment() -> None:
    (text,) = [text for language, text in BLOCKS if language == "yaml"]
    loaded = loads(text)
    assert loaded.engine == "tcp"
    assert len(loaded.experiment.faults.faults) == 2


def test_readme_commands_name_files_and_settings_that_are_there() -> None:
    commands = [line for language, text in BLOCKS if language == "console" for line in text.splitlines()]
    runs = [line.split()[3:] for line in commands if line.startswith("$ emuml run examples/")]
    assert len(runs) == 4
    for file, *arguments in runs:
        load(PROJECT / file, [argument for argument in arguments if re.match(r"[a-z.]+=", argument)])


def test_readme_errors_are_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = [text for language, text in BLOCKS if "emuml run exp.yaml" in text]
    monkeypatch.chdir(tmp_path)
    cluster = "cluster:\n  wrokers: 4\n  compute: instent\n"
    Path("exp.yaml").write_text(f"workload: logistic-regression\n{cluster}rounds: 0\nprotocol: gradient-coding\n")
    assert status(["run", "exp.yaml"]) == 2
    assert capsys.readouterr().err == block.partition("\n")[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_setting_has_its_meaning() -> None:
    page = (PROJECT / "docs" / "settings.md").read_text()
    assert [line for line in page.splitlines() if line.endswith("|  |")] == []
