"""From a labelled run to a calibration, and from that to a calibrated run, through the stub server."""

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airjudge import ContextRecall, Judge, JudgeSettings
from airjudge.calibrate import Wanted, calibrate_run, read_calibration, write_calibration
from airjudge.calibration import Calibration, LabelsUsed
from airjudge.calibration.fitting import Recipe
from airjudge.datasets.labels import read_labels
from airjudge.errors import CalibrationDiffers, InputError, RunDiffers
from airjudge.run import open_run, verify_run
from airjudge.schema import ScoredSample
from tests.commands import Command
from tests.rows import Row, row
from tests.runs import run, statements_asked, stopped_at, write
from tests.stub import Stub
from tests.stub.prompt_tokens import Messages, text_of

N = 40


def too_sure(messages: Messages) -> float:
    """Rise with the number of the harbour, if one is asked about: log-odds from -2 to 5.8, in steps of 1/5."""
    numbers = re.findall(r"Statement: Harbour N(\d+) ", text_of(messages[-1]))
    return too_sure_of(int(numbers[-1])) if numbers else 0.9


def too_sure_of(number: int) -> float:
    return 1 / (1 + math.exp(2 - number / 5))


def labelled() -> list[Row]:
    """Rows of which people found the upper 16 of 40 supported, but for two that changed places."""
    return [_labelled(n) for n in range(N)]


def _labelled(number: int) -> Row:
    made, text = row(f"N{number}"), f"Harbour N{number} opened pier one."
    label = int((number >= 24) != (number in {20, 27}))
    return {**made, "statements": [{"id": "1", "text": text, "label": label}]}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    with Stub() as running:
        running.config.probability = too_sure
        monkeypatch.setenv("STUB_KEY", running.api_key or "")
        yield running


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("labelled"), *labelled())


@pytest.fixture(scope="module")
def raw(data: Path) -> Path:
    """A run of the judge as it is, which the tests read."""
    with Stub() as running:
        running.config.probability = too_sure
        run(running, data, data.parent / "raw", asked=JudgeSettings(concurrency=8))
    return data.parent / "raw"


def made(folder: Path, labels: Path, **wanted: object) -> Calibration:
    return calibrate_run(open_run(folder), read_labels(labels), file=labels.name, wanted=Wanted(**wanted))  # type: ignore[arg-type]


def asked(calibration: Calibration) -> JudgeSettings:
    return JudgeSettings(concurrency=8, calibration=calibration)


def attributed(samples: tuple[ScoredSample, ...]) -> list[bool | None]:
    return [one.attributed for sample in samples for one in sample.statements]


# From a run to a calibration and back


