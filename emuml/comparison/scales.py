"""Who makes up for answers that are missing and who does not: gradients that are too short are shorter steps.

That is a question to codes of groups, which scale or do not; the weights of other codes make up for what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from emuml.comparison.contestants import Contestant
from emuml.comparison.words import joined
from emuml.errors import UserError
from emuml.experiment.experiment import Experiment
from emuml.theory import covered_fraction


class Scaling(NamedTuple):
    """What becomes of a sum from which answers are missing."""

    contestant: str
    scale: str
    missing: float | None
    """Mean share of the data that is missing, if theory knows it."""


def built_code(experiment: Experiment) -> Any:
    """Return the code of a protocol that has one, for its number of workers, else None."""
    protocol = experiment.protocol
    if not (hasattr(protocol, "code") and hasattr(protocol, "collect")):
        return None
    return protocol.code.build(experiment.cluster.workers, experiment.seed, protocol.collect)


def scale_warnings(contestants: Sequence[Contestant]) -> Iterator[str]:
    """Yield a sentence if contestants treat missing answers differently."""
    groups = [one for one in contestants if hasattr(built_code(one.loaded.experiment), "scale")]
    all_of_them = [(one.name, _scaling(one)) for one in groups]
    partial = [found for _, found in all_of_them if found is not None]
    complete = [name for name, found in all_of_them if found is None]
    scales = {found.scale for found in partial}
    if len(scales) > 1 or ("none" in scales and complete):
        up: dict[str, list[str]] = {}
        for found in partial:
            if found.scale != "none":
                up.setdefault(found.scale, []).append(found.contestant)
        parts = [f"{joined(names)} {_verb(names, 'scale')} the rest up (scale={scale})" for scale, names in up.items()]
        parts += [_left_out(found) for found in partial if found.scale == "none"]
        parts += [f"{joined(complete)} {_verb(complete, 'miss', 'es')} nothing"] if complete else []
        yield f"answers that are missing are treated differently: {', '.join(parts)}; losses differ for that reason too"


def _scaling(contestant: Contestant) -> Scaling | None:
    """Return how a contestant scales; None if nothing is ever missing."""
    experiment = contestant.loaded.experiment
    code, workers = built_code(experiment), experiment.cluster.workers
    protocol = experiment.protocol
    collect, deadline = getattr(code, "collect", None), getattr(protocol, "deadline", None)
    if (collect is None or collect >= workers) and not deadline:
        return None
    missing = None
    # Otherwise who is late in one round is likely to be missing in the next, and not all are equally likely.
    if getattr(protocol, "stragglers", "") in ("cancel", "wait-all") and not deadline:
        try:
            missing = 1.0 - covered_fraction(experiment.protocol.code, workers, experiment.protocol.collect)
        except (UserError, AttributeError):  # a code that theory cannot ask
            missing = None
    if missing is not None and missing < 1e-12:
        return None
    return Scaling(contestant.name, str(getattr(code, "scale", "none")), missing)


def _left_out(found: Scaling) -> str:
    by = "" if found.missing is None else f", so its steps are {100 * found.missing:.2g} % shorter on average"
    return f"{found.contestant} leaves them out (scale=none{by})"


def _verb(names: Sequence[str], stem: str, ending: str = "s") -> str:
    return stem if len(names) > 1 else stem + ending
