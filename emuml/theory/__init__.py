"""Closed forms that runs are checked against and plans are made with: round times, moments, errors, floors.

Theory imports neither protocols nor clusters; codes and compute laws answer its questions (see ``seams.py``).
"""

from emuml.theory import sample
from emuml.theory.absence import (
    StochasticMoments,
    SumMoments,
    error_at_deadline,
    stochastic_moments,
    sum_moments,
)
from emuml.theory.agc import AgcMoments, agc_moments, independent_absence_error, independent_absence_moments
from emuml.theory.capped import absence_at
from emuml.theory.coverage import (
    arrivals_distribution,
    coverage_probabilities,
    coverage_probability,
    covered_groups_distribution,
)
from emuml.theory.decoding_error import (
    bernoulli_error,
    bernoulli_uncovered,
    covered_chances,
    covered_fraction,
    cycle_error,
    cycle_error_under_absence,
    decode_error_of,
    expected_decode_error,
    ignore_error,
    repetition_error,
    repetition_error_under_absence,
    uniform_weights_error,
)
from emuml.theory.distributions import round_time_cdf, round_time_ppf
from emuml.theory.noise_floor import (
    SecondMomentRecursion,
    descent_factor,
    largest_step,
    noise_floor,
    second_moment_recursion,
)
from emuml.theory.order_statistics import exponential_means, exponential_variances, order_statistic_moments
from emuml.theory.partial import partial_round_times
from emuml.theory.round_time import expected_round_time, exponential_part, round_time_variance, seconds_per_gradient
from emuml.theory.seams import NoClosedForm
from emuml.theory.semantics import RoundEnds, round_ends
from emuml.theory.sequential import SequentialRounds, sequential_rounds
from emuml.theory.stragglers import carry_over_mean, skip_stale_moments
from emuml.theory.updates import expected_pushes_time, expected_update_time

__all__ = [
    "NoClosedForm",
    "sample",
    "expected_round_time",
    "round_time_variance",
    "round_time_cdf",
    "round_time_ppf",
    "seconds_per_gradient",
    "expected_update_time",
    "expected_pushes_time",
    "absence_at",
    "RoundEnds",
    "round_ends",
    "partial_round_times",
    "SequentialRounds",
    "sequential_rounds",
    "skip_stale_moments",
    "carry_over_mean",
    "exponential_part",
    "exponential_means",
    "exponential_variances",
    "order_statistic_moments",
    "coverage_probability",
    "coverage_probabilities",
    "arrivals_distribution",
    "covered_groups_distribution",
    "SumMoments",
    "sum_moments",
    "error_at_deadline",
    "StochasticMoments",
    "stochastic_moments",
    "AgcMoments",
    "agc_moments",
    "independent_absence_error",
    "independent_absence_moments",
    "expected_decode_error",
    "covered_fraction",
    "decode_error_of",
    "covered_chances",
    "bernoulli_error",
    "cycle_error",
    "cycle_error_under_absence",
    "uniform_weights_error",
    "bernoulli_uncovered",
    "repetition_error",
    "repetition_error_under_absence",
    "ignore_error",
    "noise_floor",
    "descent_factor",
    "largest_step",
    "SecondMomentRecursion",
    "second_moment_recursion",
]
