from collections.abc import Callable
from typing import Any

class Durations:
    def __init__(self, fill: Callable[..., None], empty: Callable[[int], Any], size: int) -> None: ...
