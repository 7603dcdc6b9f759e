"""The benchmark of round times: it runs, and at few rounds its figures are within their target already."""

from __future__ import annotations

import pytest

from benchmarks import round_times


@pytest.mark.slow
@pytest.mark.parametrize("name", round_times.RULES)
def test_emulated_means_are_within_three_standard_errors(name: str) -> None:
    figure = round_times.figure(name, 30, 200)
    assert figure.reached
