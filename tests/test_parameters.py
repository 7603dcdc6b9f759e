"""Parameters in blocks: values, versions, distances, snapshots, restoring; against plain slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import ContractError
from emuml.parameters import ParameterBlocks

VALUES = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


def blocks():
    return ParameterBlocks(VALUES, (0, 2, 2, 5))


def test_blocks_are_slices():
    parameters = blocks()

    assert len(parameters) == 3
    assert [parameters.block(b).tolist() for b in range(3)] == [[1.0, 2.0], [], [3.0, 4.0, 5.0]]
    assert ParameterBlocks(VALUES).block(0).tolist() == VALUES.tolist()


@pytest.mark.parametrize("bounds", [(0, 4), (1, 5), (0, 3, 2, 5), ()])
def test_bounds_that_do_not_cut_the_vector_are_refused(bounds):
    with pytest.raises((ContractError, IndexError)):
        ParameterBlocks(VALUES, bounds)


def test_a_step_replaces_values_and_counts_versions():
    parameters = blocks()
    published = parameters.values
    parameters.on_step(VALUES + 1, "momentum")
    parameters.on_step(VALUES + 2)

    assert published is VALUES
    assert parameters.values.tolist() == (VALUES + 2).tolist()
    assert (parameters.version, parameters.state) == (2, None)
    assert parameters.versions().tolist() == [2, 2, 2]


def test_a_step_may_not_change_the_shape():
    with pytest.raises(ContractError, match="changed the shape"):
        blocks().on_step(np.zeros(4))


def test_versions_handed_out_are_copies():
    parameters = blocks()
    parameters.versions()[:] = 7

    assert parameters.versions().tolist() == [0, 0, 0]


@given(st.lists(st.sampled_from(["step", "save 0", "save 2", "save 0 2"]), max_size=8))
def test_distances_are_to_the_value_saved_last(program):
    parameters, saved = blocks(), {b: blocks().block(b) for b in range(3)}
    for number, action in enumerate(program):
        if action == "step":
            parameters.on_step(parameters.values * (1.5 + number))
        else:
            chosen = [int(word) for word in action.split()[1:]]
            taken = parameters.snapshot(chosen)
            assert list(taken) == chosen
            saved |= {b: np.array(parameters.block(b)) for b in chosen}
        expected = [np.sqrt(np.sum((parameters.block(b) - saved[b]) ** 2)) for b in range(3)]
        assert parameters.distances() == pytest.approx(expected, abs=1e-12)


def test_snapshots_are_copies():
    values = VALUES.copy()
    parameters = ParameterBlocks(values, (0, 2, 5))
    taken = parameters.snapshot([0])
    values[0] = 100.0

    assert taken[0].tolist() == [1.0, 2.0]


def test_restoring_some_blocks_leaves_the_others():
    parameters = blocks()
    taken = parameters.snapshot([0])
    parameters.on_step(VALUES * 10)
    stepped = parameters.values
    parameters.restore(taken, {0: 4})

    assert parameters.values.tolist() == [1.0, 2.0, 30.0, 40.0, 50.0]
    assert stepped.tolist() == (VALUES * 10).tolist()
    assert parameters.versions().tolist() == [4, 1, 1]
    assert parameters.distances()[0] == 0.0
    parameters.restore(taken)
    assert parameters.versions().tolist() == [0, 1, 1]
