"""A slow and plain model of flows in exact arithmetic, written for the tests alone, and the usual wrong ones.

Every event starts from the definition: raise the level of all flows until a channel is full, stop those that cross it,
go on with the others. No heap, no groups, no virtual time, no rounding.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf


@dataclass(frozen=True)
class Flow:
    """A flow that takes part from ``start`` on; numbers as the kernel has them."""

    start: float
    route: tuple
    weight: float
    most: float
    size: float


def rates_of(capacities, flows):
    """Return the max-min fair rates of flows that are all there, as fractions."""
    rates, level = {}, Fraction(0)
    while len(rates) < len(flows):
        growing = [i for i in range(len(flows)) if i not in rates]
        limits = [Fraction(flows[i].most) / Fraction(flows[i].weight) for i in growing if flows[i].most < inf]
        for channel, capacity in enumerate(capacities):
            weight = sum(flows[i].route.count(channel) * Fraction(flows[i].weight) for i in growing)
            if weight:
                used = sum(flows[i].route.count(channel) * rate for i, rate in rates.items())
                limits.append((Fraction(capacity) - used) / weight)
        level = min(limits)
        stopped = []
        for i in growing:
            flow = flows[i]
            is_full = flow.most < inf and Fraction(flow.most) <= level * Fraction(flow.weight)
            for channel in flow.route:
                used = sum(flows[k].route.count(channel) * rates[k] for k in rates)
                used += sum(flows[k].route.count(channel) * Fraction(flows[k].weight) * level for k in growing)
                is_full = is_full or used >= Fraction(capacities[channel])
            if is_full:
                stopped.append(i)
        rates.update({i: level * Fraction(flows[i].weight) for i in stopped})
    return [rates[i] for i in range(len(flows))]


def unshared(capacities, flows):
    """Wrong: every flow has its route alone."""
    return [min([capacities[channel] for channel in flow.route] + [flow.most]) for flow in flows]


def not_redistributed(capacities, flows):
    """Wrong: an equal part of each link, the least of the route; what others cannot use is lost."""
    counts = [sum(channel in flow.route for flow in flows) for channel in range(len(capacities))]
    return [min([capacities[c] / counts[c] for c in flow.route] + [flow.most]) for flow in flows]


def finish(capacities, flows, rates=rates_of, number=Fraction):
    """Return when each flow ends."""
    now, left, done = number(0), [number(flow.size) for flow in flows], {}
    while len(done) < len(flows):
        there = [i for i, flow in enumerate(flows) if i not in done and number(flow.start) <= now]
        coming = [number(flow.start) for i, flow in enumerate(flows) if i not in done and number(flow.start) > now]
        speed = dict(zip(there, rates(capacities, [flows[i] for i in there]), strict=True)) if there else {}
        ends = [now + left[i] / speed[i] for i in there]
        at = min(coming + ends)
        ended = [i for i, end in zip(there, ends, strict=True) if end <= at * (1 + number(1e-14))]
        for i in there:
            left[i] -= speed[i] * (at - now)
        now = at
        done.update(dict.fromkeys(ended, now))
    return [done[i] for i in range(len(flows))]


def floats(capacities, flows):
    """Return the right rates in floating point: fast enough for hundreds of events."""
    rates, room = {}, [float(capacity) for capacity in capacities]
    while len(rates) < len(flows):
        growing = [i for i in range(len(flows)) if i not in rates]
        weights = [sum(flows[i].route.count(c) * flows[i].weight for i in growing) for c in range(len(capacities))]
        levels = {c: room[c] / weight for c, weight in enumerate(weights) if weight > 0}
        caps = {i: flows[i].most / flows[i].weight for i in growing}
        level = min([*levels.values(), *caps.values()])
        full = {c for c, value in levels.items() if value <= level * (1 + 1e-10)}
        for i in growing:
            if caps[i] <= level * (1 + 1e-10) or full.intersection(flows[i].route):
                rates[i] = level * flows[i].weight
                for c in flows[i].route:
                    room[c] -= rates[i]
    return [rates[i] for i in range(len(flows))]


def equally_weighted(flows):
    """Wrong: latency delays a flow and does not weigh it."""
    return [replace(flow, weight=1.0) for flow in flows]
