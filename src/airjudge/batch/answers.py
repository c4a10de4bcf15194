"""The answers of a batch, in whatever order they came back: what each says, and which lines say nothing."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from airjudge import decoding
from airjudge.backends.refusal import read_refusal
from airjudge.backends.wire import ChatCompletion
from airjudge.datasets.files import Input
from airjudge.datasets.lines import JsonLines
from airjudge.datasets.refusal import Fields, Refused
from airjudge.datasets.rows import every
from airjudge.errors import AnswersDiffer, EvaluationError, RequestFailed
from airjudge.schema import Record, Usage

Ruling = tuple[bool, float | None]
"""A label and its probability where the answer carries logprobs."""


class Problem(Record):
    """What is wrong with some lines or questions of a batch: a kind, how many, and one of them."""

    kind: str
    n: int
    example: str


@dataclass(slots=True)
class Problems:
    """Counts what is wrong, and keeps the first of each kind."""

    _n: Counter[str] = field(default_factory=Counter)
    _examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Count one more."""
        self._n[kind] += 1
        self._examples.setdefault(kind, example)

    def listed(self) -> tuple[Problem, ...]:
        """All kinds, in the order in which they were met."""
        return tuple(Problem(kind=kind, n=n, example=self._examples[kind]) for kind, n in self._n.items())


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer rules, or why it does not; where it stands, as path:line."""

    ruling: Ruling | EvaluationError
    where: str


@dataclass(slots=True)
class Answers:
    """All answers of a batch by the name of their question; what they cost, and which models wrote them.

    An answer that rules takes the place of one that failed, as in a batch whose failed lines were sent again.
    """

    problems: Problems = field(default_factory=Problems)
    by_name: dict[str, Answer] = field(default_factory=dict)
    models: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    def take(self, name: str, answer: Answer) -> None:
        """Take an answer; of two that rule alike the first counts, and two that do not are none."""
        known = self.by_name.get(name)
        if known is None:
            self.by_name[name] = answer
            return
        self.problems.add("repeated_answer", f"{answer.where} answers what {known.where} answers")
        if isinstance(answer.ruling, EvaluationError) or isinstance(known.ruling, AnswersDiffer):
            return
        if isinstance(known.ruling, EvaluationError):
            self.by_name[name] = answer
        elif known.ruling[0] != answer.ruling[0]:
            self.by_name[name] = Answer(AnswersDiffer(), answer.where)


def read_answers(paths: Iterable[Path]) -> Answers:
    """Read the files that a batch brought back: answers and errors, in any order.

    Raises:
        InputError: If a file cannot be read.
    """
    answers = Answers()
    for path in paths:
        for where, fields in _lines(path, answers.problems):
            name = fields.get("custom_id")
            if not isinstance(name, str) or not {"response", "error"} & set(fields):
                missing = "no custom_id" if not isinstance(name, str) else "a question, for it has no response"
                answers.problems.add("unreadable_line", f"{where}: {missing}")
                continue
            answers.take(name, Answer(_ruling(fields, answers), where))
    return answers


def _lines(path: Path, problems: Problems) -> Iterator[tuple[str, Fields]]:
    """The objects of a file, each with where it stands."""
    if path.is_file() and not path.stat().st_size:  # nothing went wrong, or nothing went well
        return
    file = JsonLines(Input(str(path), path))
    file.columns()  # refuses what is no text of lines at all, with the next step
    for row in file.rows(every):
        where = f"{path}:{row.line}"
        try:
            yield where, row.read()
        except Refused as exc:
            problems.add("unreadable_line", f"{where}: {exc}")
        except RecursionError:
            problems.add("unreadable_line", f"{where}: nested too deeply")


def _ruling(fields: Fields, answers: Answers) -> Ruling | EvaluationError:
    """What a line rules; its cost is counted whatever it says."""
    response, error = fields.get("response"), fields.get("error")
    body, status = (response.get("body"), response.get("status_code")) if isinstance(response, dict) else (None, None)
    if error is not None or status != 200:
        told = read_refusal(json.dumps(body if error is None else error).encode()).words
        words = "".join(one if one.isprintable() else " " for one in told)
        return RequestFailed(f"HTTP {status}: {words}" if isinstance(status, int) else words, 1)
    try:
        reply = ChatCompletion.model_validate(body)
    except ValidationError:
        return RequestFailed("the answer is no chat completion", 1)
    completion = reply.completion()
    answers.usage += completion.usage
    answers.models[completion.model] += 1
    try:
        return decoding.read_verdict(decoding.VERDICT_OBJECT, completion)
    except EvaluationError as refused:
        return refused
