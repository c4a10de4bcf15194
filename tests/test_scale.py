"""The benchmark of scale can fail: it finds what was asked twice, and what was scored otherwise."""

import json
from pathlib import Path

import pytest

from benchmarks.scale.run import Mark, Start, memory, n_asked_again, n_wrong

EXPECTED = [10, 11, 12, 13]  # checksums of four samples; the lowest bit is the verdict
PROOF = 99


def record(n: int, checksum: int) -> dict[str, object]:
    yes = bool(checksum & 1)
    return {"id": f"s{n}", "score": float(yes), "statements": [{"attributed": yes}]}


def killed_and_resumed(log: list[int], n_before_kill: int, committed: set[int]) -> tuple[int, int]:
    first = Start(n_before=0, n_after=n_before_kill, committed=frozenset(committed))
    return n_asked_again([first, Start(n_before=n_before_kill, n_after=len(log))], log, EXPECTED)


def test_what_was_in_flight_when_the_run_was_killed_may_be_asked_again() -> None:
    # 12 was asked, and not committed: it is asked again, and nothing is wrong with that.
    assert killed_and_resumed([PROOF, 10, 11, 12, PROOF, 12, 13], 4, {0, 1}) == (0, 1)


def test_what_was_committed_may_not() -> None:
    assert killed_and_resumed([PROOF, 10, 11, 12, PROOF, 11, 12, 13], 4, {0, 1}) == (1, 1)


def test_a_run_that_was_not_killed_asks_each_once() -> None:
    assert n_asked_again([Start(n_before=0, n_after=5)], [PROOF, *EXPECTED], EXPECTED) == (0, 1)


@pytest.mark.parametrize(
    ("change", "n"),
    [
        ({}, 0),
        ({"score": 1.0}, 1),
        ({"id": "s9"}, 1),
        ({"statements": []}, 1),
    ],
)
def test_a_record_that_differs_is_found(tmp_path: Path, change: dict[str, object], n: int) -> None:
    records = list(map(record, range(4), EXPECTED))
    records[2] |= change
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    assert n_wrong(tmp_path, EXPECTED) == n


@pytest.mark.parametrize("n_records", [2, 6])
def test_a_record_that_is_missing_or_too_much_is_found(tmp_path: Path, n_records: int) -> None:
    lines = (json.dumps(record(n, checksum)) for n, checksum in enumerate([*EXPECTED, 14, 15][:n_records]))
    (tmp_path / "samples.jsonl").write_text("".join(line + "\n" for line in lines))
    assert n_wrong(tmp_path, EXPECTED) == 2


def test_growth_is_what_came_after_the_first_tenth_while_asking() -> None:
    # A tenth of 100 samples was asked for at 50 MB; the most while asking is 60, the export takes 90.
    marks = [Mark(0, 20, 0), Mark(1, 50, 10), Mark(2, 60, 50), Mark(3, 55, 99), Mark(4, 90, 100)]
    start = Start(0, 100, [Mark(one.at, one.rss * 10**6, one.n_asked) for one in marks])
    found = memory([start], 100)
    assert found == {
        "samples_then": 10, "then": 50, "at_the_last_request": 55, "peak": 90, "growth_while_asking": 10,
    }  # fmt: skip


def test_a_rate_is_over_the_time_of_asking_samples_alone() -> None:
    # One request proves enforcement; the first sample is asked for at 2 s, the last at 4 s.
    marks = [Mark(0, 1, 5), Mark(1, 1, 6), Mark(2, 1, 7), Mark(3, 1, 8), Mark(4, 1, 9), Mark(5, 1, 9)]
    start = Start(5, 9, marks, seconds=6)
    assert (start.first_request_s(1), start.asking_s(1)) == (2, 2)
    assert Start(5, 6, marks[:2]).first_request_s(1) is None
