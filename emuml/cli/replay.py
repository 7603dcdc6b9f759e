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
    digest = result.parameters_sha256
    print(
        f"replayed {result.rounds} rounds, {result.events} events: parameters equal bit for bit (sha256 {digest[:16]})"
    )
