"""`airjudge serve`: a judge's vLLM on this machine, until somebody ends it."""

import json
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Never

import typer

if TYPE_CHECKING:
    from airjudge.server import Server

PARENT_POLL_S = 0.5


def serve(
    name: Annotated[
        str | None, typer.Argument(help="Judge profile; see: airjudge models list. [default: one for this machine]")
    ] = None,
    *,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port on 127.0.0.1. [default: a free one]")] = None,
    served_model_name: Annotated[
        str | None, typer.Option(metavar="ALIAS", help="Model name to ask for. [default: the profile's id]")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (base_url, model, api_key) once it is ready.")
    ] = False,
) -> None:
    """Run a judge on this machine: vLLM on loopback, its replies constrained by outlines.

    It runs until Ctrl-C, SIGTERM, or the end of the process that started it.
    """
    from airjudge import server
    from airjudge.cli.render import stages
    from airjudge.profiles import default_profile_name, this_machine

    _end_on_signals(130)
    _end_with_parent()
    judge = name or default_profile_name("gpu" if this_machine().gpus else "cpu")
    with ExitStack() as until_the_end:
        with stages() as told:
            running = until_the_end.enter_context(
                server.serve(judge, port=port, alias=served_model_name, register=True, on_progress=told)
            )
        _end_on_signals(0)
        if as_json:
            shown = running.model_dump(include={"base_url", "model", "api_key"})
            print(json.dumps(shown), flush=True)
        else:
            print(_how_to_use(running), flush=True)
        server.watch(running)


def _end_on_signals(code: int) -> None:
    """Leave in order, by way of every open block, when somebody ends us."""

    def leave(_number: int, _frame: FrameType | None) -> Never:
        sys.exit(code)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


def _end_with_parent() -> None:
    """End as after SIGTERM when the process that started us is gone."""
    parent = os.getppid()

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _how_to_use(running: "Server") -> str:
    note = f"note: {running.note}\n\n" if running.note else ""
    return f"""{note}{running.profile} is ready; Ctrl-C ends it.

  base URL  {running.base_url}
  model     {running.model}
  API key   {running.api_key}
  log       {running.log}

Your own airjudge commands find it by themselves:

  airjudge score DATA.jsonl --judge {running.profile} --out runs/first

For another user, or a program that uses the package:

  export AIRJUDGE_BASE_URL={running.base_url}
  export AIRJUDGE_MODEL={running.model}
  export AIRJUDGE_API_KEY={running.api_key}

For programs that speak to OpenAI:

  export OPENAI_BASE_URL={running.base_url}
  export OPENAI_API_KEY={running.api_key}
  curl "$OPENAI_BASE_URL/models" -H "Authorization: Bearer $OPENAI_API_KEY"
"""
