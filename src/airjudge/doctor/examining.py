"""The whole examination: this machine, the judge's weights, and its server if there is one."""

import os
from dataclasses import dataclass
from typing import Final

from airjudge.backends.vllm import Connection
from airjudge.doctor import installed, machine, served
from airjudge.doctor.findings import Finding
from airjudge.profiles import load_profile
from airjudge.schema import Record
from airjudge.server import running
from airjudge.weights import Progress, silent

NO_SERVER: Final = Finding(
    area="server",
    level="note",
    found="no server was looked at: none is named, and airjudge serve runs none here",
    consequence="enforcement and exposure are not known",
    fix="airjudge serve, or name one: airjudge doctor --base-url URL",
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is examined: a judge's profile, and a server of the user's if he names one."""

    profile: str
    connection: Connection | None = None
    model: str | None = None


class Examined(Record):
    """All findings, in the order in which they are read."""

    findings: tuple[Finding, ...]

    @property
    def n_serious(self) -> int:
        """How many of them keep private data from being trusted to this."""
        return sum(one.level == "serious" for one in self.findings)


async def examine(target: Target, on_progress: Progress = silent) -> Examined:
    """Look at everything; what is wrong is a finding, never an error.

    Raises:
        ProfileError: If there is no such profile.
        InputError: If the server's address is none, or one outside that was not allowed.
    """
    profile = load_profile(target.profile)
    here = (
        *installed.of_packages(),
        *machine.of_variables(os.environ),
        *machine.of_cache(),
        machine.of_weights(profile, on_progress),
        machine.of_disk(profile),
        machine.of_memory(profile),
        machine.of_clock(),
    )
    on_progress("looking at the server", 0, 0)
    return Examined(findings=(*here, *await _of_server(target)))


async def _of_server(target: Target) -> list[Finding]:
    if target.connection is not None:
        return await served.of_server(target.connection, target.model)
    server = running(target.profile)
    if server is None:
        return [NO_SERVER]
    connection = Connection(server.base_url, api_key=server.api_key)
    return await served.of_server(connection, server.model)
