"""Whether tests that explore are to take their time: ``make soak`` says so."""

from hypothesis import settings

SOAK = settings.default.max_examples > 1000
RUNS = 10_000
"""Of each configuration then."""
