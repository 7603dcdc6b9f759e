"""SimGrid's C++ engine as a peer: a program that is compiled when it is needed, and run as a process of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from emuml.cluster import Topology

Flow = tuple[float, str, str, int]
"""Start in seconds, source, destination, size in bytes."""

MODEL = (
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "maxmin/precision:1e-10",
    "surf/precision:1e-12",
)
"""Plain max-min fair sharing, without what SimGrid adds for TCP, and with digits enough to compare."""

SETTINGS = {"default": (), "optim:Full": ("network/optim:Full",)}
"""SimGrid's own way to keep rates up to date, and the one that is often faster where everything changes at once."""


class Absent(Exception):
    """Why SimGrid cannot be compared with here."""


def compiled(folder: Path, name: str = "simgrid_flows") -> Path:
    """Compile a program that lies beside this file.

    Raises
    ------
    Absent
        If there is no compiler, or no SimGrid to compile with.
    """
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise Absent("no C++ compiler")
    program, source = folder / name, Path(__file__).with_name(f"{name}.cpp")
    command = [compiler, "-O3", "-std=c++17", str(source), "-o", str(program), "-lsimgrid"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Absent("SimGrid's C++ library is not installed (Debian: libsimgrid-dev)")
    return program


def write_platform(path: Path, topology: Topology, flows: Iterable[Flow]) -> None:
    """Write a topology as a platform file, with the routes that the flows take."""
    sharing = {"split-duplex": "SPLITDUPLEX", "shared": "SHARED", "fatpipe": "FATPIPE"}
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">']
    lines += ['<platform version="4.1"><zone id="z" routing="Full">']
    lines += [f'<host id={quoteattr(host)} speed="1Gf"/>' for host in topology.hosts]
    for link in topology.links:
        name, rate, policy = quoteattr(link.name), f"{link.bandwidth_bps / 8!r}Bps", sharing[link.sharing]
        lines.append(f'<link id={name} bandwidth="{rate}" latency="{link.latency_s!r}s" sharing_policy="{policy}"/>')
    for source, destination in dict.fromkeys((source, destination) for _, source, destination, _ in flows):
        hops = "".join(
            f'<link_ctn id={quoteattr(hop.link)} direction="{hop.direction.upper()}"/>'
            for hop in topology.path(source, destination)
        )
        ends = f"src={quoteattr(source)} dst={quoteattr(destination)}"
        lines.append(f'<route {ends} symmetrical="NO">{hops}</route>')
    path.write_text("\n".join([*lines, "</zone></platform>"]))


def write_flows(path: Path, flows: Iterable[Flow]) -> None:
    """Write a list of flows as the program reads it."""
    path.write_text("".join(f"{start_s!r} {source} {to} {size}\n" for start_s, source, to, size in flows))


def simulate(
    program: Path, platform: Path, flows: Path, until_s: float, settings: Sequence[str] = ()
) -> tuple[float, NDArray[np.float64]]:
    """Return the CPU seconds of a simulation, and when each flow has arrived; nan for those on their way at the end."""
    options = [f"--cfg={setting}" for setting in (*MODEL, *settings)]
    command = [str(program), str(platform), str(flows), repr(until_s), *options, "--log=root.thres:error"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cpu_s, *times = map(float, done.stdout.split())
    found = np.array(times)
    return cpu_s, np.where(found < 0, np.nan, found)
