"""Where runs go when nobody says so."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path


def new_folder(name: str, parent: Path = Path("runs")) -> Path:
    """Return ``runs/<UTC date and time>-<name>``, not there yet; two runs in one second get different ones."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "run"
    base = parent / f"{stamp}-{plain}"
    return next(
        path for path in (base, *(base.with_name(f"{base.name}-{i}") for i in range(2, 1000))) if not path.exists()
    )
