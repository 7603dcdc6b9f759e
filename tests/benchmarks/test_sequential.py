"""The comparison of sequential codes: its loads, its choice on the first half, and what it makes of operations."""

import numpy as np
import pytest

from benchmarks import sequential


def test_timed_codes_have_the_loads_of_the_paper():
    loads = [code.load / 256 for code in sequential.configurations().values()]
    assert loads == pytest.approx([1 / 256, 0.0625, 0.05078125, 0.0075431], abs=5e-8)


def test_codes_are_chosen_on_the_first_half_and_judged_on_the_second():
    random = np.random.default_rng(3)
    table = 1.0 + 0.01 * random.exponential(size=(40, 4))
    table[:20, 0] = 5.0  # one worker is slow, but later nobody is
    found = sequential.compared(table, 0.5)

    assert found["uncoded"][1:] == (1.0, 1.0)
    name, second, first = found["GC"]
    assert name.startswith("GC(1)")
    assert first < 0.4
    assert second > 1.4  # it carries twice the load for nothing


def test_computing_is_added_up_by_replica_and_stage():
    operations = {
        "optypes": np.array([b"forward-compute", b"forward-send", b"backward-compute"]),
        "optype": np.array([0, 2, 1, 0, 0]),
        "step": np.array([7, 7, 7, 8, 7]),
        "dp_rank": np.array([0, 0, 0, 1, 1]),
        "stage": np.array([0, 0, 0, 2, 2]),
        "duration": np.array([1.0, 2.0, 100.0, 4.0, 8.0]),
    }
    assert sequential.computing(operations).tolist() == [[3.0, 0.0, 0.0, 8.0], [0.0, 0.0, 0.0, 4.0]]
