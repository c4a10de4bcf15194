"""Context recall without a judge: numbers computed by hand, and what the originals do at the edges."""

import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airjudge import IDBasedContextRecall, NonLLMContextRecall
from airjudge.datasets import open_source, source_of
from airjudge.errors import ExtraMissing, RunInterrupted
from airjudge.judge import Numbered
from airjudge.metrics import Metric, RecallResult
from airjudge.run import RUN, RunHeader, RunSettings, read_scored, score_dataset, verify_run
from airjudge.run.folder import EXPORTS
from airjudge.schema import Echoes, Sample, ScoredSample, Statement, Verdict
from airjudge.similarity import Distance

TEXTS = ["abcd", "wxyz"]


def attributed(result: RecallResult | ScoredSample) -> list[bool | None]:
    return [one.attributed for one in result.statements]


def test_likeness_matches_a_hand_computation() -> None:
    # Levenshtein: abcd to abce is one of four letters, 1 - 1/4; wx to wxyz two of four, 1 - 2/4, which is not above
    # .5; qqqq shares nothing.
    result = NonLLMContextRecall().score(retrieved_contexts=TEXTS, reference_contexts=["abce", "wx", "qqqq"])
    assert result.value == 1 / 3
    assert result.error is None
    assert [(one.id, one.text, one.attributed, one.probability, one.reason) for one in result.statements] == [
        ("1", "abce", True, None, "similarity 0.750 to retrieved context 1"),
        ("2", "wx", False, None, "similarity 0.500 to retrieved context 2"),
        ("3", "qqqq", False, None, "similarity 0.000 to retrieved context 1"),
    ]


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        # MARTHA and MARHTA: two letters differ in place. Levenshtein 1 - 2/6, Hamming 1 - 2/6; Jaro
        # (6/6 + 6/6 + 5/6) / 3, for all letters match and one pair is swapped; Winkler adds 3 * .1 of the rest.
        ("levenshtein", 2 / 3),
        ("hamming", 2 / 3),
        ("jaro", 17 / 18),
        ("jaro_winkler", 17 / 18 + 0.3 / 18),
    ],
)
def test_each_distance_matches_a_hand_computation(distance: Distance, expected: float) -> None:
    texts = {"retrieved_contexts": ["MARTHA"], "reference_contexts": ["MARHTA"]}
    assert NonLLMContextRecall(threshold=expected - 1e-9, distance=distance).score(**texts).value == 1
    assert NonLLMContextRecall(threshold=expected + 1e-9, distance=distance).score(**texts).value == 0


def test_a_similarity_at_the_threshold_is_not_above_it() -> None:
    texts = {"retrieved_contexts": ["same"], "reference_contexts": ["same"]}
    assert NonLLMContextRecall(threshold=1).score(**texts).value == 0
    assert NonLLMContextRecall(threshold=0).score(retrieved_contexts=["ab"], reference_contexts=["xy"]).value == 0


def test_equal_reference_contexts_count_each() -> None:
    # As in the original: three reference contexts, of which two are one text.
    result = NonLLMContextRecall().score(retrieved_contexts=["abcd"], reference_contexts=["abcd", "abcd", "qqqq"])
    assert result.value == 2 / 3


def test_blank_texts_are_texts_to_the_metric_object() -> None:
    # As in the original: nothing is like a blank text but another one.
    metric = NonLLMContextRecall()
    assert metric.score(retrieved_contexts=[""], reference_contexts=["abcd"]).value == 0
    assert metric.score(retrieved_contexts=[""], reference_contexts=[""]).value == 1


def test_without_a_reference_context_recall_is_undefined_with_a_typed_reason() -> None:
    for retrieved in ([], ["abcd"]):
        result = NonLLMContextRecall().score(retrieved_contexts=retrieved, reference_contexts=[])
        assert (result.value, result.error and result.error.kind) == (None, "no_reference_contexts")


