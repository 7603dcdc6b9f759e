"""``emuml replay``: a run fed to the emulator again, which must give the same parameters bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, such as runs/latest.")],
) -> None:
    """Replay a run in the emulator and compare: exit status 1 at the first difference."""
    import emuml

    result = emuml.replay(folder)
    done = f"replayed {result.rounds} rounds, {result.events} events"
    equal = f"{' and '.join(result.compared)} equal bit for bit"
    if "parameters" in result.compared:
        print(f"{done}: {equal} (sha256 {result.parameters_sha256[:16]})")
    else:
        print(f"{done}: {equal}, as far as the run went; it did not finish, so there are no parameters to compare")
