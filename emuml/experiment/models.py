"""Models of the declarations, made from their dataclasses, so that no rule of theirs is written twice.

Plain fields are checked here with their bounds; declarations in them are checked on their own. Nothing else of the
package knows pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from emuml.experiment.hints import field_hints, plain


class Refused(NamedTuple):
    """A field that a model refuses, and which item of it if it is a list and only that one is wrong."""

    name: str
    is_missing: bool
    item: int | None


@cache
def fields_of(cls: type) -> dict[str, Field[Any]]:
    """Return the fields that a dataclass is made from, by name."""
    return {field.name: field for field in fields(cls) if field.init}


def refused(cls: type, values: Mapping[str, Any]) -> list[Refused]:
    """Return what a class has against values of its fields, each field once."""
    try:
        _model(cls).model_validate({f"{name}_": value for name, value in values.items()})
    except ValidationError as error:
        found: dict[str, Refused] = {}
        for item in error.errors():
            name = str(item["loc"][0])[:-1]
            index = next((part for part in item["loc"][1:] if isinstance(part, int)), None)
            is_missing = item["type"] == "missing" and len(item["loc"]) == 1  # else an item of a list is
            found.setdefault(name, Refused(name, is_missing, index))
        return list(found.values())
    return []


@cache
def _model(cls: type) -> type[BaseModel]:
    members: dict[str, Any] = {}
    for name, field in fields_of(cls).items():
        required = field.default is MISSING and field.default_factory is MISSING
        # A field may be called like a method of models, hence the underscore.
        members[f"{name}_"] = (plain(field_hints(cls)[name]), ... if required else None)
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(cls.__name__, __config__=config, **members)
