"""Contexts that exceed the judge: what `--long-contexts split` makes of them, beside a judge that reads them at once.

    python -m benchmarks.long.run               # the default judge, some ten minutes on two cores
    python -m benchmarks.long.run --table       # what was measured last; nothing is asked

The same samples by the same weights three times: on a server that has room for everything, and on one whose context
is so short that most contexts exceed it, once with `fail` and once with `split`. A context as short as that is no
use; it makes long ones of the usual ones, so that their verdicts are known. Tokens and requests are the server's own
counts, those of the proof of enforcement included.
"""

import argparse
import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import numpy as np
from pydantic import JsonValue

from airjudge import agreement
from airjudge.datasets.labels import read_labels
from airjudge.judge import Judge, JudgeSettings
from airjudge.labels import Labels
from airjudge.metrics import ContextRecall
from airjudge.run import OpenedRun, RunSettings, open_run, score_dataset
from airjudge.schema import Record
from benchmarks.agreement.methods import human_recall
from benchmarks.agreement.run import DATA
from benchmarks.efficiency.run import Target, counters
from benchmarks.peers.run import machine, vllm_version
from benchmarks.peers.serving import serving

RESULTS: Final = Path(__file__).parents[1] / "results" / "long.json"
Arm = Literal["at once", "fail", "split"]


class Row(Record):
    """One way of reading the contexts.

    `same` of the `n_verdicts` are those of the judge that reads everything at once; `n_in_parts` were read in parts.
    Error and balanced accuracy are against people: of samples' recall, and of verdicts.
    """

    arm: Arm
    max_model_len: int | None
    n_samples: int
    n_failed: int
    n_statements: int
    n_verdicts: int
    n_in_parts: int
    most_parts: int
    same: int
    mean_recall: float | None
    mean_absolute_error: float | None
    balanced_accuracy: float | None
    requests: int
    computed_tokens: int


class Measured(Record):
    """What the results file holds."""

    date: str
    machine: Mapping[str, JsonValue]
    vllm: str
    judge: str
    dataset: str
    first: int
    rows: tuple[Row, ...]


def row_of(arm: Arm, run: OpenedRun, whole: OpenedRun, *, labels: Labels, used: Mapping[str, float]) -> Row:
    """The figures of a run beside that of the judge which reads everything at once."""
    told = {(one.id, verdict.id): verdict for one in whole.samples for verdict in one.statements}
    verdicts = [(one.id, v) for one in run.samples for v in one.statements if v.attributed is not None]
    people = {(name, label.id): label.attributed for name, held in labels.by_sample.items() for label in held}
    known = [(people[name, one.id], one.attributed) for name, one in verdicts if people.get((name, one.id)) is not None]
    errors = [
        abs(one.score - human)
        for one in run.samples
        if one.score is not None and (human := human_recall(labels, one.id)) is not None
    ]
    said, judged = (np.array([pair[at] for pair in known], dtype=bool) for at in (0, 1))
    scores = [one.score for one in run.samples if one.score is not None]
    return Row(
        arm=arm,
        max_model_len=None,
        n_samples=len(run.samples),
        n_failed=sum(one.status == "failed" for one in run.samples),
        n_statements=sum(len(one.statements) for one in run.samples),
        n_verdicts=len(verdicts),
        n_in_parts=sum(one.n_parts is not None for _, one in verdicts),
        most_parts=max((one.n_parts or 1 for _, one in verdicts), default=1),
        same=sum(told[name, one.id].attributed == one.attributed for name, one in verdicts),
        mean_recall=float(np.mean(scores)) if scores else None,
        mean_absolute_error=float(np.mean(errors)) if errors else None,
        balanced_accuracy=agreement.balanced_accuracy(said, judged) if known else None,
        requests=round(used["vllm:request_success_total"]),
        computed_tokens=round(used["vllm:prompt_tokens_total"] - used["vllm:prompt_tokens_cached_total"]),
    )


def scored(asked: argparse.Namespace, target: Target, out: Path, *, arm: Arm) -> dict[str, float]:
    """Score the samples on a server; give what it counted meanwhile."""
    settings = JudgeSettings(
        profile=asked.judge, long_contexts="split" if arm == "split" else "fail", cache_salt=arm.replace(" ", "-")
    )
    judge = Judge.connect(target.base_url, target.model, api_key=target.api_key, settings=settings)
    before = asyncio.run(counters(target))
    data = DATA / f"{asked.set}.jsonl"
    asyncio.run(score_dataset(data, ContextRecall(judge), out, settings=RunSettings(limit=asked.first)))
    after = asyncio.run(counters(target))
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def measure(asked: argparse.Namespace) -> Measured:
    """Score three times on two servers, one after the other."""
    used: dict[Arm, dict[str, float]] = {}
    with TemporaryDirectory() as place:
        outs: dict[Arm, Path] = {arm: Path(place) / arm for arm in ("at once", "fail", "split")}
        lengths: dict[Arm, int | None] = {"at once": None, "fail": asked.max_model_len, "split": asked.max_model_len}
        with serving(asked.judge, "outlines", Path(place) / "long.log") as target:
            used["at once"] = scored(asked, target, outs["at once"], arm="at once")
        with serving(asked.judge, "outlines", Path(place) / "short.log", max_model_len=asked.max_model_len) as target:
            for arm in ("fail", "split"):
                used[arm] = scored(asked, target, outs[arm], arm=arm)
        labels, whole = read_labels(DATA / f"{asked.set}.jsonl"), open_run(outs["at once"])
        rows = [
            row_of(arm, open_run(out), whole, labels=labels, used=used[arm]).model_copy(
                update={"max_model_len": lengths[arm]}
            )
            for arm, out in outs.items()
        ]
    return Measured(
        date=datetime.now(UTC).date().isoformat(),
        machine=machine(),
        vllm=vllm_version(),
        judge=asked.judge,
        dataset=asked.set,
        first=asked.first,
        rows=tuple(rows),
    )


def table(measured: Measured) -> Iterator[str]:
    """The Markdown table."""
    yield (
        "| contexts | longest prompt | failed samples | verdicts | read in parts | same verdict | recall | error "
        "| balanced accuracy | requests | computed tokens |"
    )
    yield f"|{'---|' * 11}"
    for one in measured.rows:
        parts = f"{one.n_in_parts} (at most {one.most_parts})" if one.n_in_parts else "0"
        yield (
            f"| {one.arm} | {one.max_model_len or 'as served'} | {one.n_failed} of {one.n_samples} "
            f"| {one.n_verdicts} of {one.n_statements} | {parts} | {one.same} of {one.n_verdicts} "
            f"| {_number(one.mean_recall)} | {_number(one.mean_absolute_error)} | {_number(one.balanced_accuracy)} "
            f"| {one.requests:,} | {one.computed_tokens:,} |"
        )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--judge", default="qwen2.5-coder-1.5b", help="profile to serve (%(default)s)")
    made.add_argument("--set", default="factcheck_bench_responses", help="a labelled set (%(default)s)")
    made.add_argument("--first", type=int, default=6, metavar="N", help="its first N samples (%(default)s)")
    made.add_argument("--max-model-len", type=int, default=320, help="of the short server (%(default)s)")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; ask nothing")
    return made


def main() -> None:
    """Measure, keep it, and print the table."""
    asked = parser().parse_args()
    if not asked.table:
        measured = measure(asked)
        asked.results.parent.mkdir(parents=True, exist_ok=True)
        asked.results.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(Measured.model_validate_json(asked.results.read_bytes()))))


if __name__ == "__main__":
    main()
