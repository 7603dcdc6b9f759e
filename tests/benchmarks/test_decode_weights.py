"""The contestants of decoding weights: they decode the same sets, and agree."""

import numpy as np
import pytest

from benchmarks import decode_weights


@pytest.mark.parametrize(
    ("make", "spread"),
    [(decode_weights.null_space, False), (decode_weights.fourier, False), (decode_weights.fourier, True)],
)
def test_ours_and_least_squares_agree(make, spread):
    decoder = make(30, 4)
    work = decode_weights.contestants(decoder, spread)
    for _ in range(5):
        found, expected = work["ours"](), work["numpy lstsq"]()
        assert found.error < 1e-12
        assert found.values == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())


def test_spread_stragglers_are_far_apart_in_the_code():
    decoder = decode_weights.fourier(100, 9)
    for received in decode_weights.sets_of(decoder, spread=True):
        assert decoder.weights(received).noise_gain < 1
