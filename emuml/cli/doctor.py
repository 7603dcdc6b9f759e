"""``emuml doctor``: tells whether this installation is whole, and whether this machine can run it."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from emuml.cli.status import VIOLATED
from emuml.errors import printable

if TYPE_CHECKING:
    from emuml.doctor.finding import Finding

WIDTH = 80
_INDENT = 27


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the list.")] = False,
) -> None:
    """Examine the installation and the machine: exit status 1 if something does not work."""
    import emuml
    from emuml.doctor.checks import CHECKS
    from emuml.doctor.finding import examined, worst

    found = {group: {name: examined(check) for name, check in checks.items()} for group, checks in CHECKS.items()}
    every = [finding for findings in found.values() for finding in findings.values()]
    state = worst(every).state
    if as_json:
        listed = [
            {"group": group, "name": name, **asdict(finding)}
            for group, findings in found.items()
            for name, finding in findings.items()
        ]
        print(json.dumps({"emuml": emuml.__version__, "state": state, "checks": listed}))
    else:
        print(listing(found))
        print(verdict(every))
    if state == "failed":
        raise typer.Exit(VIOLATED)


def listing(found: dict[str, dict[str, Finding]]) -> str:
    """Return a line for each check, and below those that are not well why it matters and what to do."""
    lines: list[str] = []
    for group, findings in found.items():
        lines.append(f"{group}:")
        for name, finding in findings.items():
            lines += _wrapped(f"  {finding.state:<8} {name:<16}", finding.found)
            if finding.state != "ok":
                lines += _wrapped("", f"why: {finding.why}")
                lines += _wrapped("", f"fix: {finding.fix}")
    return "\n".join(map(printable, lines))


def verdict(every: list[Finding]) -> str:
    """Return how many checks are how.

    Examples
    --------
    >>> from emuml.doctor.finding import Finding
    >>> verdict([Finding("ok", "", ""), Finding("warning", "", "")])
    '2 checks: 1 ok, 1 warning, 0 failed'
    """
    counts = {state: sum(finding.state == state for finding in every) for state in ("ok", "warning", "failed")}
    return f"{len(every)} checks: " + ", ".join(f"{count} {state}" for state, count in counts.items())


def _wrapped(label: str, text: str) -> list[str]:
    """Return text in lines of at most 80 columns; paths and commands are not broken inside a word."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{label:<{_INDENT}}",
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [label.rstrip()]
