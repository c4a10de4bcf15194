"""Runs for tests of comparisons, made by hand: a string of marks a sample, a mark a statement."""

from collections.abc import Mapping
from pathlib import Path

from airjudge.labels import Label, Labels
from airjudge.run import OpenedRun, RunState
from airjudge.schema import SampleError, ScoredSample, Signature, Status, Usage, Verdict
from airjudge.scoring import context_recall

VERDICTS = {"x": True, ".": False, "?": None}
Marks = Mapping[str, str]
"""By sample id: x attributed, . not attributed, ? failed."""


def opened(
    name: str,
    marks: Marks,
    *,
    probabilities: Mapping[str, tuple[float | None, ...]] | None = None,
    groups: Mapping[str, str] | None = None,
    columns: Mapping[str, Mapping[str, object]] | None = None,
    folder: Path = Path("runs-of-nobody"),
    **state: object,
) -> OpenedRun:
    """Make a run that is in memory alone; fields of its state by their names."""
    samples = tuple(
        scored(
            sample,
            said,
            probabilities=(probabilities or {}).get(sample),
            group=(groups or {}).get(sample),
            columns=(columns or {}).get(sample, {}),
        )
        for sample, said in marks.items()
    )
    return OpenedRun(name, folder / name, state_of(name, **state), samples)


def scored(
    sample: str,
    marks: str,
    *,
    probabilities: tuple[float | None, ...] | None = None,
    group: str | None = None,
    columns: Mapping[str, object] | None = None,
) -> ScoredSample:
    """Make the record of a sample whose statements are numbered from 1."""
    known = probabilities or (None,) * len(marks)
    verdicts = tuple(
        Verdict(id=str(n), text=f"{sample} says {n}.", attributed=VERDICTS[mark], probability=probability)
        for n, (mark, probability) in enumerate(zip(marks, known, strict=True), 1)
    )
    failed = "?" in marks
    score = None if failed else context_recall(verdicts)
    status: Status = "failed" if failed else "undefined" if score is None else "scored"
    return ScoredSample.model_validate(
        {
            "id": sample,
            "score": score,
            "status": status,
            "error": SampleError(kind="timeout", message="no reply") if failed else None,
            "statements": verdicts,
            "group": group,
            "metadata": columns or {},
        }
    )


def state_of(name: str, **fields: object) -> RunState:
    """Make the state of a finished run."""
    signature = Signature(
        judge=name, weights="unverified", method="pointwise", prompt="p", statements="given", decoding="d",
        enforcement="outlines", server="vllm-0.32.0", airjudge="0.1.0",
    )  # fmt: skip
    told: dict[str, object] = {
        "state": "finished",
        "data": "data.jsonl",
        "data_sha256": "0" * 64,
        "mapping": {},
        "signature": signature,
        "settings": {},
        "versions": {},
        "usage": Usage(requests=3, prompt_tokens=20, completion_tokens=3),
        "started": "2026-11-30T00:00:00Z",
        "seconds": 1.5,
        "starts": (),
        "n_taken_over": 0,
    }
    return RunState.model_validate(told | fields)


def labelled(
    marks: Marks,
    *,
    partial: Mapping[str, str] | None = None,
    votes: Mapping[str, tuple[str, ...]] | None = None,
    groups: Mapping[str, str] | None = None,
) -> Labels:
    """Make labels by statement number; a blank leaves one without label, `partial` marks those with an x."""
    return Labels(
        "people",
        {
            sample: tuple(
                Label(
                    sample=sample,
                    id=str(n),
                    attributed=VERDICTS[mark],
                    partial=(partial or {}).get(sample, "." * n)[n - 1] == "x",
                    votes=tuple(VERDICTS[vote] for vote in votes[sample][n - 1]) if votes else (),
                )
                for n, mark in enumerate(said, 1)
                if mark != " "
            )
            for sample, said in marks.items()
        },
        groups or {},
    )
