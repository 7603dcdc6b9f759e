"""X4: what a node does must not depend on the order of hashes; runs of two processes tell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def digests(which, hash_seed):
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.mutants.digests", which]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_runs_do_not_depend_on_the_order_of_hashes_and_the_bug_that_makes_them_is_seen():
    assert digests("ours", 1) == digests("ours", 2)
    assert digests("wrong", 1) != digests("wrong", 2)
