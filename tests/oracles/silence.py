"""Keeps the originals from phoning home: switches, folders of their own, and a watch over each connection.

An audit hook sees each connection and each look-up of a name that the interpreter makes, whichever library asks.
One that leads out of the machine is refused and noted. What a library does in C on its own (grpc) is not seen.
"""

import os
import sys
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path

SWITCHES = {
    "DO_NOT_TRACK": "true",
    "RAGAS_DO_NOT_TRACK": "true",
    "OPIK_TRACK_DISABLE": "true",
    "OPIK_SENTRY_ENABLE": "false",
    "OPIK_ANALYTICS_ENABLE": "false",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "LITELLM_TELEMETRY": "false",
    "OTEL_SDK_DISABLED": "true",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
"""What turns off telemetry, crash reports, looks for newer versions and downloads at run time."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy")

LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
HERE = {"", "localhost", "None", "0.0.0.0", "::1", "::"}


class ContactRefused(ConnectionRefusedError):
    """A connection or look-up that leads out of the machine; libraries take it for a missing network."""


class Watch:
    """Notes who is contacted besides this machine; hooks of the interpreter stay, so there is one a process."""

    def __init__(self, on_contact: Callable[[str], object] | None = None) -> None:
        """Watch nothing yet; each host that is tried is told, else kept for `take`."""
        self._seen: list[str] = []
        self._tell = on_contact or self._seen.append

    def start(self) -> None:
        """Watch from now on."""
        sys.addaudithook(self._heard)

    def take(self) -> list[str]:
        """Give the hosts that were tried since the last call, each once, in order."""
        seen = list(dict.fromkeys(self._seen))
        self._seen.clear()
        return seen

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        host = _host_of(event, arguments)
        if host is not None and not _is_here(host):
            self._tell(host)
            raise ContactRefused(host)


def silence(folder: Path, *, environment: MutableMapping[str, str] = os.environ) -> None:
    """Turn everything off, take proxies away, and point homes and caches into a folder."""
    environment.update(SWITCHES)
    for name in PROXIES:
        environment.pop(name, None)
        environment.pop(name.upper(), None)
    environment.update(_folders(folder))


def _folders(folder: Path) -> dict[str, str]:
    places = {
        "HOME": "",
        "XDG_CACHE_HOME": ".cache",
        "XDG_CONFIG_HOME": ".config",
        "XDG_DATA_HOME": ".local/share",
        "RAGAS_CACHE_HOME": "ragas",
        "HF_HOME": "huggingface",
        "LLAMA_INDEX_CACHE_DIR": "llama_index",
    }
    return {name: str(folder / place) for name, place in places.items()}


def _host_of(event: str, arguments: tuple[object, ...]) -> str | None:
    """Give the host that an event of the interpreter is about; None if it is about none."""
    if event in LOOKUPS:
        return _text(arguments[0])
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = arguments[1]
        return _text(address[0]) if isinstance(address, tuple) else None  # a path is a socket of this machine
    return None


def _text(host: object) -> str:
    return host.decode(errors="replace") if isinstance(host, bytes) else str(host)


def _is_here(host: str) -> bool:
    return host in HERE or host.startswith(("127.", "::ffff:127."))


def told(hosts: Iterable[str]) -> str:
    """Say who was tried."""
    return f"tried to contact {', '.join(hosts)}"
