"""Make a run of a batch's answers; a question without a usable one fails, and nothing is guessed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airjudge import scoring
from airjudge.batch.answers import Answers, Problem, read_answers
from airjudge.batch.plan import OpenedPlan, Plan, PlannedSample, signature_of
from airjudge.datasets.refusal import short
from airjudge.errors import AnswerMissing, EvaluationError, InputError
from airjudge.journal import Row
from airjudge.judge import Outcome, verdict_of
from airjudge.metrics import record
from airjudge.run import Origin, RunHeader, write_records
from airjudge.schema import Price, Record, Sample, Statement, Verdict

if TYPE_CHECKING:
    from pydantic import JsonValue


class BatchReport(Record):
    """What an import found: `n_verdicts` of `n_questions` have a usable answer; `models` wrote so many answers each.

    `problems` are of lines (unreadable_line, foreign_line, repeated_answer) and of questions (answer_missing,
    answers_differ, request_failed, reply_truncated, reply_refused, reply_runaway).
    """

    n_questions: int
    n_verdicts: int
    models: Mapping[str, int]
    problems: tuple[Problem, ...]


def import_batch(
    files: Sequence[Path], out: Path, *, plan: OpenedPlan, price: Price | None = None, overwrite: bool = False
) -> tuple[RunHeader, BatchReport]:
    """Make a run of the answers in some files.

    Args:
        files: All that the batch brought back, that of the errors too.
        out: The folder of the run.
        plan: What was asked: the key of the export, or the same data again.
        price: What the provider takes for a token in a batch, for the run's cost.
        overwrite: Whether to replace a run in the folder.

    Raises:
        InputError: If a file cannot be read, no line answers a question of the plan, or the folder holds a run.
        StorageFailed: If the run cannot be written.
    """
    answers = read_answers(files)
    work = _Import(answers, set())
    rows = [work.row(planned) for planned in plan.samples()]
    foreign = [(name, one.where) for name, one in answers.by_name.items() if name not in work.asked]
    places = {_place(name) for name in work.asked}
    for name, where in foreign:
        what = "which was asked in other words" if _place(name) in places else "which nobody asked"
        answers.problems.add("foreign_line", f"{where} answers {short(name)}, {what}")
    if len(foreign) == len(answers.by_name):
        told = [one.example for one in answers.problems.listed() if one.kind in {"unreadable_line", "foreign_line"}]
        msg = f"no line answers a question of this export ({'; '.join(told) or 'there is none'})"
        raise InputError(msg, "Name the key that was written with the batch: --for FILE.key")
    report = BatchReport(
        n_questions=len(work.asked),
        n_verdicts=work.n_verdicts,
        models=dict(sorted(answers.models.items())),
        problems=answers.problems.listed(),
    )
    return write_records(rows, out, _origin(plan.plan, answers, report, price=price), overwrite=overwrite), report


@dataclass(slots=True)
class _Import:
    """Turns planned samples into records by their answers."""

    answers: Answers
    asked: set[str]
    n_verdicts: int = 0

    def row(self, planned: PlannedSample) -> Row:
        """The row of a sample."""
        scored = planned.scored
        if planned.asked:
            outcomes = list(self._outcomes(planned))
            sample = Sample(id=scored.id, user_input="", reference="", retrieved_contexts=(), group=scored.group)
            statements = [Statement(id=one.id, text=one.text) for one in scored.statements]
            known = {"metadata": scored.metadata, "suspicions": scored.suspicions}
            scored = record(sample, statements, outcomes).model_copy(update=known)
        return Row(planned.place, scored, bytes.fromhex(planned.content) if planned.content else None)

    def _outcomes(self, planned: PlannedSample) -> Iterator[Outcome]:
        for verdict, name in zip(planned.scored.statements, planned.asked, strict=True):
            self.asked.add(name)
            answer = self.answers.by_name.get(name)
            ruling = AnswerMissing() if answer is None else answer.ruling
            if isinstance(ruling, EvaluationError):
                where = f"{answer.where}: " if answer else ""
                on = f"the statement {short(verdict.id)} of the sample {short(planned.scored.id)}"
                self.answers.problems.add(ruling.kind, f"{where}{on}: {ruling}")
                yield ruling
                continue
            self.n_verdicts += 1
            yield _verdict(verdict, *ruling)


def _verdict(unjudged: Verdict, label: bool, probability: float | None) -> Verdict:  # noqa: FBT001 -- a ruling
    """A verdict as a judge that is asked directly gives it."""
    averaged = None if probability is None else scoring.mean_probability([probability])
    return verdict_of(Statement(id=unjudged.id, text=unjudged.text), label=label, probability=averaged)


def _place(name: str) -> str:
    """The part of a question's name that says where it stands, without the digest of its words."""
    return name.rpartition("-")[0]


def _origin(plan: Plan, answers: Answers, report: BatchReport, *, price: Price | None) -> Origin:
    told: dict[str, JsonValue] = {
        **plan.settings.model_dump(mode="json"),
        "price": None if price is None else price.model_dump(mode="json"),
        "batch": report.model_dump(mode="json"),
    }
    named = "+".join(one for one in report.models if one not in {"", plan.model})
    decoding = signature_of(plan.model, plan.settings, answers_as=named or None).decoding
    return Origin(
        data=plan.data,
        data_sha256=plan.data_sha256,
        signature=plan.signature.model_copy(update={"decoding": decoding}),
        settings=told,
        mapping=plan.mapping,
        inputs=plan.inputs,
        usage=answers.usage,
    )
