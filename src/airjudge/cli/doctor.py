"""`airjudge doctor`: whether this machine and a judge's server may be trusted with private data."""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from airjudge.doctor import Examined, Target

_MARKS = {"ok": "  ok     ", "note": "  note   ", "warning": "  WARNING", "serious": "  SERIOUS"}


def doctor(
    *,
    judge: Annotated[
        str | None, typer.Option(help="Judge profile to look at. [default: the one for this machine]")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="A server that runs already. [default: what airjudge serve runs here]")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask there.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds its key.")] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Contact an address outside this network; no data are sent.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look at versions, variables, folders, weights, room and clock here, and at what a server enforces and exposes.

    Each finding comes with what follows from it and the line that mends it. Exits with 1 if one is serious.
    """
    from airjudge.cli.render import stages
    from airjudge.doctor import examine

    target = _target(judge, base_url, model=model, api_key_env=api_key_env, allow_remote=allow_remote)
    with stages() as told:
        examined = asyncio.run(examine(target, told))
    if as_json:
        print(examined.model_dump_json())
    else:
        _print(examined)
    if examined.n_serious:
        raise typer.Exit(1)


def _target(
    judge: str | None, base_url: str | None, *, model: str | None, api_key_env: str | None, allow_remote: bool
) -> "Target":
    from airjudge.backends.vllm import Connection
    from airjudge.cli.judging import key_in
    from airjudge.doctor import Target
    from airjudge.profiles import default_profile_name, this_machine

    if base_url is None and (model or api_key_env or allow_remote):
        msg = "--model, --api-key-env and --allow-remote need --base-url"
        raise typer.BadParameter(msg)
    profile = judge or default_profile_name("gpu" if this_machine().gpus else "cpu")
    key = key_in(api_key_env)
    if base_url is None and (url := os.environ.get("AIRJUDGE_BASE_URL")):
        base_url, model, key = url, os.environ.get("AIRJUDGE_MODEL"), os.environ.get("AIRJUDGE_API_KEY")
    connection = None if base_url is None else Connection(base_url, api_key=key, allow_remote=allow_remote)
    return Target(profile, connection, model)


def _print(examined: "Examined") -> None:
    from airjudge.cli.render import printable

    area = ""
    for one in examined.findings:
        if one.area != area:
            area = one.area
            print(area)
        print(f"{_MARKS[one.level]}  {printable(one.found)}")
        if one.consequence:
            print(f"             so: {printable(one.consequence)}")
        if one.fix:
            print(f"            fix: {printable(one.fix)}")
    levels = [one.level for one in examined.findings]
    print(f"{len(levels)} looked at: {levels.count('serious')} serious, {levels.count('warning')} warnings")
