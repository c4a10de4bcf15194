"""Judges that stay open for the life of the process, for callers of any thread and any event loop.

The doors need that: their callers score one sample at a time, from threads or from loops that come and go, and
do not say when they are done. Each judge lives on one event loop in a thread of its own; the servers that were
started for judges end with the process.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache
from typing import Any, Final, TypeVar

from airjudge.errors import InputError, ProfileError
from airjudge.judge import Judge, JudgeSettings, refuse_running_loop
from airjudge.profiles import load_profile, profiles
from airjudge.server import running_model

T = TypeVar("T")

_WHERE: Final = ("AIRJUDGE_BASE_URL", "AIRJUDGE_MODEL", "AIRJUDGE_API_KEY")
CLOSE_LIMIT_S: Final = 5.0
"""How long connections may take to close when the process ends."""


class ResidentJudge:
    """A judge that is opened by its first use and closed when the process ends."""

    def __init__(self, opening: Callable[[], AbstractContextManager[Judge]]) -> None:
        """Open nothing yet; a use that cannot open it raises, and the next one tries again."""
        self._opening, self._lock, self._held = opening, threading.Lock(), ExitStack()
        self._judge: Judge | None = None

    def call(self, use: Callable[[Judge], Coroutine[Any, Any, T]]) -> T:
        """Wait for what a coroutine makes of the open judge.

        Raises:
            AirjudgeError: If the judge cannot be used.
            RuntimeError: If called inside a running event loop, which it would block: await `acall` there.
        """
        refuse_running_loop("acall")
        return self._submitted(use)

    def wait(self, use: Callable[[Judge], Coroutine[Any, Any, T]]) -> T:
        """The same inside a running event loop too, which it blocks: for doors whose originals do so."""
        return self._submitted(use)

    async def acall(self, use: Callable[[Judge], Coroutine[Any, Any, T]]) -> T:
        """The same inside an event loop, which is not blocked meanwhile; cancelling it cancels the coroutine."""
        judge = await asyncio.to_thread(self._opened)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(use(judge), _loop()))

    def _submitted(self, use: Callable[[Judge], Coroutine[Any, Any, T]]) -> T:
        future = asyncio.run_coroutine_threadsafe(use(self._opened()), _loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # of a caller that was interrupted nothing is left behind in flight
            raise

    def _opened(self) -> Judge:
        with self._lock:
            if self._judge is None:
                with ExitStack() as undo:
                    judge = undo.enter_context(self._opening())
                    asyncio.run_coroutine_threadsafe(judge.__aenter__(), _loop()).result()
                    undo.callback(_closed, judge)
                    self._held, self._judge = undo.pop_all(), judge
                atexit.register(self.close)
            return self._judge

    def close(self) -> None:
        """Close it, and end the server that was started for it; the next use opens it again."""
        with self._lock:
            self._judge = None
            self._held.close()


def resident(model: str | Judge | None = None, *, settings: JudgeSettings | None = None) -> ResidentJudge:
    """The judge that a model names, one for all callers with equal settings.

    Args:
        model: A judge; or the name of a model that AIRJUDGE_BASE_URL serves or that `airjudge serve` runs here,
            or of a profile. None means the model that AIRJUDGE_BASE_URL and AIRJUDGE_MODEL name, else what
            `airjudge serve` runs here, else the default judge, which is started.
        settings: How it is asked; of a judge that is passed, its own.
    """
    if isinstance(model, Judge):
        return _of_judge(model)
    where = tuple(os.environ.get(name) for name in _WHERE)
    return _named(model, (settings or JudgeSettings()).model_dump_json(), where)


@cache
def _of_judge(judge: Judge) -> ResidentJudge:
    return ResidentJudge(lambda: nullcontext(judge))


@cache
def _named(model: str | None, settings: str, _where: tuple[str | None, ...]) -> ResidentJudge:
    """One judge for each name and settings, and for what the environment said when it was asked for."""
    return ResidentJudge(lambda: _found(model, JudgeSettings.model_validate_json(settings)))


def _found(model: str | None, settings: JudgeSettings) -> AbstractContextManager[Judge]:
    """The judge that a name stands for.

    Raises:
        InputError: If it stands for none, with those that there are.
    """
    base_url = os.environ.get("AIRJUDGE_BASE_URL")
    if model is None:
        return Judge.find(settings=settings)
    if base_url:
        key = os.environ.get("AIRJUDGE_API_KEY")
        return nullcontext(Judge.connect(base_url, model, api_key=key, settings=settings))
    if (server := running_model(model)) is not None:
        return nullcontext(Judge.of_server(server, settings))
    try:
        load_profile(model)
    except ProfileError as error:
        msg = f"no model {model!r} is served here, and no judge profile has that name"
        hint = (
            f"Profiles: {', '.join(one.id for one in profiles())}. Or serve one under this name: airjudge serve "
            f"--served-model-name {model}; or name its server in AIRJUDGE_BASE_URL."
        )
        raise InputError(msg, hint) from error
    return Judge.find(model, settings=settings)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all resident judges, in a thread that ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="airjudge", daemon=True).start()
    return loop


def _closed(judge: Judge) -> None:
    """Close a judge's connections; one that takes too long is left to the end of the process."""
    future = asyncio.run_coroutine_threadsafe(judge.__aexit__(None, None, None), _loop())
    try:
        future.result(CLOSE_LIMIT_S)
    except TimeoutError:
        future.cancel()
