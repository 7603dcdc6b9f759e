from typing import Any

class Context:
    id: Any
    role: str
    incarnation: int
    now: float
