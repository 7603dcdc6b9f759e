"""A protocol of one's own: ask several workers the same question, and take whoever answers first.

A node is a class with handlers. It reads no clock and opens no socket; whatever it wants goes through ``ctx``. The same
classes run on the emulator and over TCP: ``ask(4, 50, "tcp")``. Here all nodes share a process, because node processes
of their own import classes by name, and cannot import a script.
"""

import numpy as np

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.testing import run_nodes


class Question(emuml.Message):
    """Asks for the square of a number."""

    number: int


class Answer(emuml.Message):
    """The square of a number."""

    number: int
    value: emuml.Array


class Asker(emuml.Node):
    """Asks all workers; the first answer settles a question, and the next question calls the others off."""

    def __init__(self, questions):
        self.questions = questions

    def on_start(self, ctx, saved):
        """Begin with the first question."""
        self.ask(ctx, 1)

    def ask(self, ctx, number):
        """Open a question."""
        self.open = number
        ctx.broadcast("worker", Question(number))

    def on_message(self, ctx, sender, answer):
        """Take the first answer to the open question."""
        if answer.number != self.open:
            return  # a straggler's answer to a settled question
        ctx.log(question=self.open, winner=str(sender))
        if self.open == self.questions:
            ctx.stop("every question is settled")
        else:
            self.ask(ctx, self.open + 1)


class Worker(emuml.Node):
    """Computes the newest question only."""

    def on_message(self, ctx, sender, question):
        """Drop what is still being computed, and start on this."""
        self.asker, self.number = sender, question.number
        ctx.cancel("square")
        ctx.compute("square", emuml.Task(np.square, (np.array([self.number * 1.0]),), cost=1.0, shape=(1,)))

    def on_computed(self, ctx, tag, result):
        """Answer."""
        ctx.send(self.asker, Answer(self.number, result))


def ask(workers, questions=2000, engine="des"):
    nodes = {"asker-0": ("asker", lambda: Asker(questions))}
    nodes |= {f"worker-{i}": ("worker", Worker) for i in range(workers)}
    cluster = Cluster(workers=workers, compute=ShiftedExponential(shift_s=0.1, mean_s=1.0))
    run = run_nodes(nodes, engine, cluster, seed=1, processes="shared")
    if run.error is not None:
        raise run.error
    return run


def main():
    for workers in (1, 2, 4, 8):
        run = ask(workers)
        print(f"asking {workers}: {run.duration_s / len(run.logs):.2f} s a question; theory {0.1 + 1 / workers:.2f} s")


if __name__ == "__main__":
    main()
