"""Facts of the runs, and what they were made from."""

from __future__ import annotations

import shlex
from xml.etree.ElementTree import Element

from emuml.report.facts import facts
from emuml.report.figure import Shown, cell, words
from emuml.report.markup import table, tag
from emuml.report.view import View


def what(shown: Shown) -> Element:
    """Show the facts of all runs side by side."""
    found = [dict(facts(view)) for view in shown.views]
    names = list(dict.fromkeys(name for one in found for name in one))
    rows = [[name, *(one.get(name, "-") for one in found)] for name in names]
    head = ["", *(view.label for view in shown.views)]
    return tag("section", tag("h2", "Facts"), table(head, rows, "What was run, and what came out"))


def origins(shown: Shown) -> Element:
    """Show what decides the numbers, and all that was logged."""
    parts = [part for view in shown.views for part in _origin(view, shown)]
    return tag("section", tag("h2", "Provenance"), *parts)


def _origin(view: View, shown: Shown) -> list[Element]:
    known = view.provenance
    versions = " · ".join(f"{name} {version}" for name, version in known.get("versions", {}).items())
    rows = [["seed", str(view.experiment.seed)], ["data", str(known.get("data") or "-")], ["versions", versions or "-"]]
    rows += [[f"input {i}", f"sha256 {digest}"] for i, digest in enumerate(known.get("inputs_sha256", ()), 1)]
    rows.append(["made by", str(known.get("command", "-"))])
    parts = [] if shown.is_single else [tag("h3", view.label)]
    parts.append(table(["", ""], rows, "What decides the numbers"))
    if view.run_dir is not None:
        command = f"emuml run {shlex.quote(str(view.run_dir / 'config.yaml'))}"
        parts += [tag("p", "Run it again:"), _scrolling(command, "Command that runs it again")]
    parts.append(tag("details", tag("summary", "Complete configuration"), _scrolling(view.config(), "Configuration")))
    return [*parts, _points(view, shown.rows_max)]


def _scrolling(text: str, name: str) -> Element:
    return tag("pre", text, tabindex="0", role="region", aria_label=name)


def _points(view: View, rows_max: int) -> Element:
    rows = view.metrics.rows
    kept = rows if len(rows) <= rows_max else rows[:: -(-len(rows) // rows_max)]
    names = sorted(view.metrics, key=lambda name: name != "round")
    cells = [[cell(row.get(name)) for name in names] for row in kept]
    caption = f"{len(kept)} of {len(rows)} logged points"
    return tag("details", tag("summary", "All that was logged"), table(list(map(words, names)), cells, caption))
