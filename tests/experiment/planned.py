"""What a run sent and what its plan says of it, in one form; theory that knows no bounds."""

import numpy as np


def sent(result):
    """Return number and bytes of what was sent, by kind as plans have them."""
    found = {"questions": [0, 0], "answers": [0, 0]}
    for row in result.trace.rows:
        if row[2] == "send":
            counts = found["questions" if row[4] == "Parameters" else "answers"]
            counts[0] += 1
            counts[1] += row[5]
    return found


def planned(found):
    """Return mean number and bytes of messages of a plan, by kind."""
    return {each.kind: [each.count.mean, each.total_bytes.mean] for each in found.messages}


def overflows(**arguments):
    """Answer as Python's numbers do."""
    return 1e300**2


def overflows_softly(**arguments):
    """Answer as numpy's numbers do, which also warn."""
    return np.float64(1e300) * 1e300
