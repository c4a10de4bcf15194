"""Which line of a batch asks about which statement: made from a data set, or read back from the key of an export.

A line is named by the place of its sample, the number of the statement in it, and a digest of what is asked:
`aj-12-3-0f4c…`. So ids may hold any character and have any length while the name stays within the 64 that
providers take, and an answer to another question is told from one to this.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import JsonValue, ValidationError

from airjudge import prompts, scoring
from airjudge.backends.hosted import HostedForm
from airjudge.datasets import Source
from airjudge.datasets.files import Input, reading
from airjudge.errors import InputError
from airjudge.judge import ServerFacts
from airjudge.metrics import without_contexts
from airjudge.run import RunSettings, numbered_samples
from airjudge.run.asking import columns, content_digest
from airjudge.schema import (
    Question,
    Record,
    Sample,
    ScoredSample,
    Signature,
    Splitter,
    Statement,
    Verdict,
)
from airjudge.screening import screen
from airjudge.signature import Provenance, digest, make_signature
from airjudge.statements import split_statements
from airjudge.version import __version__


class BatchSettings(Record):
    """What is asked, and in which form: fields of a request mean what they mean in `HostedForm`.

    `limit` is the number of samples taken from the start of the data; `keep` and `by` are those of `RunSettings`.
    """

    method: Literal["pointwise"] = "pointwise"
    statements: Splitter = "given"
    limit: int | None = None
    left_out: tuple[Literal["response_format", "logprobs", "seed", "temperature"], ...] = ()
    length_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    thinking_tokens: int = 0
    keep: tuple[str, ...] = ()
    by: tuple[str, ...] = ()

    @property
    def form(self) -> HostedForm:
        """The form of a request."""
        return HostedForm(frozenset(self.left_out), self.length_field, self.thinking_tokens)


class Plan(Record):
    """The first line of a key: all that a run of the answers tells of itself."""

    airjudge_batch: Literal[1] = 1
    model: str
    data: str
    data_sha256: str
    mapping: Mapping[str, str]
    inputs: tuple[str, ...]
    settings: BatchSettings
    signature: Signature


class PlannedSample(Record):
    """A line of a key: a sample as it stands before its answers, and the names of the lines that ask about it.

    `asked` has one for each statement, in order, or none where nothing is asked: its record is made already.
    """

    place: int
    content: str | None
    scored: ScoredSample
    asked: tuple[str, ...]


class Totals(Record):
    """The last line of a key, by which a cut one is told."""

    n_samples: int
    n_questions: int


@dataclass(frozen=True, slots=True)
class OpenedPlan:
    """A plan and a way to go through its samples, in order."""

    plan: Plan
    samples: Callable[[], Iterator[PlannedSample]]


def opened_plan(source: Source, *, model: str, settings: BatchSettings) -> OpenedPlan:
    """The plan of a data set's questions.

    Raises:
        InputError: If the data set cannot be read.
    """
    plan = Plan(
        model=model,
        data=source.name,
        data_sha256=source.digest(),
        mapping=source.mapping,
        inputs=tuple(str(path) for path in source.paths),
        settings=settings,
        signature=signature_of(model, settings),
    )
    return OpenedPlan(plan, lambda: (planned for planned, _ in planned_samples(source, settings)))


def planned_samples(
    source: Source, settings: BatchSettings
) -> Iterator[tuple[PlannedSample, list[tuple[str, Question]]]]:
    """The samples of a data set, each with the named questions about it."""
    carried = RunSettings(keep=settings.keep, by=settings.by).carried
    source.check_carried(carried)
    for entry, sample in islice(numbered_samples(source), settings.limit):
        if isinstance(sample, ScoredSample):
            yield PlannedSample(place=entry.place, content=None, scored=sample, asked=()), []
            continue
        statements = split_statements(sample, settings.statements)
        scored, questions = _questions(entry.place, sample, statements)
        kept = {name: one for name, one in columns(sample).items() if name in carried}
        planned = PlannedSample(
            place=entry.place,
            content=content_digest(sample).hex(),
            scored=scored.model_copy(update={"metadata": kept}),
            asked=tuple(name for name, _ in questions),
        )
        yield planned, questions


def _questions(
    place: int, sample: Sample, statements: Iterable[Statement]
) -> tuple[ScoredSample, list[tuple[str, Question]]]:
    """The record that a sample has before its answers, and what is asked about it."""
    statements = tuple(statements)
    if not any(text.strip() for text in sample.retrieved_contexts):
        return without_contexts(sample, statements, zero_if_empty=True), []
    unjudged = tuple(Verdict(id=one.id, text=one.text, attributed=None) for one in statements)
    scored = ScoredSample(
        id=sample.id,
        score=None,
        status="undefined",
        statements=unjudged,
        group=sample.group,
        suspicions=screen(sample),
    )
    questions = [prompts.as_object(prompts.pointwise(sample, one)) for one in statements]
    return scored, [
        (_name(place, number, sample=sample, statement=one, question=question), question)
        for number, (one, question) in enumerate(zip(statements, questions, strict=True))
    ]


def _name(place: int, number: int, *, sample: Sample, statement: Statement, question: Question) -> str:
    asked: JsonValue = [[one.role, one.content] for one in question.messages]
    return f"aj-{place}-{number}-{digest([sample.id, statement.id, statement.text, asked])}"


def signature_of(model: str, settings: BatchSettings, *, answers_as: str | None = None) -> Signature:
    """The signature of a batch: that of the same judge asked directly, but for the way that it is reached.

    `answers_as` is what the model calls itself, where that is another name.
    """
    enforcement = "none" if "response_format" in settings.left_out else "json_schema"
    facts = ServerFacts(
        model=model,
        max_model_len=None,
        version=None,
        enforcement=enforcement,
        host="batch",
        answers_as=answers_as,
        left_out=settings.left_out,
        thinking_tokens=settings.thinking_tokens,
    )
    provenance = Provenance(
        judge=model, weights="unverified", enforcement=enforcement, server=facts.server, airjudge=__version__
    )
    return make_signature(
        provenance,
        settings.method,
        prompt=prompts.wording(settings.method, prompts.as_object),
        statements=settings.statements,
        decoding={**facts.decoding(), "threshold": scoring.THRESHOLD},
    )


def read_key(path: Path) -> OpenedPlan:
    """The plan that an export wrote.

    Raises:
        InputError: If the file cannot be read, or is no whole key.
    """
    with _reading(path) as lines:
        plan = _first_line(path, next(lines, b""))
    return OpenedPlan(plan, lambda: _samples_of_key(path))


@contextmanager
def _reading(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file.

    Raises:
        InputError: If it cannot be read.
    """
    with reading(Input(str(path), path)) as file:
        yield iter(file)


def _first_line(path: Path, line: bytes) -> Plan:
    try:
        return Plan.model_validate_json(line)
    except ValidationError as error:
        msg = f"{path} is no key of a batch export"
        raise InputError(msg, "Name the file that was written beside the batch, or DATA with --model.") from error


def _samples_of_key(path: Path) -> Iterator[PlannedSample]:
    """Samples of a key, whose last line tells whether all are there.

    Raises:
        InputError: If they are not, or a line is not one of ours.
    """
    n_samples = n_questions = 0
    with _reading(path) as lines:
        _first_line(path, next(lines, b""))
        for number, line in enumerate(lines, start=2):
            try:
                if "n_questions" in json.loads(line):
                    if Totals.model_validate_json(line) == Totals(n_samples=n_samples, n_questions=n_questions):
                        return
                    break
                planned = PlannedSample.model_validate_json(line)
            except (ValidationError, ValueError, TypeError) as error:
                msg = f"{path}:{number}: not a line of a key"
                raise InputError(msg, "It was cut or changed: copy it again.") from error
            n_samples, n_questions = n_samples + 1, n_questions + len(planned.asked)
            yield planned
    msg = f"{path} is not whole"
    raise InputError(msg, "It was cut or changed: copy it again.")
