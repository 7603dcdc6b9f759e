"""Descriptions of clusters."""

import pytest

from emuml.cluster import Cluster
from emuml.cluster.cluster import WORKERS_MAX
from emuml.errors import UserError


def test_more_workers_than_any_host_can_hold_are_refused_at_once():
    assert Cluster(workers=WORKERS_MAX).workers == WORKERS_MAX
    with pytest.raises(UserError, match=r"Cluster\.workers: got 10000001; allowed: at most 10,000,000"):
        Cluster(workers=WORKERS_MAX + 1)
