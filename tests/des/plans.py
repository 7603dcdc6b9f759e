"""Fault plans of a server and two workers, as strategies: crashes, and all else that the emulator executes."""

from hypothesis import strategies as st

from emuml.cluster import timeline
from emuml.cluster.faults import Crash, GroupCrash, Hang, Lossy, Partition, SlowLink, SlowNode

NAMES = ("server-0", "worker-0", "worker-1")
names, ends = st.sampled_from(NAMES), st.permutations(NAMES)
times = st.integers(0, 40).map(lambda n: n / 8)
lengths = st.integers(1, 40).map(lambda n: n / 8)
crashes = st.builds(
    lambda node, at_s, back: Crash(node, at_s=at_s, restart_after_s=back), names, times, st.none() | times
)
groups = st.builds(
    lambda pair, at_s, back, warning_s, within_s: GroupCrash(pair[:2], at_s, back, None, warning_s, within_s),
    ends, times, st.none() | times, st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.25]),
)  # fmt: skip
hangs = st.builds(lambda node, for_s, at_s: Hang(node, for_s, at_s=at_s), names, lengths, times)
partitions = st.builds(
    lambda pair, split, for_s, at_s, one_way: Partition(pair[:1], pair[1 : 1 + split], for_s, at_s, one_way=one_way),
    ends, st.integers(0, 2), lengths, times, st.booleans(),
)  # fmt: skip
slow_links = st.builds(
    lambda pair, latency_s, for_s, at_s, slowdown: SlowLink(*pair[:2], latency_s, for_s, at_s, slowdown=slowdown),
    ends, st.sampled_from([0.0, 0.25, 3.0]), lengths, times, st.sampled_from([1.0, 4.0]),
)  # fmt: skip
lossy = st.builds(lambda pair, for_s, at_s: Lossy(*pair[:2], 0.5, for_s, at_s), ends, lengths, times)
slow_nodes = st.builds(
    lambda node, factor, for_s, at_s: SlowNode(node, factor, for_s, at_s), names, lengths, lengths, times
)
others = groups | hangs | partitions | slow_links | lossy | slow_nodes


def plans(faults, most):
    """Return a strategy of plans that can come to pass."""
    return st.lists(faults, max_size=most).map(timeline.possible)
