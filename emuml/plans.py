"""Message classes analysed: what their fields may hold, checked, and the fingerprint of a protocol's messages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np

from emuml.errors import MessageError
from emuml.fields import Plan, plan_of, tag_of


def planned(kind: type[Any]) -> Plan:
    """Analyse a message class when it is first used: a class may be defined before what its annotations name."""
    config = kind.__struct_config__
    tag_of(kind)
    if not config.forbid_unknown_fields:
        raise MessageError(f"{kind.__name__} must not switch off forbid_unknown_fields")
    kind._plan = plan_of(kind)
    plan: Plan = kind._plan
    return plan


def check_fields(message: Any) -> None:
    """Raise MessageError unless all fields hold what they may."""
    for name, kind, exact, accepts, _ in (message._plan or planned(type(message))).fields:
        value = getattr(message, name)
        if type(value) is not exact or (accepts is not None and not accepts(value)):
            kind.check(value, f"{type(message).__name__}.{name}")


def analysed(kind: type[Any]) -> tuple[str, list[tuple[str, str, Callable[[Any], bool] | None]], bool]:
    """Return what the compiled checks need of a class: its tag, its fields, and whether it has something to freeze."""
    plan = planned(kind)
    fields = [
        (
            field.name,
            "array" if field.exact is np.ndarray and "|" not in field.kind.name else field.kind.name,
            field.accepts,
        )
        for field in plan.fields
    ]
    return tag_of(kind), fields, bool(plan.to_freeze)


def fingerprint(kinds: Iterable[type[Any]]) -> bytes:
    """Return SHA-256 over the canonical JSON of the messages, sorted by tag, and then of the structs in their fields.

    Without such structs this is ``[[tag, [[field, type, required], ...]], ...]``; not msgspec's own description of
    types, which changes between its versions.
    """
    pending: list[type[msgspec.Struct]] = list(kinds)
    entries: dict[str, list[object]] = {}
    nested: dict[str, list[object]] = {}
    top = set(pending)
    while pending:
        struct = pending.pop()
        entry, key = (entries, tag_of(struct)) if struct in top else (nested, f"struct:{struct.__name__}")
        if key in entry:
            continue
        fields = plan_of(struct).fields
        entry[key] = [key, [[field.name, field.kind.name, field.required] for field in fields]]
        pending.extend(inner for field in fields for inner in field.kind.structs)
    ordered = [table[key] for table in (entries, nested) for key in sorted(table)]
    return hashlib.sha256(json.dumps(ordered, separators=(",", ":"), ensure_ascii=True).encode()).digest()
