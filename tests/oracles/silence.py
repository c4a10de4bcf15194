"""Keeps the originals from phoning home by their own switches, and gives them folders of their own.

That nobody is contacted all the same, `tests.guard` sees to.
"""

import os
from collections.abc import MutableMapping
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
