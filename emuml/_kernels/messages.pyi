from collections.abc import Callable
from typing import Any

CODES: dict[str, int]

class Plan:
    name: str
    index: int
    freezes: bool

def configure(
    analysed: Callable[[type[Any]], tuple[str, list[tuple[str, str, Callable[[Any], bool] | None]], bool]],
    refuse: Callable[[Any], None],
    array: type[Any],
    deferred: type[Any],
    named: Callable[[Any], str],
) -> None: ...
def message_classes() -> list[tuple[str, int]]: ...
def check(message: Any) -> None: ...
def size_bytes(message: Any) -> int: ...
def freezes(message: Any) -> bool: ...
