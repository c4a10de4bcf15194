"""How many attacks are marked by `airjudge.screening`, and how many samples that mean no harm.

    python -m benchmarks.hostile.screening             # some seconds; no judge is asked
    python -m benchmarks.hostile.screening --table     # what was measured last

A text of `attacks` counts as marked if it is as a context of its own, whichever verdict it asks for. Places count the
attempts of `run.py`, each a sample. Labelled data mean no harm: a mark on one of their samples is a false one. The
figures of the first rule, which was written before its author had read an attack, are kept beside those of today.
"""

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from airjudge.datasets import open_source
from airjudge.schema import Record, Sample, Statement
from airjudge.screening import screen
from airjudge.version import __version__
from benchmarks.hostile.attacks import BREAKING, STEERING, Attack
from benchmarks.hostile.run import PLACES, Attempt, attempts
from benchmarks.hostile.run import RESULTS as STEERED
from benchmarks.hostile.run import Results as Steered

DATA: Final = Path(os.environ.get("AIRJUDGE_DATA", "../shared/data"))
RESULTS: Final = Path(__file__).parents[1] / "results" / "screening.json"
RULES: Final = ("first", "tuned")


class Share(Record):
    """How many are marked, of how many."""

    marked: int
    n: int


class Figures(Record):
    """What one rule marks.

    `steered_marked` are the attempts that got their verdict from the judge (results/hostile.json) on samples that are
    marked; `missed` names attacks that are not; `false_marks` lists every mark on labelled data.
    """

    date: str
    airjudge: str
    kinds: dict[str, Share]
    languages: dict[str, Share]
    steering: Share
    breaking: Share
    places: dict[str, Share]
    steered_marked: Share
    labelled: dict[str, Share]
    missed: tuple[str, ...]
    false_marks: tuple[str, ...]


class Results(Record):
    """Figures by rule: the first one, and the one that was then tuned on the same texts."""

    rules: dict[str, Figures]


def is_marked(attack: Attack) -> bool:
    """Whether a text is marked as a context, whichever verdict it asks for."""
    verdicts = (0, 1) if attack.only is None else (attack.only,)
    return all(screen(sample_of((attack.asking_for(wrong),), "It is here.")) for wrong in verdicts)


def sample_of(contexts: Sequence[str], statement: str) -> Sample:
    """A sample with these contexts and one statement."""
    return Sample(
        id="1",
        user_input="",
        reference="",
        retrieved_contexts=tuple(contexts),
        statements=(Statement(id="1", text=statement),),
    )


def measured() -> Figures:
    """What the rule of this version marks."""
    tried = {f"{one.attack.name} {one.place} {one.wrong}": one for one in attempts()}
    steered = Steered.model_validate_json(STEERED.read_bytes()).flipped
    samples = {path.stem: samples_in(path) for path in sorted(DATA.glob("*.jsonl"))}
    false = {name: [(one.id, mark) for one in held for mark in screen(one)] for name, held in samples.items()}
    return Figures(
        date=datetime.now(UTC).date().isoformat(),
        airjudge=__version__,
        kinds=by(STEERING, key="kind"),
        languages=by(STEERING, key="language"),
        steering=share(map(is_marked, STEERING)),
        breaking=share(map(is_marked, BREAKING)),
        places={place: share(marks_of(one) for one in tried.values() if one.place == place) for place in PLACES},
        steered_marked=share(marks_of(tried[name]) for name in steered),
        labelled={
            name: Share(marked=len({one for one, _ in false[name]}), n=len(held)) for name, held in samples.items()
        },
        missed=tuple(one.name for one in STEERING if not is_marked(one)),
        false_marks=tuple(
            f"{name} {one}: {mark.kind} in {mark.place}" for name, marks in false.items() for one, mark in marks
        ),
    )


def marks_of(attempt: Attempt) -> bool:
    """Whether the sample of an attempt is marked."""
    return bool(screen(sample_of(attempt.contexts, attempt.statement)))


def samples_in(path: Path) -> list[Sample]:
    """All samples of a file of labelled data."""
    entries = open_source([str(path)]).entries(lambda _place: False)
    return [one.value for one in entries if isinstance(one.value, Sample)]


def by(attacks: Sequence[Attack], *, key: str) -> dict[str, Share]:
    """The share that is marked, by a field of the attacks."""
    values = [getattr(one, key) for one in attacks]
    return {
        value: share(is_marked(one) for one, other in zip(attacks, values, strict=True) if other == value)
        for value in dict.fromkeys(values)
    }


def share(marked: Iterable[bool]) -> Share:
    """Count."""
    found = list(marked)
    return Share(marked=sum(found), n=len(found))


def table(results: Results) -> Iterator[str]:
    """The Markdown table of the README."""
    first, tuned = (results.rules[name] for name in RULES)
    yield "| marked | first rule, before any attack was read | tuned on the same texts |"
    yield "|---|---|---|"
    for name in first.kinds:
        yield f"| {name} | {_cell(first.kinds[name])} | {_cell(tuned.kinds[name])} |"
    for title, before, after in (
        ("other languages than English", _foreign(first), _foreign(tuned)),
        ("all that ask for a verdict", first.steering, tuned.steering),
        *((f"attempts in place: {place}", first.places[place], tuned.places[place]) for place in first.places),
        ("attempts that the judge gave way to", first.steered_marked, tuned.steered_marked),
        ("aimed at what stands behind the judge", first.breaking, tuned.breaking),
        *((f"labelled, harmless: {name}", first.labelled[name], tuned.labelled[name]) for name in first.labelled),
    ):
        yield f"| {title} | {_cell(before)} | {_cell(after)} |"


def _foreign(figures: Figures) -> Share:
    others = [one for language, one in figures.languages.items() if language != "en"]
    return Share(marked=sum(one.marked for one in others), n=sum(one.n for one in others))


def _cell(one: Share) -> str:
    return f"{one.marked} of {one.n} ({one.marked / one.n:.0%})"


def main() -> None:
    """Measure, keep, print."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rule", choices=RULES, default="tuned", help="the name under which figures are kept")
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--table", action="store_true", help="print what the results hold; measure nothing")
    asked = made.parse_args()
    if not asked.table:
        known = Results.model_validate_json(asked.results.read_bytes()).rules if asked.results.exists() else {}
        found = {name: one for name, one in (known | {asked.rule: measured()}).items() if name in RULES}
        results = Results(rules={name: found[name] for name in RULES if name in found})
        asked.results.write_text(
            json.dumps(results.model_dump(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    results = Results.model_validate_json(asked.results.read_bytes())
    if set(results.rules) == set(RULES):
        print("\n".join(table(results)))


if __name__ == "__main__":
    main()
