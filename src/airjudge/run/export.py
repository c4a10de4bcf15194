"""Exports of a run: made from its journal, each whole or not there."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Final, Literal

import numpy as np
from pydantic import JsonValue

from airjudge.calibration import abstains
from airjudge.errors import InputError
from airjudge.journal import Reader, failpoint, file_hash, written_whole
from airjudge.quoting import as_cell
from airjudge.run.folder import (
    EXPORTS,
    SAMPLES,
    SAMPLES_TABLE,
    STATEMENTS_TABLE,
    SUMMARY,
    band_of,
    opened_folder,
    sliced_by,
    state_of,
    write_state,
)
from airjudge.schema import ScoredSample, Summary, Verdict
from airjudge.summary import summarise

BOOTSTRAP_SEED: Final = 20_261_130
"""Intervals are the same for the same scores."""

Format = Literal["jsonl", "parquet", "csv"]
Table = Literal["samples", "statements"]
Row = Mapping[str, JsonValue]
Add = Callable[[int, ScoredSample], None]
"""Takes a sample and its place into a file."""
Rows = Callable[[int, ScoredSample], Iterator[Row]]
"""Gives a table's rows of a sample and its place."""

_BATCH: Final = 8192
_COLUMNS: Final[Mapping[Table, Mapping[str, str]]] = {
    "samples": {
        "place": "int64", "id": "string", "score": "float64", "status": "string", "error_kind": "string",
        "error_message": "string", "group": "string", "empty_contexts": "bool", "n_statements": "int32",
        "n_attributed": "int32", "metadata": "string", "reason": "string", "suspicions": "string",
        "n_contexts": "int32", "n_supporting": "int32", "chunk_precision": "float64", "average_precision": "float64",
        "reciprocal_rank": "float64", "n_items": "int32", "n_once": "int32", "n_split": "int32",
        "n_repeated": "int32", "n_invented": "int32", "n_missing": "int32", "coverage": "float64",
        "reply_error": "string",
    },
    "statements": {
        "place": "int64", "sample": "string", "number": "int32", "id": "string", "text": "string",
        "attributed": "bool", "probability": "float64", "reason": "string", "support_contexts": "string",
        "best_context": "int32", "support_probability": "float64", "n_parts": "int32",
    },
}  # fmt: skip


def export_all(out: Path, journal: Reader) -> dict[str, JsonValue]:
    """Write all exports of a run, read in one pass; give the summary and the hash of each file.

    Raises:
        StorageFailed: If one cannot be written; those before keep their names.
    """
    with ExitStack() as files:
        adds = [
            files.enter_context(_opened(out / SAMPLES, "jsonl", "samples")),
            files.enter_context(_opened(out / SAMPLES_TABLE, "parquet", "samples")),
            files.enter_context(_opened(out / STATEMENTS_TABLE, "parquet", "statements")),
        ]
        summary = summed_up(_passing(journal.scored(), adds), by=sliced_by(journal), band=band_of(journal))
    with written_whole(out / SUMMARY) as file:
        file.write(summary.model_dump_json(indent=2).encode() + b"\n")
    hashes: dict[str, JsonValue] = {name: file_hash(out / name) for name in EXPORTS}
    return {"summary": summary.model_dump(mode="json"), "exports": hashes}


def summed_up(
    samples: Iterable[ScoredSample], *, by: Sequence[str] = (), band: tuple[float, float] | None = None
) -> Summary:
    """The summary of a run's samples, sliced by columns and with an abstain band; the same for the same scores."""
    return summarise(samples, rng=np.random.default_rng(BOOTSTRAP_SEED), by=by, band=band)


