"""The checks in the order in which they are told."""

from __future__ import annotations

from emuml.doctor import build, data, limits, machine
from emuml.doctor.finding import Check

CHECKS: dict[str, dict[str, Check]] = {
    "build": {
        "version": build.versions,
        "kernels": build.kernels,
        "switches": build.switches,
        "dependencies": build.dependencies,
        "extras": build.extras,
        "other copies": build.copies,
    },
    "machine": {
        "cores": limits.cores,
        "memory": limits.memory,
        "open files": limits.open_files,
        "processes": limits.processes,
        "loopback": machine.loopback,
        "loopback, IPv6": machine.loopback_6,
        "node processes": machine.node_processes,
        "temporary files": machine.temporary_files,
        "clock": machine.clocks,
        "linear algebra": machine.linear_algebra,
        "timers": machine.timers,
    },
    "data": {"data folder": data.data_folder, "scikit-learn": data.scikit_learn},
}
"""By group and name."""
