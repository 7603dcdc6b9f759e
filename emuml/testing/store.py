"""Failing scenarios on disk: kept under ``.emuml/failures``, and tried first the next time."""

from __future__ import annotations

from pathlib import Path

from emuml.errors import UserError
from emuml.testing.scenario import Scenario, load_stored
from emuml.testing.trial import short_id

FAILURES = Path(".emuml") / "failures"


class Store:
    """The failures of one test.

    Parameters
    ----------
    folder : Path
    name : str
        Of the test.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def scenarios(self, place: str = "") -> list[Scenario]:
        """Return what is kept, in the order of names; what cannot be read any more is left out.

        So is what another test of this name keeps, whose file is there.
        """
        found = []
        for path in sorted(self._folder.glob(f"{self._name}-????.json")):
            try:
                scenario, owner = load_stored(path)
            except UserError:
                continue
            if owner in ("", place) or not Path(owner.partition("::")[0]).is_file():
                found.append(scenario)
        return found

    def keep(self, scenario: Scenario, place: str = "") -> Path:
        """Write a scenario, with the place of its test, and return its path."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._name}-{short_id(scenario)}.json"
        scenario.to_file(path, place)
        return path

    def forget(self, scenario: Scenario) -> None:
        """Remove a scenario that does not fail any more."""
        (self._folder / f"{self._name}-{short_id(scenario)}.json").unlink(missing_ok=True)
