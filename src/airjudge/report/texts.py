"""Questions, contexts and references of the samples in a report, read again from where a run's input lay.

A run keeps verdicts, not texts. Its input is read once more, as a stream, if it still has the hash that the run
noted; or the file that the user names, by the samples' ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airjudge.datasets import Source, open_source
from airjudge.errors import InputError
from airjudge.journal import Reader
from airjudge.run import OpenedRun
from airjudge.schema import Sample


@dataclass(frozen=True, slots=True)
class Texts:
    """Samples by id, as far as they were found, and sentences that say where they come from or why they are missing."""

    samples: Mapping[str, Sample] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def texts_of(runs: Sequence[OpenedRun], wanted: frozenset[str]) -> Texts:
    """Texts of the samples with these ids, from the inputs of the runs; the first run that has one is read.

    An input that went away or was changed is told in a note, not raised.
    """
    found: dict[str, Sample] = {}
    notes: list[str] = []
    read: set[str] = set()
    for run in runs:
        missing = wanted - found.keys()
        if not missing or run.state.data_sha256 in read:
            continue
        try:
            found |= _of_run(run, missing)
            read.add(run.state.data_sha256)
        except InputError as error:
            notes.append(f"No texts from the input of {run.name}: {error}. {error.hint}".strip())
    return Texts(found, tuple(notes) if len(found) < len(wanted) else ())


def texts_in(source: Source, runs: Sequence[OpenedRun], wanted: frozenset[str]) -> Texts:
    """Texts of the samples with these ids, from a file that the user names.

    Raises:
        InputError: If it cannot be read.
    """
    samples = (entry.value for entry in source.entries(lambda _place: False))
    found: dict[str, Sample] = {}
    for sample in samples:
        if isinstance(sample, Sample) and sample.id in wanted:
            found.setdefault(sample.id, sample)
    digest = source.digest()
    notes = [] if any(run.state.data_sha256 == digest for run in runs) else [_OTHER_BYTES.format(source.name)]
    if len(found) < len(wanted):
        notes.append(f"{source.name} has no texts for {len(wanted) - len(found)} of the {len(wanted)} samples shown.")
    return Texts(found, tuple(notes))


_OTHER_BYTES = "Texts come from {}, whose bytes are not those that the runs read; they are matched by the sample's id."


def _of_run(run: OpenedRun, wanted: frozenset[str]) -> dict[str, Sample]:
    """Texts of a run's samples, by their places; rows at other places are not parsed.

    Raises:
        InputError: If the input cannot be read, or is another one now.
    """
    source = _input_of(run)
    with Reader(run.folder) as journal:
        ids = {place: name for place, name in journal.ids() if name in wanted}
    found: dict[str, Sample] = {}
    for entry in source.entries(lambda place: place not in ids):
        if isinstance(entry.value, Sample):
            found.setdefault(ids[entry.place], entry.value)
    return found


def _input_of(run: OpenedRun) -> Source:
    state = run.state
    if not state.inputs:
        msg = "the run did not note where its input lay"
        raise InputError(msg, HINT)
    gone = [path for path in state.inputs if not Path(path).exists()]
    if gone:
        msg = f"{gone[0]} is not there any more"
        raise InputError(msg, HINT)
    # What the run required, it found; a response is read where it was graded.
    source = open_source(
        state.inputs, mapping=state.mapping, required=("response",) if state.signature.is_graded else ()
    )
    if source.digest() != state.data_sha256:
        msg = f"{state.data} has changed since the run read it"
        raise InputError(msg, HINT)
    return source


HINT = "Name the data set with --data to see them."
