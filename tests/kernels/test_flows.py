"""Max-min fair flows: the kernel and its twin agree in every bit, and both with exact arithmetic and the definition."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emuml._kernels import reference_flows
from tests.flow_oracle import Flow, finish, rates_of

compiled = pytest.importorskip("emuml._kernels.flows", reason="the kernels are not compiled")
BOTH = pytest.mark.parametrize("system", [reference_flows.FlowSystem, compiled.FlowSystem], ids=["twin", "kernel"])
NUMBERS = st.sampled_from([1.0, 2.0, 3.0, 10.0, 0.1, 7.7, 1e8])


@st.composite
def networks(draw, most_flows=8, weights=(1.0, 2.0, 0.3, 1e4)):
    """Capacities and flows over them; some are limited by themselves, some cross a channel twice."""
    capacities = draw(st.lists(NUMBERS, min_size=1, max_size=5))
    channels = st.integers(0, len(capacities) - 1)
    starts, sizes = st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.7]), st.integers(1, 60).map(float)
    flow = st.builds(
        Flow,
        starts,
        st.lists(channels, min_size=1, max_size=4).map(tuple),
        st.sampled_from(weights),
        st.sampled_from([inf, inf, 1.0, 0.25]),
        sizes,
    )
    return capacities, draw(st.lists(flow, min_size=1, max_size=most_flows))


def ends(system, capacities, flows):
    """When each flow ends, all given at once."""
    first = np.cumsum([0, *(len(flow.route) for flow in flows)]).astype(np.intc)
    route = np.array([channel for flow in flows for channel in flow.route], np.intc)
    columns = [np.array([getattr(flow, name) for flow in flows]) for name in ("start", "weight", "most", "size")]
    out = np.full(len(flows), np.nan)
    system(capacities).finish(columns[0], first, route, *columns[1:], out)
    return out


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(networks())
def test_ends_are_those_of_exact_arithmetic(network):
    capacities, flows = network
    expected = [float(end) for end in finish(capacities, flows)]

    assert ends(compiled.FlowSystem, capacities, flows) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(networks(most_flows=20))
def test_kernel_and_twin_give_the_same_bits(network):
    found = [ends(system, *network) for system in (reference_flows.FlowSystem, compiled.FlowSystem)]

    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.slow
@BOTH
@settings(max_examples=100, deadline=None)
@given(networks(most_flows=12))
def test_rates_fill_channels_and_are_fair(system, network):
    capacities, flows = network
    shared = system(capacities)
    slots = [shared.add(0.0, 0.0, flow.route, flow.weight, flow.most, 1e9) for flow in flows]
    assert shared.advance(0.0) == []
    rates = [shared.rate(slot) for slot in slots]

    used = [0.0] * len(capacities)
    for flow, rate in zip(flows, rates, strict=True):
        for channel in flow.route:
            used[channel] += rate
    assert all(use <= capacity * (1 + 1e-9) for use, capacity in zip(used, capacities, strict=True))
    for flow, rate in zip(flows, rates, strict=True):
        level = rate / flow.weight
        limits = [rate >= flow.most * (1 - 1e-9)]
        for channel in flow.route:
            is_full = used[channel] >= capacities[channel] * (1 - 1e-9)
            others = [r / f.weight for f, r in zip(flows, rates, strict=True) if channel in f.route]
            limits.append(is_full and level >= max(others) * (1 - 1e-9))
        assert any(limits), "each flow has a bottleneck: a full channel on which nobody has a higher level"
    assert rates == pytest.approx([float(rate) for rate in rates_of(capacities, flows)], rel=1e-9)


@pytest.mark.slow
@BOTH
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_flows_added_and_removed_on_the_way_leave_exact_rates(system, data):
    capacities = data.draw(st.lists(NUMBERS, min_size=1, max_size=4))
    shared, there, now = system(capacities), {}, 0.0
    channels = st.lists(st.integers(0, len(capacities) - 1), min_size=1, max_size=3).map(tuple)
    for _ in range(data.draw(st.integers(1, 25))):
        if there and data.draw(st.booleans()):
            slot = data.draw(st.sampled_from(sorted(there)))
            shared.remove(now, slot)
            del there[slot]
        else:
            weight = data.draw(st.sampled_from([1.0, 4.0, 0.01]))
            flow = Flow(now, data.draw(channels), weight, data.draw(st.sampled_from([inf, 1.5])), 1e15)
            there[shared.add(now, now, flow.route, flow.weight, flow.most, flow.size)] = flow
        now += data.draw(st.sampled_from([0.0, 0.5]))
        shared.advance(now)
        found = [shared.rate(slot) for slot in there]
        assert found == pytest.approx([float(rate) for rate in rates_of(capacities, list(there.values()))], rel=1e-9)
        assert len(shared) == len(there)


@BOTH
def test_flows_of_one_bottleneck_end_as_the_closed_form_says(system):
    """Smallest first: between two ends the remaining flows share the channel evenly."""
    sizes = np.random.default_rng(7).permutation(np.arange(1, 301)) * 1000
    flows = [Flow(0.0, (0, 1 + i), 1.0, inf, float(size)) for i, size in enumerate(sizes)]

    found = ends(system, [1e6] * (len(sizes) + 1), flows)

    ordered = np.sort(sizes)
    steps = np.diff(ordered, prepend=0) * np.arange(len(ordered), 0, -1) / 1e6
    assert np.sort(found) == pytest.approx(np.cumsum(steps), rel=1e-12)
    assert np.array_equal(np.argsort(found), np.argsort(sizes))


@BOTH
def test_a_full_channel_does_all_its_work(system):
    """Work conservation: as long as there are flows, the channel is busy, whatever their sizes, starts and weights."""
    generator = np.random.default_rng(3)
    flows = [
        Flow(float(start), (0,), float(weight), inf, float(size))
        for start, weight, size in zip(
            np.sort(generator.uniform(0, 0.1, 200)),
            generator.choice([1, 10, 1e5], 200),
            generator.integers(1, 10**6, 200),
            strict=True,
        )
    ]
    busy_from = flows[0].start

    assert ends(system, [1e6], flows).max() == pytest.approx(busy_from + sum(f.size for f in flows) / 1e6, rel=1e-12)


@BOTH
def test_flows_that_end_in_one_instant_are_reported_in_the_order_they_were_added(system):
    shared = system([100.0, 100.0])
    slots = [shared.add(0.0, 0.0, route, 1.0, inf, size) for route, size in (((0,), 50.0), ((1,), 100.0), ((0,), 50.0))]

    at = shared.next_time()
    assert (at, shared.advance(at)) == (0.0, [])
    at = shared.next_time()

    assert at == 1.0
    assert shared.advance(at) == slots
    assert shared.next_time() == inf
    assert len(shared) == 0


@BOTH
def test_one_bottleneck_is_left_and_found_again(system):
    """A flow that crosses another full channel, or joins two groups, ends the virtual time, and it begins anew."""
    capacities = [10.0, 10.0, 4.0]
    flows = [
        Flow(0.0, (0,), 1.0, inf, 100.0),
        Flow(0.0, (0,), 1.0, inf, 60.0),
        Flow(1.0, (0, 2), 1.0, inf, 20.0),
        Flow(2.0, (2,), 1.0, inf, 30.0),
        Flow(3.0, (0, 1), 1.0, inf, 10.0),
        Flow(3.0, (1,), 1.0, inf, 500.0),
    ]

    expected = [float(end) for end in finish(capacities, flows)]
    assert ends(system, capacities, flows) == pytest.approx(expected, rel=1e-12)


@BOTH
def test_channels_that_fill_one_after_the_other_by_hand(system):
    """Two links in a row and a flow on each: the long one gets half of the smaller, the other what is left."""
    flows = [Flow(0.0, (0, 1), 1.0, inf, 1.0), Flow(0.0, (0,), 1.0, inf, 3.0), Flow(0.0, (1,), 1.0, inf, 1.0)]
    shared = system([8.0, 2.0])
    slots = [shared.add(0.0, 0.0, flow.route, 1.0, inf, flow.size) for flow in flows]
    shared.advance(0.0)

    assert [shared.rate(slot) for slot in slots] == [1.0, 7.0, 1.0]


@BOTH
def test_weights_of_all_sizes_lose_no_digits(system):
    """Subtracting what is fixed from a sum of very different weights would leave nothing but rounding."""
    flows = [Flow(0.0, (0, 1), 1e12, 1.0, 1e3), Flow(0.0, (1,), 1e-3, inf, 7.0), Flow(0.0, (1,), 2e-3, inf, 5.0)]
    expected = [float(end) for end in finish([100.0, 10.0], flows)]

    assert ends(system, [100.0, 10.0], flows) == pytest.approx(expected, rel=1e-9)
    assert Fraction(1) == sum(rates_of([1.0], [Flow(0.0, (0,), w, inf, 1.0) for w in (1e12, 1e-3)]))
