"""Measured figures: ``python -m benchmarks.NAME --json`` prints one JSON object of figures.

Array libraries are held to one thread, as nodes are, so that CPU time compares work and not thread counts. That must
be said before numpy is imported, hence here.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
