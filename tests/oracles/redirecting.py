"""Puts airjudge's doors in the places of the originals: a plugin for pytest, under which their own tests run.

It is loaded by its bare name (`-p redirecting`), since those tests are a package called `tests` too. Those that
compare an old metric with a new one keep the old one original, and its model, the one with a synchronous client.
"""

from typing import Any

import openai
import ragas.llms.base
import ragas.metrics
import ragas.metrics.collections

from airjudge.compat import ragas as ours

_original_factory = ragas.llms.base.llm_factory


def _llm_factory(model: str, *arguments: Any, **options: Any) -> Any:
    kept = isinstance(options.get("client"), openai.OpenAI)
    return (_original_factory if kept else ours.llm_factory)(model, *arguments, **options)


def pytest_configure() -> None:
    """Redirect, before any of the tests is imported."""
    ragas.llms.base.llm_factory = _llm_factory
    ragas.metrics.MetricResult = ours.MetricResult
    ragas.metrics.collections.ContextRecall = ours.ContextRecall
