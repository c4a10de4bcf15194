"""What cannot be compared, and what to do instead."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from airjudge.compare.frame import Records, differing, units_of
from airjudge.compare.judges import People
from airjudge.compare.records import PEOPLE
from airjudge.datasets.refusal import short
from airjudge.errors import InputError, StatementsDiffer
from airjudge.labels import Labels
from airjudge.metrics import IDBasedContextRecall, NonLLMContextRecall
from airjudge.run import OpenedRun, repeats_in

_SHOWN: Final = 5
_UNITS: Final = {
    NonLLMContextRecall.name: "reference contexts",
    IDBasedContextRecall.name: "ids of reference contexts",
}


def check_runs(runs: Sequence[OpenedRun], labels: Labels | None) -> None:
    """Refuse a comparison of nothing.

    Raises:
        InputError: If there are too few judges, or a run is given twice.
    """
    if not runs:
        msg = "there is no run to compare"
        raise InputError(msg, "Name the folder that --out named, of each run.")
    twice = [str(folder) for folder, count in Counter(run.folder.resolve() for run in runs).items() if count > 1]
    if twice:
        msg = f"the run in {twice[0]} is given twice"
        raise InputError(msg, "A run agrees with itself; name another run of the same data.")
    if len(runs) == 1 and labels is None and not repeats_in(runs[0].folder):
        msg = f"there is nothing to compare the run in {runs[0].folder} with"
        hint = "Name a second run, or labels with --labels FILE, or repeat it: airjudge score ... --repeat 3"
        raise InputError(msg, hint)


def names_of(runs: Sequence[OpenedRun]) -> list[str]:
    """A name for each run: that of its folder, or the whole path where that is not one run's alone."""
    counted = Counter([PEOPLE, *(run.name for run in runs)])
    return [run.name if counted[run.name] == 1 else str(run.folder.resolve()) for run in runs]


def unit_of(run: OpenedRun) -> str:
    """What a run's verdicts are on."""
    return _UNITS.get(run.state.signature.method, "statements of the reference")


def check_statements(runs: Sequence[Records], *, refuse: bool, units: Sequence[str]) -> tuple[str, ...]:
    """Samples of which runs hold other statements; an error if that is to be refused.

    Args:
        runs: Records of each run.
        refuse: Whether that is an error.
        units: What the verdicts of each run are on.

    Raises:
        StatementsDiffer: Naming the first such samples.
    """
    found = tuple(differing(runs))
    if found and refuse:
        shown = "\n".join(f"  {short(name)}: {_held(name, runs)}" for name in found[:_SHOWN])
        more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        msg = f"the runs do not hold the same statements, of {len(found)} samples:\n{shown}{more}"
        raise StatementsDiffer(msg, _of_other_metrics(units))
    return found


def _of_other_metrics(units: Sequence[str]) -> str:
    """The next step where runs are of metrics that rule on other things; empty if they are of one."""
    distinct = list(dict.fromkeys(units))
    if len(distinct) == 1:
        return ""
    return f"They rule on {' and on '.join(distinct)}: compare the samples' scores alone, --scores-only"


def _held(name: str, runs: Sequence[Records]) -> str:
    """What each run holds of a sample, and the first text that not all hold."""
    units = [units_of(records[name]) for records in runs if name in records]
    counts = " and ".join(str(len(one)) for one in units)
    strange = next(unit for one in units for unit in one if any(unit not in other for other in units))
    return f"{counts} statements; not all hold {short(strange[0])}: {short(strange[1])}"


def check_labels(labels: Labels, people: People) -> None:
    """Refuse labels of other data.

    Raises:
        InputError: If none is on a statement of the runs.
    """
    if not any(people.labels):
        msg = f"no label of {labels.name} is on a statement of these runs"
        raise InputError(msg, "A label is found by the sample's id, and by the id or the text of the statement.")