@pytest.mark.parametrize(
    ("retrieved", "reference", "words"),
    [
        ([], ["abcd"], "retrieved_contexts cannot be empty"),
        ("abcd", ["abcd"], "retrieved_contexts must be a list of strings"),
        (["abcd"], "abcd", "reference_contexts must be a list of strings"),
        (["abcd"], ["abcd", 7], "reference_contexts must be a list of strings"),
        (None, ["abcd"], "retrieved_contexts must be a list of strings"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(retrieved: Sequence[str], reference: Sequence[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NonLLMContextRecall().score(retrieved_contexts=retrieved, reference_contexts=reference)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_threshold_outside_its_range_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be in"):
        NonLLMContextRecall(threshold=threshold)


def test_an_unknown_distance_is_refused() -> None:
    with pytest.raises(ValueError, match="no distance 'cosine': use levenshtein"):
        NonLLMContextRecall(distance="cosine")  # type: ignore[arg-type]  # what a caller without types may pass


def test_ids_match_a_hand_computation() -> None:
    # Distinct reference ids are 1, 3 and x; of these 1 and x were retrieved, whether written as a number or a text.
    result = IDBasedContextRecall().score(
        retrieved_context_ids=[1, "2", 2, "x"], reference_context_ids=["1", 3, 3, "x"]
    )
    assert result.value == 2 / 3
    assert [(one.id, one.text, one.attributed) for one in result.statements] == [
        ("1", "1", True), ("3", "3", False), ("x", "x", True),
    ]  # fmt: skip
    assert {one.probability for one in result.statements} == {None}


@pytest.mark.parametrize(
    ("retrieved", "reference", "expected"),
    [([], [1], 0.0), ([1, 1], [1], 1.0), (["01"], [1], 0.0), (["a "], ["a"], 0.0), ([""], [""], 1.0)],
)
def test_ids_are_compared_as_texts_in_sets(
    retrieved: Sequence[str | int], reference: Sequence[str | int], expected: float
) -> None:
    found = IDBasedContextRecall().score(retrieved_context_ids=retrieved, reference_context_ids=reference)
    assert found.value == expected


def test_without_a_reference_id_recall_is_undefined_with_a_typed_reason() -> None:
    result = IDBasedContextRecall().score(retrieved_context_ids=[1], reference_context_ids=[])
    assert (result.value, result.error and result.error.kind) == (None, "no_reference_ids")


@pytest.mark.parametrize("wrong", ["ab", [None], [True], [1.0], None])
def test_what_is_no_list_of_ids_is_refused(wrong: Sequence[str]) -> None:
    metric = IDBasedContextRecall()
    with pytest.raises(ValueError, match="reference_context_ids must be a list of strings and whole numbers"):
        metric.score(retrieved_context_ids=["a"], reference_context_ids=wrong)
    with pytest.raises(ValueError, match=r"^retrieved_context_ids must be"):
        metric.score(retrieved_context_ids=wrong, reference_context_ids=["a"])


async def test_a_batch_keeps_its_order_and_names_what_is_malformed() -> None:
    metric = IDBasedContextRecall()
    rows = [{"retrieved_context_ids": [1], "reference_context_ids": [n, 1]} for n in (1, 2)]
    assert [one.value for one in metric.batch_score(rows)] == [1.0, 0.5]
    assert [one.value for one in await metric.abatch_score(rows)] == [1.0, 0.5]
    assert metric.batch_score([]) == []
    with pytest.raises(ValueError, match="sample 1 of the batch has no 'reference_context_ids'"):
        metric.batch_score([rows[0], {"retrieved_context_ids": []}])
    like = NonLLMContextRecall()
    with pytest.raises(ValueError, match="sample 0 of the batch: retrieved_contexts cannot be empty"):
        like.batch_score([{"retrieved_contexts": [], "reference_contexts": ["a"]}])


async def test_the_async_twins_give_the_same() -> None:
    like, by_id = NonLLMContextRecall(), IDBasedContextRecall()
    texts = {"retrieved_contexts": TEXTS, "reference_contexts": ["abce"]}
    assert await like.ascore(**texts) == like.score(**texts)
    assert await like.abatch_score([texts]) == [like.score(**texts)]
    ids = {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}
    assert await by_id.ascore(**ids) == by_id.score(**ids)


def test_the_signature_says_what_compared_and_that_nobody_was_asked() -> None:
    signature = NonLLMContextRecall(threshold=0.25, distance="jaro").judge.signature("given")
    assert signature.judge.startswith("rapidfuzz-3.")
    assert signature.judge.endswith(" jaro>0.25")
    assert (signature.weights, signature.server, signature.prompt) == ("none", "none", "none")
    assert str(signature).startswith(f"{signature.judge} non_llm_context_recall statements=given airjudge-")
    assert str(IDBasedContextRecall().judge.signature("given")).startswith("ids id_based_context_recall")


def test_thresholds_that_print_alike_have_signatures_of_their_own() -> None:
    one, other = (NonLLMContextRecall(threshold=t).judge.signature("given") for t in (0.5, 0.5000000001))
    assert one != other


def test_without_rapidfuzz_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(ExtraMissing) as caught:
        NonLLMContextRecall()
    assert caught.value.hint == "pip install 'airjudge[similarity]'"
    assert IDBasedContextRecall().score(retrieved_context_ids=["a"], reference_context_ids=["a"]).value == 1
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.hint, copy.kind) == (str(caught.value), caught.value.hint, "extra_missing")


LIKE_ROWS: list[Mapping[str, object]] = [
    {"id": "half", "retrieved_contexts": TEXTS, "reference_contexts": ["abce", "qqqq"]},
    {"id": "empty", "retrieved_contexts": [], "reference_contexts": ["a", "b"]},
    {"id": "blank", "retrieved_contexts": [" "], "reference_contexts": ["a"]},
    {"id": "undefined", "retrieved_contexts": ["a"], "reference_contexts": []},
    {"id": "wrong", "retrieved_contexts": "a", "reference_contexts": ["a"]},
]
ID_ROWS: list[Mapping[str, object]] = [
    {"id": "half", "retrieved_context_ids": [1], "reference_context_ids": ["1", 2, 2]},
    {"id": "empty", "retrieved_context_ids": [], "reference_context_ids": ["1"]},
    {"id": "undefined", "retrieved_context_ids": ["1"], "reference_context_ids": []},
    {"id": "wrong", "retrieved_context_ids": ["1"], "reference_context_ids": [None]},
]


async def scored(
    make: Callable[[], Metric], rows: Sequence[Mapping[str, object]], out: Path, **settings: object
) -> tuple[RunHeader, dict[str, ScoredSample]]:
    metric = make()
    source = source_of(rows, required=metric.required)
    header = await score_dataset(source, metric, out, settings=RunSettings.model_validate(settings))
    return header, {one.id: one for one in read_scored(out)}


async def test_a_data_set_is_scored_by_likeness_and_isolates_what_is_wrong(tmp_path: Path) -> None:
    header, found = await scored(NonLLMContextRecall, LIKE_ROWS, tmp_path / "run")
    assert {name: (one.status, one.score) for name, one in found.items()} == {
        "half": ("scored", 0.5), "empty": ("scored", 0.0), "blank": ("scored", 0.0), "undefined": ("undefined", None),
        "line-5": ("failed", None),
    }  # fmt: skip
    summary = header.summary
    assert (summary.n_scored, summary.n_empty_contexts, summary.n_undefined, summary.n_failed) == (3, 2, 1, 1)
    assert (header.usage.requests, header.servers) == (0, ())
    assert header.settings["metric"] == "non_llm_context_recall"
    assert verify_run(tmp_path / "run").findings == ()


async def test_a_data_set_is_scored_by_ids(tmp_path: Path) -> None:
    header, found = await scored(IDBasedContextRecall, ID_ROWS, tmp_path / "run")
    assert {name: (one.status, one.score) for name, one in found.items()} == {
        "half": ("scored", 0.5), "empty": ("scored", 0.0), "undefined": ("undefined", None), "line-4": ("failed", None),
    }  # fmt: skip
    assert header.summary.n_empty_contexts == 1
    assert verify_run(tmp_path / "run").findings == ()


@pytest.mark.parametrize(
    ("make", "rows", "field"),
    [
        (NonLLMContextRecall, LIKE_ROWS, "retrieved_contexts"),
        (IDBasedContextRecall, ID_ROWS, "retrieved_context_ids"),
    ],
)
async def test_an_empty_retrieval_may_be_an_error(
    make: Callable[[], Metric], rows: list[Mapping[str, object]], field: str, tmp_path: Path
) -> None:
    _, found = await scored(make, rows, tmp_path / "run", zero_if_empty=False)
    error = found["empty"].error
    assert error is not None
    assert (error.kind, error.message) == ("empty_contexts", f"{field} is empty or all blank")
    assert found["half"].score == 0.5


async def test_a_sample_that_was_read_without_its_fields_is_no_empty_one() -> None:
    sample = Sample(id="1", user_input="", reference="", retrieved_contexts=("a",))
    metrics: tuple[Metric, ...] = (NonLLMContextRecall(), IDBasedContextRecall())
    for metric in metrics:
        with pytest.raises(ValueError, match=f"read without {metric.required[1]}"):
            await metric.score_sample(sample)


async def test_a_path_is_read_for_what_the_metric_needs(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"retrieved_context_ids": [1], "reference_context_ids": [1, 2]}\n')
    header = await score_dataset(data, IDBasedContextRecall(), tmp_path / "run")
    assert header.summary.mean == 0.5
    assert dict(open_source([str(data)], required=IDBasedContextRecall.required).mapping) == dict(header.mapping)


async def test_the_same_call_goes_on_and_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    _, first = await scored(NonLLMContextRecall, LIKE_ROWS, out)
    before = {name: (out / name).read_bytes() for name in (RUN, *EXPORTS)}
    _, again = await scored(NonLLMContextRecall, LIKE_ROWS, out)
    assert again == first
    assert {name: (out / name).read_bytes() for name in before} == before


async def test_a_run_that_was_stopped_compares_only_what_is_missing(tmp_path: Path) -> None:
    class Counted(IDBasedContextRecall):
        def __init__(self, most: int) -> None:
            super().__init__()
            self.most, self.compared = most, list[str]()

        async def score_sample(self, sample: Sample, **how: Any) -> ScoredSample:
            if len(self.compared) == self.most:
                msg = "stopped by somebody"
                raise RunInterrupted(msg)
            self.compared.append(sample.id)
            return await super().score_sample(sample, **how)

    rows = [{"id": str(n), "retrieved_context_ids": [n], "reference_context_ids": [n, 0]} for n in range(1, 6)]
    first, second = Counted(2), Counted(9)
    with pytest.raises(RunInterrupted):
        await scored(lambda: first, rows, tmp_path / "run")
    assert len(list(read_scored(tmp_path / "run"))) == 2
    header, found = await scored(lambda: second, rows, tmp_path / "run")
    assert (first.compared, second.compared) == (["1", "2"], ["3", "4", "5"])
    assert (header.summary.mean, len(found), len(header.starts)) == (0.5, 5, 2)


async def test_a_fork_takes_over_what_is_alike_and_nothing_else(tmp_path: Path) -> None:
    # Texts that no judge is shown (reference_contexts) make two samples different.
    row = {"retrieved_contexts": ["abcd"], "reference_contexts": ["abce"]}
    kept, changed = {"id": "kept", **row}, {"id": "changed", **row, "reference_contexts": ["abce", "qqqq"]}
    await scored(NonLLMContextRecall, [kept], tmp_path / "first")
    header, found = await scored(NonLLMContextRecall, [kept, changed], tmp_path / "second", fork=tmp_path / "first")
    assert (header.n_taken_over, found["kept"].score, found["changed"].score) == (1, 1.0, 0.5)


async def test_a_fork_of_ids_never_takes_another_samples_verdicts(tmp_path: Path) -> None:
    # Both samples look for "1" and neither has a text: only the ids tell them apart.
    hit = {"id": "hit", "retrieved_context_ids": [1], "reference_context_ids": [1], "retrieved_contexts": ["same"]}
    miss = {**hit, "id": "miss", "retrieved_context_ids": [2]}
    await scored(IDBasedContextRecall, [hit], tmp_path / "first")
    header, found = await scored(IDBasedContextRecall, [miss, hit], tmp_path / "second", fork=tmp_path / "first")
    assert (found["miss"].score, found["hit"].score, header.n_taken_over) == (0.0, 1.0, 1)


async def test_statements_of_another_run_are_looked_for_as_they_are(tmp_path: Path) -> None:
    row = {"id": "a", "retrieved_contexts": ["abcd"], "reference_contexts": ["abcd", "qqqq"]}
    await scored(NonLLMContextRecall, [row], tmp_path / "first")
    other = {**row, "reference_contexts": ["abcd"]}
    _, found = await scored(NonLLMContextRecall, [other], tmp_path / "second", statements_from=tmp_path / "first")
    assert [one.text for one in found["a"].statements] == ["abcd", "qqqq"]
    assert attributed(found["a"]) == [True, False]


async def test_verdicts_that_are_known_stand() -> None:
    sample = Sample(
        id="1", user_input="", reference="", retrieved_contexts=(), retrieved_context_ids=("a",),
        reference_context_ids=("a", "b"),
    )  # fmt: skip
    metric, told = IDBasedContextRecall(), dict[int, Verdict]()

    def keep(new: Numbered, /, echoes: Echoes | None = None) -> None:
        told.update(new)

    known = {1: Verdict(id="b", text="b", attributed=True)}
    found = await metric.score_sample(sample, known=known, on_verdicts=keep)
    assert (attributed(found), list(told)) == ([True, True], [0])
    assert (await metric.make(sample)).statements == (Statement(id="a", text="a"), Statement(id="b", text="b"))