def test_a_run_is_calibrated_by_its_labels_and_the_next_run_holds(
    airjudge: Command, stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    file = tmp_path / "judge.json"
    told = airjudge("calibrate", raw, "--labels", data, "-o", file)
    assert "…" not in told.out  # no figure is cut where the output goes into a file
    assert re.search(r"balanced accuracy +0\.\d{3} \(0\.\d{3} to", told.out)
    assert told.code == 0, told.err
    assert "40 statements of 40 groups, 16 labelled 1 (rows.jsonl)" in told.out
    assert f"airjudge score DATA --out NEW --fork {raw} --calibration {file}" in told.out
    server = ("--base-url", stub.base_url, "--api-key-env", "STUB_KEY")
    scored = airjudge("score", data, "--out", tmp_path / "new", *server, "--calibration", file, "--json")
    assert scored.code == 0, scored.err
    shown = airjudge("score", data, "--out", tmp_path / "new", *server, "--calibration", file).out
    assert f'calibration="{read_calibration(file).name}"' in re.sub(r"\n +", "", shown)  # a long signature is folded
    # Without calibration 30 of 40 have p >= .5; matched to prevalence it is 16.
    assert sum(bool(one) for one in attributed(open_run(raw).samples)) == 30
    assert json.loads(scored.out)["mean"] == 16 / 40
    calibration, state = read_calibration(file), open_run(tmp_path / "new").state
    assert f'calibration="{calibration.name}"' in state.signature.decoding
    assert (state.threshold, state.calibration) == (calibration.threshold, calibration)
    assert airjudge("verify", tmp_path / "new").code == 0


def test_verdicts_of_a_raw_run_are_taken_over_as_the_judge_would_give_them_and_nothing_is_asked(
    stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    calibration = made(raw, data)
    header = run(stub, data, tmp_path / "forked", asked=asked(calibration), fork=raw)
    assert statements_asked(stub) == []
    assert header.n_taken_over == N
    run(stub, data, tmp_path / "asked", asked=asked(calibration))
    assert len(statements_asked(stub)) == N
    assert open_run(tmp_path / "forked").samples == open_run(tmp_path / "asked").samples
    assert verify_run(tmp_path / "forked").findings == ()


def test_verdicts_of_a_run_with_the_same_calibration_are_not_mapped_twice(
    stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    calibration = made(raw, data)
    run(stub, data, tmp_path / "first", asked=asked(calibration), fork=raw)
    run(stub, data, tmp_path / "second", asked=asked(calibration), fork=tmp_path / "first")
    assert statements_asked(stub) == []
    assert open_run(tmp_path / "second").samples == open_run(tmp_path / "first").samples


def test_verdicts_of_a_run_with_another_calibration_are_not_taken_over(
    stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    run(stub, data, tmp_path / "first", asked=asked(made(raw, data)), fork=raw)
    other = made(raw, data, recipe=Recipe("isotonic"))
    with pytest.raises(RunDiffers, match=r"signature\.decoding") as caught:
        run(stub, data, tmp_path / "second", asked=asked(other), fork=tmp_path / "first")
    assert "without a calibration" in caught.value.hint
    with pytest.raises(RunDiffers, match=r"signature\.decoding"):
        run(stub, data, tmp_path / "third", fork=tmp_path / "first")
    assert statements_asked(stub) == []


def test_a_run_goes_on_with_its_own_calibration_and_with_no_other(
    stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    calibration = made(raw, data)
    stopped_at(stub, "Harbour N20 ", data, tmp_path / "out", asked=asked(calibration))
    for other in (JudgeSettings(), asked(made(raw, data, band=(0.3, 0.6)))):
        with pytest.raises(RunDiffers, match=r"signature\.decoding") as caught:
            run(stub, data, tmp_path / "out", asked=other)
        assert "--fork" in caught.value.hint
    run(stub, data, tmp_path / "out", asked=asked(calibration))
    run(stub, data, tmp_path / "whole", asked=asked(calibration))
    assert open_run(tmp_path / "out").samples == open_run(tmp_path / "whole").samples


def test_a_verdict_that_does_not_follow_from_the_calibration_is_found(
    stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    from airjudge.journal import Store

    run(stub, data, tmp_path / "out", asked=asked(made(raw, data)), fork=raw)
    with Store(tmp_path / "out") as store, store.transaction() as database:
        # Raw .5 is attributed without a calibration, and not with this one.
        database.execute("UPDATE verdicts SET attributed = 1 WHERE place = 10")
        database.execute("UPDATE samples SET score = 1 WHERE place = 10")
    assert any("is not what its probability says" in one for one in verify_run(tmp_path / "out").findings)


def test_a_verdict_of_the_single_call_is_calibrated_and_loses_a_reason_for_the_opposite(
    stub: Stub, data: Path, tmp_path: Path
) -> None:
    stub.config.probability = None
    single = JudgeSettings(method="ragas", concurrency=8)
    run(stub, data, tmp_path / "single", asked=single, limit=2)
    [before, _] = open_run(tmp_path / "single").samples
    signature = open_run(tmp_path / "single").state.signature.model_dump()
    above = (1 + (before.statements[0].probability or 0)) / 2
    calibration = Calibration.model_validate(made_by_hand(signature, threshold=above))
    settings = single.model_copy(update={"calibration": calibration})
    run(stub, data, tmp_path / "asked", asked=settings, limit=2)
    stub.clear()
    run(stub, data, tmp_path / "forked", asked=settings, limit=2, fork=tmp_path / "single")
    assert not [one for one in stub.chats if "Harbour" in one.text]
    [after, _] = open_run(tmp_path / "asked").samples
    assert (before.statements[0].attributed, before.statements[0].reason) == (True, "word overlap")
    assert (after.statements[0].attributed, after.statements[0].reason) == (False, None)
    assert open_run(tmp_path / "forked").samples == open_run(tmp_path / "asked").samples


def made_by_hand(signature: dict[str, Any], *, threshold: float) -> dict[str, Any]:
    """Give the fields of a calibration that changes nothing but the threshold."""
    used = dict.fromkeys(LabelsUsed.model_fields, 0) | {"file": "f", "sha256": "0"}
    return {
        "signature": signature, "probability_map": {"kind": "logistic", "slope": 1, "intercept": 0},
        "threshold": threshold, "by": "prevalence", "labels": used, "data_sha256": "0", "cross_validated": None,
        "created": "2026-01-01T00:00:00Z", "airjudge": "0",
    }  # fmt: skip


def test_one_sample_in_python_is_calibrated_too(stub: Stub, data: Path, raw: Path) -> None:
    calibration = made(raw, data)
    judge = Judge.connect(stub.base_url, stub.model, api_key=stub.api_key, settings=asked(calibration))
    texts = ["Harbour N15 opened pier one."]
    result = ContextRecall(judge).score(user_input="What?", retrieved_contexts=texts, reference=texts[0])
    assert result.statements[0].probability == pytest.approx(calibration.probability_map(too_sure_of(15)))
    assert result.value == 0
    assert calibration.name in result.signature.decoding


# Refusals


def test_the_calibration_of_another_judge_is_refused_with_what_differs(
    airjudge: Command, stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    calibration = made(raw, data)
    foreign = calibration.signature.model_copy(update={"weights": "a" * 64, "prompt": "other"})
    write_calibration(tmp_path / "foreign.json", calibration.model_copy(update={"signature": foreign}))
    server = ("--base-url", stub.base_url, "--api-key-env", "STUB_KEY")
    ended = airjudge("score", data, "--out", tmp_path / "new", *server, "--calibration", tmp_path / "foreign.json")
    assert ended.code == 2
    assert "another judge" in ended.err
    assert "weights: aaaaaaaaaaaa there, unverified now" in ended.err
    assert "prompt: other there" in ended.err
    assert "judge:" not in ended.err.replace("another judge:", "")
    assert statements_asked(stub) == []


def test_the_calibration_of_another_judge_is_refused_in_python(stub: Stub, data: Path, raw: Path) -> None:
    settings = asked(made(raw, data)).model_copy(update={"method": "ragas"})
    judge = Judge.connect(stub.base_url, stub.model, api_key=stub.api_key, settings=settings)
    with pytest.raises(CalibrationDiffers, match="method: pointwise there, ragas now"):
        ContextRecall(judge).score(user_input="What?", retrieved_contexts=["It is."], reference="It is.")


def test_a_calibrated_run_is_not_calibrated_again(stub: Stub, data: Path, raw: Path, tmp_path: Path) -> None:
    run(stub, data, tmp_path / "new", asked=asked(made(raw, data)), fork=raw)
    with pytest.raises(InputError, match="calibrated already") as caught:
        made(tmp_path / "new", data)
    assert str(raw) in caught.value.hint


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is no calibration"),
        ("{}", "format|signature"),
        ('{"format": "airjudge-calibration-9"}', "airjudge-calibration-1"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused_before_anything_is_asked(
    airjudge: Command, stub: Stub, data: Path, tmp_path: Path, content: str | None, reason: str
) -> None:
    file = tmp_path / "c.json"
    if content is not None:
        file.write_text(content)
    ended = airjudge("score", data, "--out", tmp_path / "new", "--base-url", stub.base_url, "--calibration", file)
    assert ended.code == 2
    assert re.search(reason, ended.err)
    assert "airjudge calibrate RUN --labels FILE" in ended.err
    assert not stub.chats


def test_labels_on_other_samples_and_of_one_class_are_refused(raw: Path, tmp_path: Path) -> None:
    other = write(tmp_path, {"id": "elsewhere", "statement": "A.", "attributed": 1}, name="other.jsonl")
    with pytest.raises(InputError, match=r"no statement in .* has a label in other\.jsonl"):
        made(raw, other)
    ones = [{"id": f"N{n}", "statement_id": "1", "attributed": 1} for n in range(5)]
    with pytest.raises(InputError, match="all 5 labels are 1") as caught:
        made(raw, write(tmp_path, *ones, name="ones.jsonl"))
    assert "labelled 0" in caught.value.hint


def test_a_judge_without_probabilities_cannot_be_calibrated(raw: Path, data: Path) -> None:
    opened = open_run(raw)
    samples = tuple(
        one.model_copy(update={"statements": tuple(v.model_copy(update={"probability": None}) for v in one.statements)})
        for one in opened.samples
    )
    bare = type(opened)(opened.name, opened.folder, opened.state, samples)
    with pytest.raises(InputError, match="has a probability"):
        calibrate_run(bare, read_labels(data), file="rows.jsonl")


@pytest.mark.parametrize(
    "options", [("--abstain", 0.6, 0.4), ("--abstain", 0.4, 1.2), ("--abstain", 0.4, 0.6, "--abstain-rate", 0.1)]
)
def test_a_band_that_is_none_is_a_usage_error(airjudge: Command, tmp_path: Path, options: tuple[object, ...]) -> None:
    assert airjudge("calibrate", tmp_path, "--labels", tmp_path, *options).code == 2


# What is left out, and what is doubtful


def test_what_cannot_be_fitted_to_is_counted(raw: Path, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"id": f"N{n}", "statement_id": "1", "attributed": int(n > 20)} for n in range(36)]
    lines[3]["attributed"] = None
    lines.append({"id": "elsewhere", "statement_id": "1", "attributed": 1})
    used = made(raw, write(tmp_path, *lines, name="labels.jsonl")).labels
    assert (used.n_statements, used.n_positive, used.n_groups) == (35, 15, 35)
    assert (used.n_unlabelled, used.n_undecided, used.n_unused_labels) == (4, 1, 1)
    assert (used.n_without_probability, used.n_failed) == (0, 0)


def test_too_few_labels_are_warned_of(raw: Path, tmp_path: Path) -> None:
    lines = [{"id": f"N{n}", "statement_id": "1", "attributed": int(n > 20)} for n in range(12, 28)]
    warnings = made(raw, write(tmp_path, *lines, name="labels.jsonl")).warnings
    assert any("only 16 groups" in one for one in warnings)
    assert any("only 7 statements are labelled 1" in one for one in warnings)
    assert any("only 9 statements are labelled 0" in one for one in warnings)


def test_a_calibration_that_does_not_help_says_so(raw: Path, tmp_path: Path) -> None:
    # Labels that have nothing to do with the judge: every third statement.
    lines = [{"id": f"N{n}", "statement_id": "1", "attributed": int(n % 3 == 0)} for n in range(N)]
    found = made(raw, write(tmp_path, *lines, name="labels.jsonl"))
    assert found.cross_validated is not None
    assert found.cross_validated.balanced_accuracy.gain <= 0
    assert any("no better than the raw ones (balanced accuracy)" in one for one in found.warnings)


def test_a_calibration_of_one_group_is_said_to_be_untested(stub: Stub, tmp_path: Path) -> None:
    data = write(tmp_path, *({**one, "group": "all"} for one in labelled()))
    run(stub, data, tmp_path / "raw", asked=JudgeSettings(concurrency=8))
    found = made(tmp_path / "raw", data)
    assert found.cross_validated is None
    assert any("untested" in one for one in found.warnings)
    assert any("only 1 groups" in one for one in found.warnings)


def test_a_file_of_a_calibration_holds_no_text_of_the_data(raw: Path, data: Path, tmp_path: Path) -> None:
    write_calibration(tmp_path / "c.json", made(raw, data))
    assert "Harbour" not in (tmp_path / "c.json").read_text()


def test_the_object_is_the_file_with_its_name(airjudge: Command, raw: Path, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    told = json.loads(airjudge("calibrate", raw, "--labels", data, "-o", file, "--json").out)
    assert (told.pop("file"), told.pop("name")) == (str(file), read_calibration(file).name)
    assert told == json.loads(file.read_text())


# The abstain band


def test_verdicts_in_the_band_are_listed_and_the_score_shows_what_they_allow(
    airjudge: Command, stub: Stub, data: Path, raw: Path, tmp_path: Path
) -> None:
    calibration = made(raw, data, rate=0.1)
    assert calibration.abstain is not None
    write_calibration(tmp_path / "c.json", calibration)
    server = ("--base-url", stub.base_url, "--api-key-env", "STUB_KEY")
    told = airjudge(
        "score", data, "--out", tmp_path / "new", *server, "--calibration", tmp_path / "c.json", "--fork", raw
    )
    # Four of 40 are doubtful, two on each side of a threshold that attributes 16: recall is 14/40 to 18/40.
    assert "4 of 40 verdicts" in told.out
    assert "0.350 to 0.450" in told.out
    summary = open_run(tmp_path / "new").state.summary
    assert summary is not None
    assert summary.abstained is not None
    assert summary.mean == 16 / 40
    assert (summary.abstained.n_statements, summary.abstained.n_samples) == (4, 4)
    assert summary.abstained.bounds == summary.abstained.micro_bounds == (14 / 40, 18 / 40)
    assert verify_run(tmp_path / "new").findings == ()
    listed = airjudge("export", tmp_path / "new", "--format", "csv", "--table", "abstained")
    assert listed.code == 0
    with (tmp_path / "new" / "abstained.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    low, high = calibration.abstain
    assert [one["sample"] for one in rows] == ["N22", "N23", "N24", "N25"]
    assert all(low <= float(one["probability"]) <= high for one in rows)


def test_a_run_without_band_has_no_list(airjudge: Command, raw: Path) -> None:
    assert airjudge("export", raw, "--table", "abstained").code == 2
    ended = airjudge("export", raw, "--format", "csv", "--table", "abstained")
    assert ended.code == 2
    assert "--abstain LOW HIGH" in ended.err


def test_a_band_without_the_threshold_is_warned_of(raw: Path, data: Path) -> None:
    assert any("does not hold the threshold" in one for one in made(raw, data, band=(0.8, 0.9)).warnings)
    assert not any("band" in one for one in made(raw, data, rate=0.2).warnings)


def test_a_rate_that_no_band_keeps_to_is_refused(raw: Path, data: Path) -> None:
    with pytest.raises(InputError, match="no band"):
        made(raw, data, rate=0.01)
