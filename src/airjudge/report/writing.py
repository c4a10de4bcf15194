"""A report from runs: read, joined, chosen, drawn, written whole."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import Field, JsonValue

from airjudge.compare import PEOPLE, Comparison
from airjudge.datasets import Source
from airjudge.errors import InputError
from airjudge.journal import written_whole
from airjudge.labels import Labels
from airjudge.report.choosing import Chosen, chosen
from airjudge.report.joining import JoinedSample, joined
from airjudge.report.judges import judges, shown
from airjudge.report.markup import Element, Node, element
from airjudge.report.overview import Summed, distribution, failures, headline, marked, slices, worst
from airjudge.report.page import GENERATOR, page
from airjudge.report.people import people
from airjudge.report.runcard import run_cards
from airjudge.report.samples import samples_data, why_told
from airjudge.report.seal import bindings, sealed
from airjudge.report.tables import note, section
from airjudge.report.texts import Texts, texts_in, texts_of
from airjudge.run import BOOTSTRAP_SEED, OpenedRun
from airjudge.run.folder import SAMPLES
from airjudge.schema import Record

_HEAD_BYTES: Final = 4096
_MARKS: Final = "✓ attributed, ✗ not attributed, – no verdict"


class ReportSettings(Record):
    """How a report is made: `samples` is the number inside for each reason; `overwrite` replaces any file."""

    samples: int = Field(default=500, ge=1)
    overwrite: bool = False


class Written(Record):
    """What was written: the file, its size, how many samples are inside, its seal, and what a reader must know."""

    path: Path
    n_bytes: int
    n_samples: int
    n_inside: int
    n_with_texts: int
    seal: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a report may show beside the runs: people's labels, the texts of a data set, a comparison of all of them."""

    labels: Labels | None = None
    data: Source | None = None
    comparison: Comparison | None = None


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that a report must not replace.

    Raises:
        InputError: If its folder is not there, or it is a folder, or a file that is no report of ours.
    """
    if path.is_dir() or not path.parent.is_dir():
        msg = f"{path} is a folder" if path.is_dir() else f"the folder {path.parent} does not exist"
        raise InputError(msg, "Name another file with -o.")
    if overwrite or not path.exists():
        return
    try:
        with path.open("rb") as file:
            ours = GENERATOR.encode() in file.read(_HEAD_BYTES)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}"
        raise InputError(msg, "Name another file with -o.") from error
    if not ours:
        msg = f"{path} is there, and is no report of ours"
        raise InputError(msg, "Name another file with -o, or pass --overwrite to replace it.")


def write_report(runs: Sequence[OpenedRun], path: Path, *, evidence: Evidence, settings: ReportSettings) -> Written:
    """Write a report of runs; an earlier report under that name is replaced when the new one is whole.

    Args:
        runs: At least one; the first one's order of samples is that of the report.
        path: The file.
        evidence: Labels, texts, and what comes of comparing.
        settings: How much goes in.

    Raises:
        InputError: If the file may not be replaced, or the named data set cannot be read.
        StorageFailed: If it cannot be written.
    """
    check_target(path, overwrite=settings.overwrite)
    samples = joined(runs, evidence.labels)
    inside = chosen(samples, settings.samples, rng=np.random.default_rng(BOOTSTRAP_SEED))
    wanted = frozenset(one.id for one in inside.samples)
    texts = texts_of(runs, wanted) if evidence.data is None else texts_in(evidence.data, runs, wanted)
    parts = _Parts(runs, samples, inside, texts, evidence, settings)
    page, seal = sealed(parts.page(path))
    with written_whole(path) as file:
        file.write(page.encode("utf-8"))
    notes = (*why_told(inside, settings.samples), *texts.notes)
    return Written(
        path=path,
        n_bytes=path.stat().st_size,
        n_samples=len(samples),
        n_inside=len(inside.samples),
        n_with_texts=len(texts.samples),
        seal=seal,
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """All that goes into one report."""

    runs: Sequence[OpenedRun]
    samples: Sequence[JoinedSample]
    inside: Chosen
    texts: Texts
    evidence: Evidence
    settings: ReportSettings

    def page(self, path: Path) -> str:
        names = [run.name for run in self.runs]
        summed = [Summed.of(run) for run in self.runs]
        sections = [
            headline(summed),
            distribution(summed),
            slices(summed),
            failures(summed),
            *self.compared(),
            worst(self.inside.samples, names),
            marked(self.inside.samples),
            self.drill_down(path),
            run_cards(summed),
        ]
        data: JsonValue = {
            "runs": [*names],
            "graded": [run.state.signature.is_graded for run in self.runs],
            "labels": None if self.evidence.labels is None else shown(PEOPLE),
            "samples": samples_data(self.inside, self.texts.samples),
        }
        sources = list(dict.fromkeys(run.state.data for run in self.runs))
        title = ", ".join(sources)
        kept = [one for one in sections if one is not None]
        return page(title, _subtitle(self.runs), kept, data=data, metas=bindings([run.state for run in self.runs]))

    def compared(self) -> list[Element | None]:
        """The parts on agreement, where there is more than one judge."""
        if self.evidence.comparison is None:
            return []
        return [judges(self.evidence.comparison, self.samples), people(self.evidence.comparison, self.samples)]

    def drill_down(self, path: Path) -> Element:
        """The place where the script draws the samples, with what is inside and where the others are."""
        told = element(
            "p", {"class": "lede"}, " ".join(why_told(self.inside, self.settings.samples)), *self._links(path)
        )
        script = element(
            "noscript", {}, note("The samples are drawn by this page's own script, which is switched off.")
        )
        notes = [note(text) for text in self.texts.notes]
        return section("samples", "Samples", told, *notes, self._legend(), script, element("div", {"id": "browser"}))

    def _legend(self) -> Element | None:
        """What the marks beside a sample mean; graded ones have none."""
        if all(run.state.signature.is_graded for run in self.runs):
            return None
        several = len(self.runs) > 1 or self.evidence.labels is not None
        whose = f", as {self.runs[0].name} rules" if len(self.runs) > 1 else ""
        differ = "; twice underlined where judges, or a judge and people, differ" if several else ""
        return element("p", {"class": "legend"}, f"A mark for each statement{whose}: {_MARKS}{differ}.")

    def _links(self, path: Path) -> list[Node]:
        """Where all samples are: a link where the report lies beside the run, else the path."""
        if not self.inside.n_left_out:
            return []
        return [part for run in self.runs for part in (" ", _file_of(run, path))]


def _file_of(run: OpenedRun, report: Path) -> Element:
    """Link a run's samples relative to the report, if both lie in one folder or the one is above the other."""
    file, beside = (run.folder / SAMPLES).resolve(), report.resolve().parent
    near = file.exists() and (beside in file.parents or file.parent.parent == beside.parent)
    if not near:
        return element("code", {"dir": "auto"}, str(file))
    href = Path(os.path.relpath(file, beside)).as_posix()
    return element("a", {"href": _quoted(href), "dir": "auto"}, f"{run.name}/{SAMPLES}")


def _quoted(path: str) -> str:
    """A relative path as an address."""
    kept = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")
    return "./" + "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in os.fsencode(path))


def _subtitle(runs: Sequence[OpenedRun]) -> str:
    if len(runs) == 1:
        return f"{runs[0].name} · judged by {runs[0].state.signature.judge}"
    return " · ".join(_with_judge(run.name, run.state.signature.judge) for run in runs)


def _with_judge(name: str, judge: str) -> str:
    return name if name == judge else f"{name} ({judge})"
