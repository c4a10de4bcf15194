"""Hold a run against itself: every score against its verdicts, every file against its hash."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from airjudge import scoring
from airjudge.chunks import ranked
from airjudge.decoding import STEPS
from airjudge.journal import Reader, file_hash
from airjudge.run.export import summed_up
from airjudge.run.folder import RUN, SAMPLES, RunHeader, RunState, band_of, sliced_by, state_of
from airjudge.schema import Chunks, Made, Record, ScoredSample, Statement, Summary, Verdict


class Verified(Record):
    """What was looked at, and what does not hold; a sound run has no findings."""

    state: str
    n_samples: int
    n_statements: int
    findings: tuple[str, ...]


class _Audit:
    """Looks at each sample on its way into the summary."""

    def __init__(self, state: RunState) -> None:
        self.findings: list[str] = []
        self.is_finished = isinstance(state, RunHeader)
        self.threshold, self.is_graded = state.threshold, state.signature.is_graded
        self.in_one_call, self.evidence = state.signature.method == "ragas", state.settings.get("evidence") is True
        self.n_samples = self.n_statements = self.next_place = 0
        self.lines = hashlib.sha256()

    def through(self, journal: Reader) -> Iterator[ScoredSample]:
        for place, sample in journal.scored():
            found = list(wrong_grade(sample) if self.is_graded else wrong(sample, self.threshold))
            if sample.claims is not None and journal.made(place) != _made_of(sample):
                found.append("its statements are not those that were made")
            found += wrong_account(sample, in_one_call=self.in_one_call)
            found += wrong_support(sample, evidence=self.evidence)
            self.findings += [f"sample {sample.id!r} at place {place}: {what}" for what in found]
            if place != self.next_place and self.is_finished:
                self.findings.append(f"no record of the places {self.next_place} to {place - 1}")
            self.lines.update(sample.model_dump_json().encode() + b"\n")
            self.n_samples, self.next_place = self.n_samples + 1, place + 1
            self.n_statements += len(sample.statements)
            yield sample


def verify_run(out: Path) -> Verified:
    """Recompute each score and the summary from the verdicts, and check the journal and all hashes.

    Raises:
        InputError: If the folder holds no run.
        StorageFailed: If its journal cannot be read at all.
    """
    with Reader(out) as journal:
        damage = [f"the journal is damaged: {line}" for line in journal.damage()]
        state = state_of(journal)
        audit = _Audit(state)
        summary = summed_up(audit.through(journal), by=sliced_by(journal), band=band_of(journal))
    findings = damage + audit.findings
    if isinstance(state, RunHeader):
        findings += _of_exports(out, state, summary=summary, lines=audit.lines.hexdigest())
    return Verified(
        state=state.state, n_samples=audit.n_samples, n_statements=audit.n_statements, findings=tuple(findings)
    )


def _of_exports(out: Path, state: RunHeader, *, summary: Summary, lines: str) -> Iterator[str]:
    """What does not hold of a finished run's files."""
    if summary != state.summary:
        yield "the summary is not that of the verdicts"
    if lines != state.exports.get(SAMPLES):
        yield f"{SAMPLES} was not written from these verdicts"
    for name, known in state.exports.items():
        found = file_hash(out / name)
        if found != known:
            yield f"{name} is missing" if found is None else f"{name} was changed after it was written"
    try:
        told = RunState.model_validate_json((out / RUN).read_bytes())
    except (OSError, ValueError):
        yield f"{RUN} cannot be read"
    else:
        if told != RunState.model_validate(state.model_dump()):
            yield f"{RUN} does not tell what the journal tells"


def wrong(sample: ScoredSample, threshold: float) -> Iterator[str]:
    """What of a record does not follow from its verdicts, where they are made by a threshold."""
    unjudged = sum(one.attributed is None for one in sample.statements)
    if sample.status == "failed":
        if sample.score is not None or sample.error is None:
            yield "it is failed, and has a score or no error"
        if sample.statements and not unjudged:
            yield "it is failed, and each of its statements has a verdict"
    elif unjudged or sample.error is not None:
        yield f"it is {sample.status}, and {unjudged} of its statements have no verdict"
    else:
        recall = scoring.context_recall(sample.statements)
        if sample.score != recall or (sample.status == "undefined") != (recall is None):
            yield f"its verdicts give {recall}, its record says {sample.score}"
    for one in sample.statements:
        if _torn(one, threshold):
            yield f"statement {one.id!r} is not what its probability says"


