"""Write docs/settings.md: every setting of an experiment, from the declarations and their docstrings.

Run it after a declaration has changed: python docs/settings.py
"""

import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from emuml import names
from emuml.experiment.experiment import Experiment
from emuml.experiment.hints import field_hints, words
from emuml.report.view import brief
from emuml.runtime.settings import RuntimeSettings

HEAD = """\
# Every setting

What a file of an experiment may hold, made from the declarations by `docs/settings.py`. `kind` names a class; its other
keys are the fields below. Plain text is a kind without parameters: `protocol: gradient-coding`. On the command line
keys are joined by points: `cluster.compute.mean_s=0.2`. In Python the same fields are arguments of the classes.
"""
FAMILIES = {
    "workload": "What is trained", "optimizer": "How steps are made", "schedule": "How the rate changes",
    "protocol": "How workers and servers cooperate", "code": "Who computes what (`protocol.code`)",
    "graph": "Graphs of codes (`protocol.code.graph`)",
    "barrier": "Who may start when (`protocol.barrier`)", "cluster": "Nodes and what they need",
    "compute": "How long work takes (`cluster.compute`)", "network": "Links (`cluster.network`)",
    "topology": "Topologies (`cluster.network.topology`)",
    "link": "Links of a topology", "route": "Routes of a topology",
    "server_costs": "What messages cost a server (`cluster.server_costs`)",
    "storage": "Stable storage (`cluster.storage`)", "detection": "How crashes are noticed (`cluster.detection`)",
    "faults": "What goes wrong, by a law (`faults`)", "repair": "How long nodes are down (`faults.repair`)",
    "fault": "What goes wrong, one by one (a list under `faults`)",
    "stop": "When training ends (`stop`, in place of `rounds`)",
}  # fmt: skip


def page() -> str:
    """Return the page as text."""
    parts = [HEAD, "## Experiment: the top level of a file\n", table(Experiment)]
    for family, title in FAMILIES.items():
        parts.append(f"## {title}\n")
        for kind in names.REGISTRY[family]:
            cls = names.resolve(family, kind)
            parts += [f"### `{kind}`\n", f"{summary(cls)}\n", table(cls)]
    parts += ["## `runtime`: settings of the TCP engine\n", table(RuntimeSettings)]
    return "\n".join(filter(None, parts))


def summary(cls: type) -> str:
    """Return the first paragraph of a class's docstring."""
    return plain(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0])


def table(cls: type) -> str:
    """Return the fields of a class as a table; nothing for a class without fields."""
    rows = []
    for field in fields(cls):
        if field.init and field.name not in ("format",):
            hint = field_hints(cls)[field.name]
            rows.append(
                f"| `{field.name}` | {cell(words(hint))} | {default(field)} | {cell(meaning(cls, field.name))} |"
            )
    head = "| key | allowed | default | meaning |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n" if rows else ""


def default(field: Any) -> str:
    """Return the default of a field, or that it is needed."""
    if field.default is MISSING and field.default_factory is MISSING:
        return "needed"
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is None or value == ():
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else brief(value)}`"


def meaning(cls: type, name: str) -> str:
    """Return what the docstring of a class, or of one that it is made from, says of a parameter."""
    for base in cls.__mro__:
        lines = inspect.cleandoc(base.__doc__ or "").splitlines()
        for number, line in enumerate(lines):
            given, colon, _ = line.partition(" : ")
            if colon and name in given.split(", "):
                said = []
                for following in lines[number + 1 :]:
                    if following and not following.startswith("    "):
                        break
                    said.append(following.strip())
                return plain(" ".join(filter(None, said)))
    return ""


def plain(text: str) -> str:
    """Return text of a docstring in Markdown."""
    text = re.sub(r":\w+:`~?([\w.]+)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    return " ".join(text.replace("``", "`").split())


def cell(text: str) -> str:
    """Return text that may stand in a table."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
