"""The scripts of the pages as they were before the change: the originals, on replies that fit."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.oracles.replaying import Replay
from tests.pages import PAGES, Page, in_order, printed, told

REPLIES: Mapping[str, list[object]] = {
    "ragas": [
        {
            "classifications": [
                {"statement": "The ferry departs at six.", "reason": "said", "attributed": 1},
                {"statement": "Whales sing loudly.", "reason": "not said", "attributed": 0},
            ]
        }
    ],
    "opik": [{"context_recall_score": 0.7, "reason": "Paris is not in the context."}],
    "deepeval": [
        {"verdicts": [{"verdict": "yes", "reason": "node 1"}, {"verdict": "no", "reason": "none"}]},
        {"reason": "One of two."},
    ],
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_script_that_keeps_the_original_runs_on_our_judge(page: Page, replay: Replay, tmp_path: Path) -> None:
    (snippet,) = page.mixed()

    def fitting(body: Mapping[str, object]) -> str:
        """The reply that has the fields of the schema asked for: our judge warms each schema up first."""
        asked = json.dumps(body["response_format"])
        return next(one for one in map(json.dumps, REPLIES[page.name]) if str(next(iter(json.loads(one)))) in asked)

    replay.replies = fitting
    lines = printed(snippet, tmp_path, replay.environment)
    assert lines
    assert in_order(told(snippet), lines), (told(snippet), lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_script_before_the_change_runs_and_prints_what_it_says(page: Page, replay: Replay, tmp_path: Path) -> None:
    replay.stub.config.other_models = ("gpt-4o-mini",)
    snippets = page.snippets(ours=False)
    assert snippets
    for snippet in snippets:
        replay.replies = [json.dumps(one) for one in REPLIES[page.name]]
        lines = printed(snippet, tmp_path, replay.environment)
        assert lines
        assert in_order(told(snippet), lines), (told(snippet), lines)