def wrong_grade(sample: ScoredSample) -> Iterator[str]:
    """What of a graded record cannot be: a score that is no step, or statements, which nobody ruled on."""
    if sample.statements:
        yield "it is graded, and has statements"
    if sample.status == "scored" and (sample.score not in STEPS or sample.error is not None):
        yield f"it is scored, and {sample.score} is no grade or there is an error"
    if sample.status == "failed" and (sample.score is not None or sample.error is None):
        yield "it is failed, and has a score or no error"
    if sample.status == "undefined" or (sample.empty_contexts and sample.score):
        yield f"it is {sample.status}, and cannot be"


def wrong_account(sample: ScoredSample, *, in_one_call: bool) -> Iterator[str]:
    """What of the account of a single call does not fit the sample's statements, or the method of its run."""
    told = sample.echoes
    if told is None:
        if in_one_call and sample.status == "scored" and not sample.empty_contexts:
            yield "there is no account of its single call"
        return
    if not in_one_call:
        yield "it has the account of a single call, and none was to be made"
    n_statements, n_told = len(sample.statements), told.n_statements - told.n_missing
    if told.n_statements != n_statements:
        yield f"the account of its single call is of {told.n_statements} statements, it has {n_statements}"
    if told.n_items - told.n_invented < told.n_once + 2 * (told.n_split + told.n_repeated):
        yield "the account of its single call has fewer items than statements that they tell"
    if told.coverage != (n_told / told.n_statements if told.n_statements else None):
        yield f"the account of its single call gives another coverage than {told.coverage}"


def wrong_support(sample: ScoredSample, *, evidence: bool) -> Iterator[str]:
    """What of the contexts' support does not fit the verdicts, the contexts, or what the run was to ask."""
    told = sample.chunks
    if (told is not None) != (evidence and sample.status == "scored"):
        yield (
            "what its contexts are worth is missing" if told is None else "it says what its contexts are worth unasked"
        )
    for one in sample.statements:
        if one.support is not None and not (evidence and one.attributed):
            yield f"statement {one.id!r} has a support, and none was to be asked"
        elif one.support is None and evidence and one.attributed:
            yield f"statement {one.id!r} has no support"
        elif one.support is not None and not _holds_together(one, told):
            yield f"the support of statement {one.id!r} cannot be"
    if told is not None and told != ranked(sample.statements, n_contexts=told.n_contexts, blank=told.blank):
        yield "what its contexts are worth does not follow from the supports of its statements"


def _holds_together(verdict: Verdict, chunks: Chunks | None) -> bool:
    """Whether a support has an entry each of contexts that there are, ruled on by its probability.

    A lone entry has the verdict's own, whatever the threshold.
    """
    entries = verdict.support or ()
    numbers = [one.context for one in entries]
    known = range(1, chunks.n_contexts + 1) if chunks else numbers
    if not numbers or numbers != sorted(set(numbers)) or not all(one in known for one in numbers):
        return False
    if chunks and set(numbers) & set(chunks.blank):
        return False
    if len(entries) == 1:
        return entries[0].attributed is True and entries[0].probability == verdict.probability
    ruled = [one for one in entries if one.probability is not None]
    return all(one.attributed == (one.probability >= scoring.THRESHOLD) for one in ruled if one.probability is not None)


def _made_of(sample: ScoredSample) -> Made:
    """The statements of a record, as they were made before they were judged."""
    statements = tuple(Statement(id=one.id, text=one.text) for one in sample.statements)
    return Made(statements=statements, claims=sample.claims)


def _torn(verdict: Verdict, threshold: float) -> bool:
    """Whether a verdict and its probability contradict each other."""
    if verdict.probability is None or verdict.attributed is None:
        return False
    return verdict.attributed != (verdict.probability >= threshold)
