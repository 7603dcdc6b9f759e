"""What closed forms say of a run: the law of a round's time, how often groups are decoded, how large the error is.

Round times come from what a protocol promises. Decoding is expected as if every set of workers were equally likely to
answer first: so it is when workers have one law and start each round afresh, and where a run differs, it shows bias.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from emuml import names
from emuml.cluster.delays import DelayTrace
from emuml.errors import UserError
from emuml.experiment.experiment import Experiment
from emuml.protocols.gradient_coding.codes import GroupCode, LinearCode
from emuml.report.statistics import Cdf, Floats
from emuml.theory import NoClosedForm, decode_error_of


class RoundLaw(NamedTuple):
    """The time of a round in closed form, for equal shares and free messages.

    ``mean_s`` and ``cdf`` are None when they are not known; ``reason`` says why.
    """

    mean_s: float | None = None
    cdf: Cdf | None = None
    reason: str = ""


def round_law(experiment: Experiment, time_scale: float = 1.0) -> RoundLaw:
    """Return the law of a round's time; ``time_scale`` is how much slower than emulated time the run's clock is."""
    mean, reason = _asked(experiment, "round_s")
    cdf, cdf_reason = _asked(experiment, "round_s_cdf", t=np.zeros(1))
    of_time = partial(_cdf, experiment, time_scale)
    return RoundLaw(
        None if mean is None else time_scale * float(mean), None if cdf is None else of_time, reason or cdf_reason
    )


def _cdf(experiment: Experiment, time_scale: float, t: Floats) -> Floats:
    return np.asarray(_asked(experiment, "round_s_cdf", t=t / time_scale)[0], np.float64)


def _asked(experiment: Experiment, name: str, **given: Any) -> tuple[Any, str]:
    """Return what theory answers to a promise of the protocol, or None and the reason."""
    cluster = experiment.cluster
    if isinstance(cluster.compute, DelayTrace) and np.ptp(cluster.compute.delays) > 0:
        return None, "recorded workers need be neither alike nor independent"
    for promise in experiment.protocol.oracles():
        if promise.name == name:
            try:
                formula = names.load(promise.function)
                with np.errstate(all="ignore"):
                    return formula(workers=cluster.workers, compute=cluster.compute, **promise.arguments, **given), ""
            except UserError as error:
                return None, f"{error.what} ({error.where})" if error.where else error.what
            except (AttributeError, ValueError):  # a law that theory cannot ask
                return None, "the law of the computing times has no quantiles"
            except ArithmeticError:
                return None, "its numbers are beyond all bounds"
    return None, "the protocol promises none"


def group_code(experiment: Experiment) -> GroupCode | None:
    """Return the code of a run, if its groups are disjoint."""
    code = _built_code(experiment)
    return code if isinstance(code, GroupCode) else None


def linear_code(experiment: Experiment) -> LinearCode | None:
    """Return the code of a run, if its answers are sums of partitions with factors."""
    code = _built_code(experiment)
    return code if isinstance(code, LinearCode) else None


def remarks(experiment: Experiment) -> tuple[str, ...]:
    """Return what the code of a run says of itself, such as what rounding does to it in the worst case."""
    return tuple(getattr(_built_code(experiment), "remarks", ()))


def _built_code(experiment: Experiment) -> Any:
    protocol = experiment.protocol
    if not hasattr(protocol, "code") or not hasattr(protocol, "collect"):
        return None
    return protocol.code.build(experiment.cluster.workers, experiment.roster().seed, protocol.collect)


def are_alike(experiment: Experiment) -> bool:
    """Tell whether all sets of workers are equally likely to be late, as far as their law says, and how many are."""
    return not (getattr(experiment.cluster.compute, "dependence", "") or getattr(experiment.protocol, "deadline", None))


def decode_error(code: GroupCode) -> float | None:
    """Return the expected ``||a^T B - 1||^2`` of a round, in partitions; None when no closed form is known.

    It is the mean square error of the gradient when those of the partitions are orthonormal, so that the squared norms
    of their sum and of all group sums both add up to the number of partitions.
    """
    try:
        return decode_error_of(code)
    except NoClosedForm:
        return None