def export_table(out: Path, fmt: Format, table: Table = "samples", *, target: Path | None = None) -> tuple[Path, int]:
    """Write one table of a run, finished or not, into `target` or under its name in the folder.

    Returns:
        The file, and the number of samples in it.

    Raises:
        InputError: If the folder holds no run.
        RunLocked: If a run writes into it, and no other `target` is named.
        StorageFailed: If the file cannot be written.
    """
    path = target or out / f"{table}.{fmt}"
    with Reader(out) as journal, ExitStack() as held:
        if target is None:
            held.enter_context(opened_folder(out, overwrite=False))
        add = held.enter_context(_opened(path, fmt, table))
        n_samples = sum(1 for _ in _passing(journal.scored(), [add]))
    return path, n_samples


def export_abstained(out: Path, fmt: Format, *, target: Path | None = None) -> tuple[Path, int]:
    """Write the verdicts that a run's calibration leaves to people, a row each, into `target` or into the folder.

    Returns:
        The file, and the number of verdicts in it.

    Raises:
        InputError: If the folder holds no run, or one without an abstain band.
        RunLocked: If a run writes into it, and no other `target` is named.
        StorageFailed: If the file cannot be written.
    """
    path, n_verdicts = target or out / f"abstained.{fmt}", 0
    with Reader(out) as journal, ExitStack() as held:
        band = band_of(journal)
        if band is None:
            msg = f"the run in {out} has no calibration with an abstain band"
            raise InputError(msg, "Set one: airjudge calibrate RUN --labels FILE --abstain LOW HIGH")

        def rows(place: int, sample: ScoredSample) -> Iterator[Row]:
            nonlocal n_verdicts
            for row, verdict in zip(_statement_rows(place, sample), sample.statements, strict=True):
                if abstains(verdict, band):
                    n_verdicts += 1
                    yield row

        if target is None:
            held.enter_context(opened_folder(out, overwrite=False))
        add = held.enter_context(_opened(path, fmt, "statements", rows=rows))
        for _ in _passing(journal.scored(), [add]):
            pass
    return path, n_verdicts


def remake_exports(out: Path) -> int:
    """Write all exports of a finished run again, and note their hashes; give the number of samples.

    Raises:
        InputError: If the folder holds no run, or an unfinished one.
        RunLocked: If a run writes into it.
        StorageFailed: If they cannot be written.
    """
    with Reader(out) as journal:
        if "finished" not in journal.header():
            msg = f"the run in {out} is not finished"
            raise InputError(msg, "Finish it by the command that began it, or export one table: --format jsonl")
        with opened_folder(out, overwrite=False) as store:
            finished = export_all(out, journal)
            store.put_header({"finished": finished})
            write_state(out, state_of(journal))
        return journal.totals().n_samples


def exports_stand(out: Path, journal: Reader, *, by: Sequence[str]) -> bool:
    """Say whether a run is finished, sliced by these columns, and its exports are as they were written."""
    finished = journal.header().get("finished")
    hashes = finished.get("exports") if isinstance(finished, dict) else None
    if not isinstance(hashes, dict) or sliced_by(journal) != list(by):
        return False
    return all(file_hash(out / name) == known for name, known in hashes.items())


def _passing(scored: Iterable[tuple[int, ScoredSample]], adds: Iterable[Add]) -> Iterator[ScoredSample]:
    """Samples, each written into all files on its way."""
    for place, sample in scored:
        for add in adds:
            add(place, sample)
        failpoint("during_export")
        yield sample


@contextmanager
def _opened(path: Path, fmt: Format, table: Table, *, rows: Rows | None = None) -> Iterator[Add]:
    """A file that takes samples, by all rows of a table or by some, and appears whole when the block ends."""
    with written_whole(path) as file, _WRITERS[fmt](file, table, rows or _ROWS[table]) as add:
        yield add


@contextmanager
def _json_lines(file: IO[bytes], table: Table, rows: Rows) -> Iterator[Add]:
    """Write a line a sample as it stands in the journal, or a line a statement."""

    def add(place: int, sample: ScoredSample) -> None:
        if table == "samples":
            file.write(sample.model_dump_json().encode() + b"\n")
        else:
            file.writelines(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in rows(place, sample))

    yield add


