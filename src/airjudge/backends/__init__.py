"""How a judge is reached: one module a kind of server."""

__all__: list[str] = []
