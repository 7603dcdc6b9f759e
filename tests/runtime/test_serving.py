"""What a node process says it took is its own, not its parent's."""

import resource
import subprocess
import sys

import pytest

import emuml.runtime.serving
from emuml.runtime.serving import used

PARENT = """
import subprocess, sys
once = bytearray(b"x" * 300_000_000)
del once
child = "from emuml.runtime.serving import used; print(used()['max_rss_bytes'])"
subprocess.run([sys.executable, "-c", child], check=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status, which Linux has")
def test_the_peak_of_a_process_does_not_count_its_parent():
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, check=True)
    assert 5e6 < float(done.stdout) < 150e6


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status, which Linux has")
def test_the_peak_counts_what_was_given_back():
    before = used()["max_rss_bytes"]
    once = bytearray(b"x" * int(before + 50e6))
    del once
    assert used()["max_rss_bytes"] >= before + 50e6


def test_where_there_is_no_proc_the_peak_is_what_getrusage_says(monkeypatch):
    def absent(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(emuml.runtime.serving, "open", absent, raising=False)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert used()["max_rss_bytes"] >= most > 0
