"""Three toy protocols with planted bugs, written twice with equal logic: as nodes, and as asyncio tasks."""
