"""Synchronous calls beside event loops."""

import asyncio


def refuse_running_loop(instead: str) -> None:
    """Raise before a coroutine is made that nobody would await.

    Raises:
        RuntimeError: If called inside a running event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    msg = f"an event loop is running here: await {instead} instead"
    raise RuntimeError(msg)