@contextmanager
def _comma_separated(file: IO[bytes], table: Table, rows: Rows) -> Iterator[Add]:
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    # With the line ends of RFC 4180; with others the writer of Python 3.11 leaves a bare "\r" in a text unquoted.
    writer = csv.DictWriter(text, _COLUMNS[table], lineterminator="\r\n")
    writer.writeheader()

    def add(place: int, sample: ScoredSample) -> None:
        for row in rows(place, sample):
            writer.writerow({name: as_cell(one) if isinstance(one, str) else one for name, one in row.items()})

    yield add
    text.detach()


@contextmanager
def _parquet(file: IO[bytes], table: Table, rows: Rows) -> Iterator[Add]:
    """Write a Parquet table in batches, so that memory does not grow with it."""
    import pyarrow as pa  # noqa: PLC0415 -- heavy, and wanted by exports alone
    import pyarrow.parquet as pq  # noqa: PLC0415

    schema = pa.schema(list(_COLUMNS[table].items()))
    waiting: list[Row] = []
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(waiting, schema=schema))
            waiting.clear()

        def add(place: int, sample: ScoredSample) -> None:
            waiting.extend(rows(place, sample))
            if len(waiting) >= _BATCH:
                flush()

        yield add
        flush()


def _sample_rows(place: int, sample: ScoredSample) -> Iterator[Row]:
    error = sample.error
    yield {
        "place": place,
        "id": sample.id,
        "score": sample.score,
        "status": sample.status,
        "error_kind": error.kind if error else None,
        "error_message": error.message if error else None,
        "group": sample.group,
        "empty_contexts": sample.empty_contexts,
        "n_statements": len(sample.statements),
        "n_attributed": sum(one.attributed is True for one in sample.statements),
        "metadata": json.dumps(dict(sample.metadata), ensure_ascii=False),
        "reason": sample.reason,
        "suspicions": json.dumps([one.model_dump() for one in sample.suspicions], ensure_ascii=False),
        **_worth_of(sample),
        **_account_of(sample),
    }


def _account_of(sample: ScoredSample) -> Row:
    """The columns of the account of a single call; none of them where none was made."""
    told: dict[str, JsonValue] = sample.echoes.model_dump(mode="json") if sample.echoes else {}
    columns = ("n_items", "n_once", "n_split", "n_repeated", "n_invented", "n_missing", "coverage")
    return {**{name: told.get(name) for name in columns}, "reply_error": told.get("error")}


def _worth_of(sample: ScoredSample) -> Row:
    """The columns of what the contexts are worth; none of them where nobody asked."""
    told: dict[str, JsonValue] = sample.chunks.model_dump(mode="json") if sample.chunks else {}
    columns = ("n_contexts", "n_supporting", "average_precision", "reciprocal_rank")
    return {**{name: told.get(name) for name in columns}, "chunk_precision": told.get("precision")}


def _statement_rows(place: int, sample: ScoredSample) -> Iterator[Row]:
    for number, verdict in enumerate(sample.statements):
        told = verdict.model_dump(exclude={"support"})
        yield {"place": place, "sample": sample.id, "number": number, **told, **_support_of(verdict)}


def _support_of(verdict: Verdict) -> Row:
    """The numbers of the contexts that support a statement alone, as `1;3`, and the most probable one of all asked."""
    best = verdict.most_probable
    return {
        "support_contexts": None
        if verdict.support is None
        else ";".join(str(one.context) for one in verdict.support if one.attributed),
        "best_context": best.context if best else None,
        "support_probability": best.probability if best else None,
    }


_ROWS: Final[Mapping[Table, Rows]] = {
    "samples": _sample_rows,
    "statements": _statement_rows,
}
_WRITERS: Final[Mapping[Format, Callable[[IO[bytes], Table, Rows], AbstractContextManager[Add]]]] = {
    "jsonl": _json_lines,
    "parquet": _parquet,
    "csv": _comma_separated,
}
