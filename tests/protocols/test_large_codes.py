"""Codes of many workers: decoded without matrices, or refused before anything runs."""

import numpy as np
import pytest

from emuml.errors import UserError
from emuml.protocols.gradient_coding import Bernoulli, CyclicMDS, CyclicRepetition, Expander, FractionalRepetition
from emuml.protocols.gradient_coding.codes.graphs import RandomRegular
from emuml.protocols.gradient_coding.decoders.conditioning import Unsound


@pytest.mark.parametrize(
    ("code", "workers", "collect"),
    [
        (CyclicRepetition(2), 4_097, None),
        (CyclicRepetition(2), 100_000, None),
        (CyclicMDS(2), 100_001, 50_000),
        (Bernoulli(3.0, decoder="optimal"), 100_000, 50_000),
        (Bernoulli(3.0, decoder="optimal"), 5_000, None),
        (Expander(RandomRegular(4), "optimal"), 100_000, 50_000),
    ],
)
def test_matrices_that_nobody_can_decompose_are_refused_before_a_run(code, workers, collect):
    with pytest.raises(UserError, match=r"decomposes a matrix of .* allowed: at most 16,777,216 entries"):
        code.build(workers, collect=collect)


def test_codes_whose_decoding_needs_no_matrix_take_many_workers():
    assert CyclicMDS(2).build(100_001).decode(range(100_000)).error < 1e-9
    assert Bernoulli(3.0).build(20_000, collect=10_000).decode(range(10_000)).error > 0.0
    assert Bernoulli(3.0, decoder="optimal", partitions=5).build(20_000).workers == 20_000
    assert FractionalRepetition(2).build(100_000).decode(range(0, 100_000, 2)).error == 0.0


def test_more_missing_than_a_large_code_stands_end_in_words():
    with pytest.raises(Unsound, match=r"99,998 x 100,001 is too large"):
        CyclicMDS(2).build(100_001).decode(np.arange(99_998))
