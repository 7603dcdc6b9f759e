"""Tasks and their results: evaluated when read and once; sums in the order given, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import ContractError, TaskCancelled
from emuml.lazy import Deferred, array_of, combine
from emuml.task import Task


class Counter:
    """A task's function that counts its calls."""

    def __init__(self, value=(1.0, 2.0)):
        self.calls, self.value = 0, value

    def __call__(self, *inputs):
        self.calls += 1
        return np.array(self.value)


def task(function, inputs=(), shape=(2,), cost=1.0, **options):
    return Task(function, inputs, cost, shape, **options)


def test_a_result_is_evaluated_when_it_is_read_and_once():
    counter = Counter()
    result = Deferred(task(counter), "g", "worker-1")
    assert (result.shape, result.dtype, result.evaluated, counter.calls) == ((2,), np.float64, False, 0)
    assert repr(result) == "<result float64 (2,), not evaluated>"

    assert array_of(result) is array_of(result) is result.value()
    assert counter.calls == 1
    assert repr(result) == "<result float64 (2,)>"
    assert not result.value().flags.writeable


def test_arrays_are_results_already():
    array = np.zeros(2)

    assert array_of(array) is array


def test_a_late_error_says_whose_task_it_was():
    def fails():
        raise ZeroDivisionError("no rows")

    result = Deferred(task(fails), "g", "worker-1")
    with pytest.raises(ZeroDivisionError, match="no rows") as caught:
        result.value()

    assert caught.value.__notes__ == ["while evaluating the result of task 'g' of worker-1"]
    assert not result.evaluated


@pytest.mark.parametrize("cost", [0.0, -1.0, float("nan"), float("inf")])
def test_costs_are_finite_and_positive(cost):
    with pytest.raises(ContractError, match="cost must be finite and > 0"):
        task(Counter(), cost=cost)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.zeros(3), r"float64 \(3,\)"),
        (np.zeros((2, 1)), r"float64 \(2, 1\)"),
        (np.zeros(2, np.float32), r"float32 \(2,\)"),
        ([0.0, 0.0], "list"),
        (None, "NoneType"),
    ],
)
def test_a_task_that_returns_something_else_is_refused(value, got):
    with pytest.raises(ContractError, match=f"declared <f8 .* and returned {got}"):
        task(lambda: value).run()


@pytest.mark.parametrize("value", [np.arange(6.0).reshape(3, 2).T, np.array(7.0), np.zeros((0, 2))])
def test_results_keep_shape_and_value_whatever_their_layout(value):
    found = task(lambda: value, shape=value.shape).run()

    assert found.shape == value.shape
    assert found.tolist() == value.tolist()
    assert found.flags.c_contiguous
    assert not found.flags.writeable


def test_only_cancellable_tasks_are_handed_the_question():
    def chunks(count, cancelled):
        for _ in range(count):
            if cancelled():
                raise TaskCancelled
        return np.zeros(2)

    answers = iter([False, True])
    assert task(chunks, (3,), cancellable=True).run().tolist() == [0.0, 0.0]
    with pytest.raises(TaskCancelled):
        task(chunks, (3,), cancellable=True).run(lambda: next(answers))
    assert task(Counter()).run(lambda: True).tolist() == [1.0, 2.0]


def test_equal_function_and_inputs_make_equal_keys():
    array, counter = np.zeros(2), Counter()
    key = task(counter, (array, 3)).key()

    assert key == task(counter, (array, 3), cost=5.0).key()
    assert hash(key) == hash(task(counter, (array, 3)).key())
    assert key != task(counter, (array.copy(), 3)).key()
    assert key != task(counter, (array, 4)).key()
    assert key != task(Counter(), (array, 3)).key()


# Sums

floats = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(st.tuples(floats, floats, floats), min_size=1, max_size=6), st.booleans())
def test_sums_are_formed_in_the_order_given(terms, lazy):
    weights = [weight for weight, *_ in terms]
    arrays = [np.array(values) for _, *values in terms]
    results = [Deferred(task(lambda a=a: a)) for a in arrays] if lazy else arrays

    expected = weights[0] * arrays[0]
    for weight, array in zip(weights[1:], arrays[1:], strict=True):
        expected = expected + weight * array
    assert combine(weights, results).tobytes() == expected.tobytes()


def test_one_result_of_weight_one_comes_back_as_it_is():
    array = np.array([-0.0, 1e-310, np.pi])

    assert combine([1.0], [array]).tobytes() == array.tobytes()
    assert combine([1.0], [array]) is not array


def test_sums_keep_shape_and_precision():
    assert combine([2.0, 1.0], [np.ones((2, 3), np.float32)] * 2).dtype == np.float32
    assert combine([2.0, 1.0], [np.ones((2, 3)).T] * 2).tolist() == np.full((3, 2), 3.0).tolist()
    assert combine([0.5], [np.array(4.0)]).shape == ()


@pytest.mark.parametrize(
    ("weights", "results", "said"),
    [
        ([], [], "at least one"),
        ([1.0], [np.zeros(1), np.zeros(1)], "got 1, 2"),
        ([1.0, 1.0], [np.zeros(1), np.zeros(2)], r"result 1 is float64 \(2,\), result 0 is float64 \(1,\)"),
        ([1.0, 1.0], [np.zeros(1), np.zeros(1, np.float32)], "result 1 is float32"),
    ],
)
def test_sums_of_unequal_things_are_refused(weights, results, said):
    with pytest.raises(ContractError, match=said):
        combine(weights, results)


def doubled(x):
    return 2.0 * x


READINGS = {
    "an item": lambda v: float(v[1]),
    "a sum of two": lambda v: (1 + v + v).tolist(),
    "a numpy function": lambda v: np.concatenate([v, np.sqrt(v)]).tolist(),
    "a reduction": lambda v: float(np.linalg.norm(v)),
    "a method": lambda v: float(v.sum()),
    "a product": lambda v: float(v @ np.ones(3)),
    "an array": lambda v: np.asarray(v, np.float32).tolist(),
    "its items": lambda v: [float(item) for item in v],
    "membership": lambda v: 2.0 in v,
    "another task": lambda v: Task(np.cumsum, (v,), 1.0, (3,)).run().tolist(),
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_result_that_is_read_is_the_array_it_stands_for(reading):
    """Contract 8.7: a protocol that computes with an answer cannot tell the engines apart."""
    task = Task(doubled, (np.arange(3.0),), 1.0, (3,))
    assert READINGS[reading](Deferred(task)) == READINGS[reading](task.run())


def test_a_result_is_read_only_and_is_not_made_by_being_passed_on():
    result = Deferred(Task(doubled, (np.arange(3.0),), 1.0, (3,)))
    passed_on = Task(np.cumsum, (result,), 1.0, (3,))
    assert {result: 1}[result] == 1
    assert passed_on.key() == Task(np.cumsum, (result,), 1.0, (3,)).key()
    assert not result.evaluated
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 1.0


@pytest.mark.parametrize(("one", "other"), [(3, 3.0), (1, True), (0.0, -0.0), ((1, 2), (1.0, 2.0)), ("1", 1)])
def test_tasks_of_equal_but_different_inputs_are_told_apart(one, other):
    """Else the emulator would share one result for both, which the runtime does not."""
    keys = {Task(doubled, (given,), 1.0, (1,)).key() for given in (one, other)}
    assert len(keys) == 2
    assert Task(doubled, (one,), 1.0, (1,)).key() in keys
