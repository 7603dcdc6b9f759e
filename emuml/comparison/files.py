"""What a comparison leaves in its folder: one tidy table, one JSON object, one page."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from emuml.comparison import tables
from emuml.comparison.analysis import Comparison, Pair
from emuml.comparison.measures import Run
from emuml.comparison.ranking import Ranking, ranking
from emuml.comparison.statistics import LEVEL, Interval
from emuml.comparison.verdict import verdict
from emuml.comparison.words import Words
from emuml.errors import RunFailed
from emuml.provenance import versions
from emuml.report.html import write_report
from emuml.report.markup import table, tag

FORMAT = 1


def write(comparison: Comparison, folder: Path) -> dict[str, Any]:
    """Write ``comparison.csv``, ``comparison.json`` and ``report.html``; return the content of the second.

    Raises
    ------
    RunFailed
        If the folder cannot be written.
    """
    content = as_json(comparison, folder)
    try:
        write_csv(comparison, folder / "comparison.csv")
        (folder / "comparison.json").write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
        page(comparison, folder / "report.html")
    except OSError as error:
        raise RunFailed(f"cannot write {folder}: {error.strerror}; the runs in it are kept") from error
    return content


def write_csv(comparison: Comparison, path: Path) -> None:
    """Write a row for each contestant and seed; what a run does not have is empty."""
    names = comparison.measures
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["contestant", "seed", "engine", "rounds", "target", *names, "closed_form_round_s", "run_dir"])
        for one in comparison.plan.contestants:
            expected_s = comparison.expected_round_s[one.name]
            for seed in comparison.seeds:
                run = comparison.runs[one.name][seed]
                numbers = [run.values.get(name) for name in names]
                cells = [comparison.targets[seed], *numbers, expected_s]
                texts = ["" if cell is None or not math.isfinite(cell) else repr(cell) for cell in cells]
                out.writerow([one.name, seed, one.loaded.engine, run.rounds, *texts, run.folder or ""])


def as_json(comparison: Comparison, folder: Path) -> dict[str, Any]:
    """Return all there is as plain data; ``None`` stands for what has no number."""
    plan = comparison.plan
    return {
        "format": FORMAT,
        "baseline": plan.baseline.name,
        "seeds": list(comparison.seeds),
        "seeds_asked_for": list(plan.seeds),
        "metric": plan.metric,
        "target_given": plan.target,
        "targets": {str(seed): value for seed, value in comparison.targets.items()},
        "level": LEVEL,
        "differences": {row.setting: list(row.values) for row in plan.differences},
        "common": list(plan.shared.common),
        "warnings": list(plan.shared.warnings),
        "contestants": [
            {
                "name": one.name,
                "source": str(one.source),
                "engine": one.loaded.engine,
                "load": tables.load_of(one),
                "closed_form_round_s": comparison.expected_round_s[one.name],
                "means": {name: comparison.mean(one.name, name) for name in comparison.measures},
                "runs": [_run(comparison.runs[one.name][seed]) for seed in comparison.seeds],
            }
            for one in plan.contestants
        ],
        "comparable": list(plan.comparable),
        "ranking": _ranking(ranking(comparison)),
        "pairs": list(map(_pair, comparison.pairs)),
        "verdict": verdict(comparison),
        "provenance": {"versions": versions(), "command": " ".join(sys.argv)},
        "folder": str(folder),
        "report": str(folder / "report.html"),
    }


def page(comparison: Comparison, path: Path) -> Path:
    """Write the page: tables of the comparison, then the first run of each contestant side by side."""
    plan = comparison.plan
    all_tables = [
        tables.order(comparison),
        tables.differences(plan),
        tables.measured(comparison),
        tables.against_baseline(comparison),
    ]
    sections = [_section(words) for words in all_tables]
    shown = f"Figures below: the runs of seed {comparison.seeds[0]}."
    sections[-1].append(tag("p", shown, class_="note"))
    views = [comparison.views[one.name] for one in plan.contestants]
    names = " · ".join(one.name for one in plan.contestants)
    return write_report(views, path, names, verdict(comparison), sections)


def _section(words: Words) -> Element:
    notes = [tag("p", line, class_="note") for line in words.note.splitlines()]
    return tag("section", tag("h2", words.title), table(words.head, words.rows, words.caption), *notes)


def _run(run: Run) -> dict[str, Any]:
    values = {name: value if math.isfinite(value) else None for name, value in run.values.items()}
    folder = None if run.folder is None else str(run.folder)
    return {"seed": run.seed, "rounds": run.rounds, "stopped": run.stopped, "run_dir": folder, **values}


def _ranking(found: Ranking) -> dict[str, Any]:
    places = [
        {"name": one.name, "behind": None if one.behind is None else _pair(one.behind), "told_apart": one.is_apart}
        for one in found.places
    ]
    return {"measure": found.measure, "has_leader": found.has_leader, "comparisons": found.tested, "places": places}


def _pair(pair: Pair) -> dict[str, Any]:
    found: dict[str, Any] = {"contestant": pair.contestant, "measure": pair.measure, "missing": pair.missing or None}
    if pair.paired is not None:
        compared = pair.paired
        saving = compared.saving
        found |= {
            "pairs": compared.pairs,
            "over": compared.over,
            "dependence": pair.dependence or None,
            "difference": _interval(compared.difference),
            "ratio": None if compared.ratio is None else _interval(compared.ratio),
            "p_value": compared.p_value,
            "constant": compared.constant,
            "pairing_saves": None if saving is None or math.isinf(saving) else saving,
        }
    return found


def _interval(interval: Interval) -> dict[str, float | None]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}
