"""The scheme of the paper as a real run: 31 processes over TCP, each worker's answers delayed as in its program."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import erasurehead_tcp
from papers.erasurehead.expected import Sampled
from papers.erasurehead.parts import Part, Say, table


def run(say: Say, long: bool = False) -> Part:
    """Run it; with ``long`` also the uncoded scheme, which takes 200 s."""
    say("100 rounds of AGC r=3 c=15" + (" and of uncoded" if long else ""))
    figures = erasurehead_tcp.measure(brief=False, long=long)
    found, rows = {}, []
    for name, key in (("AGC r=3 c=15", "run_s"), *([("uncoded", "uncoded_s")] if long else [])):
        figure = figures[key]
        found[name] = float(figure.value or 0.0)
        published_s = erasurehead_tcp.PUBLISHED_S[name]
        cells = (
            figure.details["lower_bound_s"],
            f"{found[name]:.2f}",
            published_s,
            f"{published_s / found[name]:.2f}x",
        )
        rows.append([name, *map(str, cells)])
    distance = float(figures["loss_distance"].value or 0.0)
    said = (
        f"Losses differ by {distance:.1g} from those of a plain loop with the same decode sets; the replay of the run "
        f"ends at the same parameters, bit for bit. 31 processes started in {figures['start_s'].value} s."
    )
    heads = ["scheme", "least", "over\nTCP", "published\nprogram", "faster"]
    groups: dict[str, Mapping[str, float | Sampled]] = {
        "tcp": {"AGC r=3 c=15": found["AGC r=3 c=15"]},
        "tcp losses": {"relative distance": distance},
    }
    if long:
        groups["tcp uncoded"] = {"uncoded": found["uncoded"]}
    drawn = table("Real runs on the built-in delays: seconds for 100 rounds", heads, rows)
    return Part(groups, drawn, said, measured={f"tcp/{name}": each for name, each in figures.items()})
