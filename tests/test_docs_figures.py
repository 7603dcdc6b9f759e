"""The pictures of the pages on codes come from the code, and every page has its own."""

import re
import runpy
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[1] / "docs"
GROWTH = runpy.run_path(str(HOME / "figures" / "growth.py"))
SCRIPT = runpy.run_path(str(HOME / "figures" / "codes.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graph", "fractional-repetition", "ye-abbe"])
def test_a_picture_comes_from_the_code(name):
    """``python docs/figures/codes.py`` draws all of them."""
    assert SCRIPT["draw"](name) == (HOME / "figures" / f"code-{name}.svg").read_text()


@pytest.mark.slow
def test_the_picture_of_sequential_codes_comes_from_the_code():
    """``python docs/figures/sequential.py`` draws it."""
    path = HOME / "figures" / "sequential.py"
    assert runpy.run_path(str(path))["draw"]() == path.with_suffix(".svg").read_text()


@pytest.mark.parametrize("name", SCRIPT["PICTURES"])
def test_every_picture_has_its_page_and_is_on_it(name):
    assert (HOME / "figures" / f"code-{name}.svg").exists()
    assert f"](../figures/code-{name}.svg)" in (HOME / "codes" / f"{name}.md").read_text()


def test_every_page_stands_in_the_index():
    index = (HOME / "codes" / "README.md").read_text()
    pages = {path.name for path in (HOME / "codes").glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_the_picture_of_growth_is_of_the_numbers_that_are_kept():
    """``python docs/figures/growth.py --draw`` draws it."""
    assert GROWTH["draw"]() == GROWTH["FIGURE_PATH"].read_text()


def test_the_page_of_tiers_shows_growth_and_its_numbers():
    page = (HOME / "tiers.md").read_text()

    assert "](figures/growth.svg)" in page
    assert GROWTH["table"]() in page
    assert all(len(values) == len(GROWTH["numbers"]()["workers"]) for values in GROWTH["numbers"]()["us"].values())
