"""What contexts are worth by what they support: by hand, and what holds for any ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airjudge.chunks import average_precision, chunks_of, precision, ranked, reciprocal_rank
from airjudge.schema import Chunks, ScoredSample, Support, Verdict
from airjudge.summary import summarise

CONTEXTS = ("One.", "  ", "Three.", "Four.")


def verdict(*support: Support, attributed: bool = True) -> Verdict:
    return Verdict(
        id="1", text="Text.", attributed=attributed, probability=0.9, support=support if attributed else None
    )


def entry(context: int, *, attributed: bool | None = True) -> Support:
    return Support(context=context, probability=None, attributed=attributed)


def relevant(marks: str) -> list[bool]:
    return [mark == "x" for mark in marks]


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [
        # Ranks 1 and 3: precision 2/4; (1/1 + 2/3) / 2 = 5/6; first at 1.
        ("x.x.", (2 / 4, 5 / 6, 1)),
        # Ranks 2, 3 and 5: 3/5; (1/2 + 2/3 + 3/5) / 3 = 53/90; first at 2.
        (".xx.x", (3 / 5, 53 / 90, 1 / 2)),
        ("xx", (1, 1, 1)),
        ("...", (0, 0, 0)),
        ("", (None, None, None)),
    ],
)
def test_figures_match_hand_computation(marks: str, wanted: tuple[float | None, ...]) -> None:
    found = [figure(relevant(marks)) for figure in (precision, average_precision, reciprocal_rank)]
    assert found == [one if one is None else pytest.approx(one) for one in wanted]


@given(st.text(alphabet="x.", min_size=1, max_size=12))
def test_figures_are_shares_and_a_relevant_context_moved_up_never_lowers_them(marks: str) -> None:
    figures = precision, average_precision, reciprocal_rank
    found = [figure(relevant(marks)) for figure in figures]
    assert all(one is not None and 0 <= one <= 1 for one in found)
    best = [figure(relevant("".join(sorted(marks, reverse=True)))) for figure in figures]
    assert all(
        high >= low - 1e-12 for low, high in zip(found, best, strict=True) if low is not None and high is not None
    )
    for at in range(1, len(marks)):
        if marks[at - 1 : at + 1] == ".x":
            moved = marks[: at - 1] + "x." + marks[at + 1 :]
            assert (average_precision(relevant(moved)) or 0) >= (found[1] or 0)
            assert (reciprocal_rank(relevant(moved)) or 0) >= (found[2] or 0)


@given(st.text(alphabet="x.", min_size=1, max_size=12))
def test_average_precision_is_that_of_scikit_learn(marks: str) -> None:
    from sklearn.metrics import average_precision_score

    truth = np.array(relevant(marks))
    if truth.any():
        ranks = -np.arange(len(marks), dtype=np.float64)
        assert average_precision(relevant(marks)) == pytest.approx(average_precision_score(truth, ranks))


def test_blank_contexts_have_no_rank_and_one_statement_is_enough() -> None:
    # Ranked are 1, 3 and 4; 4 supports the second statement: ranks ..x, precision 1/3, average precision 1/3.
    verdicts = (
        verdict(entry(1, attributed=False), entry(4, attributed=False)),
        verdict(entry(3, attributed=False), entry(4)),
        verdict(attributed=False),
    )
    found = chunks_of(verdicts, CONTEXTS)
    assert (found.n_contexts, found.blank, found.n_supporting) == (4, (2,), 1)
    assert (found.precision, found.average_precision, found.reciprocal_rank) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert ranked(verdicts, n_contexts=4, blank=(2,)) == found


def test_contexts_of_a_sample_that_missed_everything_are_worth_nothing_and_without_any_it_is_undefined() -> None:
    missed = (verdict(attributed=False),)
    assert chunks_of(missed, CONTEXTS).average_precision == 0
    nothing = chunks_of(missed, (" ",))
    assert (nothing.precision, nothing.average_precision, nothing.reciprocal_rank) == (None, None, None)


def test_a_failed_question_makes_the_figures_undefined_only_if_its_answer_matters() -> None:
    open_one = verdict(entry(1), entry(3, attributed=None))
    assert chunks_of((open_one,), CONTEXTS).precision is None
    assert chunks_of((open_one, verdict(entry(1, attributed=False), entry(3))), CONTEXTS).precision == 2 / 3
    assert chunks_of((Verdict(id="1", text="T.", attributed=True),), CONTEXTS).precision is None  # nobody asked


def sample(name: str, figure: float | None, *support: Support, group: str | None = None) -> ScoredSample:
    told = Chunks(n_contexts=2, n_supporting=1, precision=figure, average_precision=figure, reciprocal_rank=figure)
    verdicts = (verdict(*support),) if support else (verdict(attributed=False),)
    return ScoredSample(id=name, score=1.0, status="scored", statements=verdicts, chunks=told, group=group)


def test_the_summary_has_means_with_intervals_over_groups_and_counts_what_has_none() -> None:
    # (0 + .5 + 1) / 3; supported alone in a and d, together in b, unknown in c.
    samples = [
        sample("a", 0.0, entry(1), entry(2, attributed=False)),
        sample("b", 0.5, entry(1, attributed=False), entry(2, attributed=False)),
        sample("c", None, entry(1, attributed=None), entry(2, attributed=False)),
        sample("d", 1.0, entry(1)),
        sample("e", None),
    ]
    found = summarise(samples, rng=np.random.default_rng(0)).chunks
    assert found is not None
    assert (found.precision, found.average_precision, found.reciprocal_rank) == (0.5, 0.5, 0.5)
    assert (found.n_samples, found.n_without) == (3, 2)
    assert (found.n_supported, found.n_alone, found.n_together) == (4, 2, 1)
    assert found.precision_ci95 is not None
    assert found.precision_ci95[0] < 0.5 < found.precision_ci95[1]
    one_group = [one.model_copy(update={"group": "g"}) for one in samples]
    in_one = summarise(one_group, rng=np.random.default_rng(0)).chunks
    assert in_one is not None
    assert (in_one.precision, in_one.precision_ci95) == (0.5, None)


def test_what_contexts_are_worth_changes_no_other_figure_of_a_summary() -> None:
    samples = [sample(str(n), n / 9, entry(1), group=str(n % 3)) for n in range(9)]
    bare = [one.model_copy(update={"chunks": None}) for one in samples]
    with_them, without = (summarise(ones, rng=np.random.default_rng(3), by=("group",)) for ones in (samples, bare))
    assert with_them.chunks is not None
    assert without.chunks is None
    assert with_them.model_copy(update={"chunks": None}) == without
