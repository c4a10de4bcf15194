"""The recorded verdicts of WiCE as runs, against people: every figure computed a second time, from the file alone."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Command

DATA = Path(os.environ.get("AIRJUDGE_DATA", "../shared/data"))
HOSTED = ("gpt-4-0613", "gpt-3.5-turbo-0613", "t5-3b-anli-wice")
SETS = ("wice_subclaims", "wice_claims")


def rulings(name: str, judge: str) -> list[tuple[int, int]]:
    """Give (label, verdict) of each statement that a judge ruled on."""
    rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [
        (one["label"], one["judges"][judge]["label"])
        for row in rows
        for one in row["statements"]
        if judge in one.get("judges", {}) and one["label"] is not None
    ]


def reference(pairs: list[tuple[int, int]]) -> dict[str, float]:
    """Figures from counts, in plain Python: accuracy, mean of the rates by class, kappa from the marginals."""
    n = len(pairs)
    yes, no = sum(label for label, _ in pairs), sum(1 - label for label, _ in pairs)
    right_yes, right_no = sum(x and y for x, y in pairs), sum(not (x or y) for x, y in pairs)
    said = sum(verdict for _, verdict in pairs)
    accuracy = (right_yes + right_no) / n
    chance = (yes * said + no * (n - said)) / n**2
    return {
        "n": n,
        "accuracy": accuracy,
        "balanced_accuracy": (right_yes / yes + right_no / no) / 2,
        "kappa": (accuracy - chance) / (1 - chance),
    }


def compared(airjudge: Command, folder: Path, name: str) -> dict[str, Any]:
    """Import each judge's verdicts as a run, and compare all of them with people."""
    data = DATA / f"{name}.jsonl"
    if not data.is_file():
        pytest.skip(f"{data} is not there")
    judges = [one for one in HOSTED if rulings(name, one)]
    for one in judges:
        assert airjudge("import-verdicts", data, "--from", one, "--out", folder / one, "--json").code == 0
    ended = airjudge("compare", *(folder / one for one in judges), "--labels", data, "--json")
    assert ended.code == 0
    told: dict[str, Any] = json.loads(ended.out)
    return told


@pytest.mark.parametrize("name", SETS)
def test_hosted_verdicts_against_people_are_the_reference_figures_of_the_part_that_is_there(
    airjudge: Command, tmp_path: Path, name: str
) -> None:
    told = compared(airjudge, tmp_path, name)
    judges = {one["name"]: one for one in told["judges"] if one["kind"] == "run"}
    assert judges
    for judge, found in judges.items():
        for figure, value in reference(rulings(name, judge)).items():
            assert found["people"]["all"][figure] == pytest.approx(value), (judge, figure)
    pairs = {one["a"]: one for one in told["pairs"] if one["b"] == "labels"}
    for judge in judges:
        assert pairs[judge]["kappa"] == pytest.approx(judges[judge]["people"]["all"]["kappa"])
        counted = [[sum(pair == (x, y) for pair in rulings(name, judge)) for x in (0, 1)] for y in (0, 1)]
        assert pairs[judge]["table"] == counted


def test_gpt_4_on_the_subclaims_is_what_the_whole_published_file_says_within_its_interval(
    airjudge: Command, tmp_path: Path
) -> None:
    # Over the complete public file (100 sub-claims): accuracy .92, balanced accuracy .921, kappa .838.
    told = compared(airjudge, tmp_path, "wice_subclaims")
    [found] = [one["people"]["all"] for one in told["judges"] if one["name"] == "gpt-4-0613"]
    for figure, published in (("balanced_accuracy", 0.921), ("kappa", 0.838)):
        low, high = found[f"{figure}_ci95"]
        assert low <= published <= high
