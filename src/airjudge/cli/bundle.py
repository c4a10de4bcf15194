"""`airjudge bundle`: one folder that carries airjudge and its judges into a room without a network."""

import platform
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from airjudge.bundle import Wanted


class _Machine(StrEnum):
    x86_64 = "x86_64"
    aarch64 = "aarch64"


class _Python(StrEnum):
    v3_11 = "3.11"
    v3_12 = "3.12"
    v3_13 = "3.13"


def bundle(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder to make.")],
    *,
    judge: Annotated[
        list[str] | None, typer.Option(help="Judge profile to carry; repeat it. [default: the one for the device]")
    ] = None,
    gpu: Annotated[
        bool | None, typer.Option("--gpu/--cpu", help="What it is installed on. [default: as this machine]")
    ] = None,
    python: Annotated[_Python | None, typer.Option(help="Python there. [default: as here]")] = None,
    machine: Annotated[_Machine | None, typer.Option(help="Processor there. [default: as here]")] = None,
    judges_only: Annotated[
        bool, typer.Option("--judges-only", help="Judges without packages, for where airjudge is installed already.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Pack wheels, verified weights, hashes, licences, a bill of materials and install.sh into one folder.

    Run it where there is a network; on the other side ./install.sh needs Python and the folder alone.
    """
    from airjudge.bundle import make_bundle
    from airjudge.cli.render import stages

    wanted = _wanted(judge or [], gpu=gpu, python=python, machine=machine, packages=not judges_only)
    with stages() as told:
        made = make_bundle(wanted, out, told)
    if as_json:
        print(made.model_dump_json())
        return
    print(f"{made.folder}: {made.n_files} files, {made.n_bytes / 1e9:.2f} GB")
    print(f"SHA-256 of its SHA256SUMS: {made.sums_sha256}")
    print("Note that hash; on the other side compare it (sha256sum SHA256SUMS), then: ./install.sh")


def _wanted(
    judges: list[str], *, gpu: bool | None, python: _Python | None, machine: _Machine | None, packages: bool
) -> "Wanted":
    from airjudge.bundle.wanted import Wanted, this_python
    from airjudge.profiles import default_profile_name, this_machine

    device = "gpu" if (bool(this_machine().gpus) if gpu is None else gpu) else "cpu"
    return Wanted.model_validate(
        {
            "device": device,
            "judges": judges or [default_profile_name(device)],
            "python": python.value if python else this_python(),
            "machine": machine.value if machine else platform.machine(),
            "packages": packages,
        }
    )
