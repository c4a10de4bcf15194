"""Runs of the same data by the same judge, one after another: how often it contradicts itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from airjudge.datasets import Source
from airjudge.journal import JOURNAL
from airjudge.metrics import Metric
from airjudge.run.folder import RunHeader
from airjudge.run.identity import check_run
from airjudge.run.scoring import OnCounts, score_dataset, uncounted
from airjudge.run.settings import RunSettings

_REPEAT: Final = "repeat-"


def repeat_folders(out: Path, k: int) -> list[Path]:
    """The folders of k runs: `out` itself, then `repeat-2` to `repeat-K` in it."""
    return [out, *(out / f"{_REPEAT}{number}" for number in range(2, k + 1))]


def repeats_in(out: Path) -> list[Path]:
    """The repeats of a run that were begun, in their order; without the run itself."""
    numbered = ((one, one.name.removeprefix(_REPEAT)) for one in out.glob(f"{_REPEAT}*") if (one / JOURNAL).is_file())
    found = [(int(number), one) for one, number in numbered if number.isascii() and number.isdigit()]
    return [one for _, one in sorted(found)]


def check_repeated(source: Source, folders: Sequence[Path], settings: RunSettings) -> None:
    """Refuse folders of which one cannot take its run, before any is begun.

    Raises:
        InputError: As `check_run`.
    """
    first, *others = folders
    check_run(source, first, settings)
    for folder in others:
        check_run(source, folder, _again(settings))


async def score_repeatedly(
    source: Source,
    metric: Metric,
    folders: Sequence[Path],
    *,
    settings: RunSettings,
    on_counts: OnCounts = uncounted,
) -> RunHeader:
    """Score a data set into each of these folders, one after another; give what the first run found.

    Each is a run like any other: the same call goes on with what is not finished. A fork lends its verdicts to the
    first alone, for repeats have to be asked.

    Raises:
        AirjudgeError: As `score_dataset`.
    """
    first, *others = folders
    header = await score_dataset(source, metric, first, settings=settings, on_counts=on_counts)
    for folder in others:
        await score_dataset(source, metric, folder, settings=_again(settings), on_counts=on_counts)
    return header


def _again(settings: RunSettings) -> RunSettings:
    return settings.model_copy(update={"fork": None})
