"""The task of a round: chunks of several jobs, each at its own parameters, one result with a row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emuml.protocol import Problem
from emuml.protocols.sequential_coding import seam
from emuml.task import Task


def task_of(
    code: seam.Sequence,
    workload: Problem,
    worker: int,
    chunks: Sequence[seam.Chunk],
    parameters: Mapping[int, NDArray[Any]],
    round: int,
) -> Task:
    """Return the task of a worker's chunks in a round.

    Parameters
    ----------
    code : seam.Sequence
    workload : Problem
    worker : int
    chunks : sequence of Chunk
        At least one.
    parameters : mapping
        By job; a job's number also names its batch.
    round : int
        Names the task's delay.

    Returns
    -------
    Task
        Its value has the shape (chunks, *parameters.shape), and its cost is that of all chunks.
    """
    tasks = [_gradient(code, workload, worker, chunk, parameters[chunk.job]) for chunk in chunks]
    # One flat tuple of inputs: engines freeze arrays in it, and know equal tasks by it.
    counts = tuple(len(task.inputs) for task in tasks)
    stops = tuple(int(task.cancellable) for task in tasks)
    functions = (task.function for task in tasks)
    inputs = (counts, stops, *functions, *(item for task in tasks for item in task.inputs))
    shape = (len(tasks), *tasks[0].shape)
    return Task(stacked, inputs, sum(task.cost for task in tasks), shape, tasks[0].dtype, round, cancellable=True)


def _gradient(code: seam.Sequence, workload: Problem, worker: int, chunk: seam.Chunk, parameters: NDArray[Any]) -> Task:
    owned, factors = code.piece(worker, chunk.part)
    given = None if factors is None or factors.count(1.0) == len(factors) else factors
    found: Task = workload.gradient(parameters, owned, code.partitions, given, draw=chunk.job)
    return found


def stacked(counts: tuple[int, ...], stops: tuple[int, ...], *rest: Any) -> NDArray[Any]:
    """Return the values of several tasks as rows; ``rest`` has their functions, their inputs and ``cancelled``."""
    *flat, cancelled = rest
    functions, inputs = flat[: len(counts)], flat[len(counts) :]
    found, start = [], 0
    for function, count, can_stop in zip(functions, counts, stops, strict=True):
        extra = (cancelled,) if can_stop else ()
        found.append(np.asarray(function(*inputs[start : start + count], *extra)))
        start += count
    return np.stack(found)
