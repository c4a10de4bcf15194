from collections.abc import Callable

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from airjudge.agreement import Bools, cohen_kappa, gwet_ac1, mcnemar_exact, raw_agreement
from tests.marks import bools, of_table

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
TABLES = st.tuples(*[st.integers(0, 12)] * 4)

Measure = Callable[[Bools, Bools], float | None]
MEASURES = [raw_agreement, cohen_kappa, gwet_ac1]


def test_agreement_is_the_share_of_equal_verdicts() -> None:
    assert raw_agreement(bools("xx.."), bools("x.x.")) == 0.5
    assert raw_agreement(bools("xx.."), bools("xx..")) == 1
    assert raw_agreement(bools("x"), bools(".")) == 0


def test_kappa_matches_hand_computation() -> None:
    # Ten statements, 8 agreements (6 yes, 2 no): p_o = 0.8. Each judge says
    # yes 7 times: p_e = 0.49 + 0.09 = 0.58. kappa = 0.22 / 0.42.
    assert cohen_kappa(bools("xxxxxxx..."), bools("xxxxxx.x..")) == pytest.approx(0.22 / 0.42)


def test_kappa_matches_a_textbook_table() -> None:
    # 50 proposals, 20 yes-yes, 15 no-no, 5 and 10 mixed: p_o = .7, p_e = .5, kappa = .4
    # (the example of the Wikipedia article "Cohen's kappa").
    assert cohen_kappa(*of_table(20, 5, 10, 15)) == pytest.approx(0.4)


def test_kappa_is_undefined_where_chance_alone_agrees() -> None:
    assert cohen_kappa(bools("xxx"), bools("xxx")) is None
    assert cohen_kappa(bools("..."), bools("...")) is None
    assert cohen_kappa(bools("xxx"), bools("...")) == 0
    assert cohen_kappa(bools("xxx"), bools("x..")) == 0


def test_kappa_of_one_statement_is_undefined_or_chance() -> None:
    assert cohen_kappa(bools("x"), bools("x")) is None
    assert cohen_kappa(bools("x"), bools(".")) == 0


@settings(max_examples=40, deadline=None)
@given(PAIRS)
def test_kappa_is_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    a, b = np.array(pairs, dtype=bool).T
    kappa = cohen_kappa(a, b)
    if kappa is not None:
        assert kappa == pytest.approx(sklearn.metrics.cohen_kappa_score(a, b), abs=1e-12)
    else:
        assert len({*a, *b}) == 1


def test_ac1_matches_a_published_table() -> None:
    # Gwet (2002), Kappa Statistic is not Satisfactory for Assessing the Extent of Agreement Between
    # Raters: 125 subjects, 118 yes-yes, 5 and 2 mixed, no no-no. Agreement .944; the mean share of yes is
    # 243/250 = .972, chance 2 · .972 · .028 = .054432, AC1 = .889568/.945568 = .9408; kappa = -.0234.
    table = of_table(118, 5, 2, 0)
    assert gwet_ac1(*table) == pytest.approx(0.9408, abs=5e-5)
    assert cohen_kappa(*table) == pytest.approx(-0.0234, abs=5e-5)


def test_ac1_does_not_fall_with_prevalence_as_kappa_does() -> None:
    # Feinstein and Cicchetti (1990), tables 1 and 2: agreement .85 both times, kappa .70 and .32.
    # Chance of AC1: shares .475 and .875, so 2 · .475 · .525 = .49875 and 2 · .875 · .125 = .21875.
    balanced, skewed = of_table(40, 9, 6, 45), of_table(80, 10, 5, 5)
    assert [cohen_kappa(*balanced), cohen_kappa(*skewed)] == pytest.approx([0.70, 0.32], abs=0.005)
    assert gwet_ac1(*balanced) == pytest.approx((0.85 - 0.49875) / (1 - 0.49875))
    assert gwet_ac1(*skewed) == pytest.approx((0.85 - 0.21875) / (1 - 0.21875))


def test_ac1_of_constant_equal_judges_is_one() -> None:
    assert gwet_ac1(bools("xxx"), bools("xxx")) == 1
    assert gwet_ac1(bools("."), bools(".")) == 1
    # Always opposite: agreement 0, chance 1/2.
    assert gwet_ac1(bools("xx"), bools("..")) == -1


@pytest.mark.parametrize("measure", MEASURES)
def test_without_statements_agreement_is_undefined(measure: Measure) -> None:
    assert measure(bools(""), bools("")) is None


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=40, deadline=None)
@given(pairs=PAIRS)
def test_neither_order_nor_the_name_of_a_class_matters(measure: Measure, pairs: list[tuple[bool, bool]]) -> None:
    a, b = np.array(pairs, dtype=bool).T
    value = measure(a, b)
    assert value == measure(b, a)
    assert measure(~a, ~b) == (None if value is None else pytest.approx(value, abs=1e-12))
    assert value is None or -1 <= value <= 1


@pytest.mark.parametrize("measure", MEASURES)
def test_arrays_about_different_statements_are_refused(measure: Measure) -> None:
    with pytest.raises(ValueError, match="must share one shape"):
        measure(bools("x."), bools("x.."))
    with pytest.raises(ValueError, match="must share one shape"):
        measure(np.ones((2, 2), dtype=bool), np.ones((2, 2), dtype=bool))


def test_mcnemar_matches_hand_computation() -> None:
    # 1 against 5: 2 · (C(6,0) + C(6,1)) / 2^6 = 14/64.
    assert mcnemar_exact(1, 5) == pytest.approx(14 / 64)
    assert mcnemar_exact(0, 1) == 1
    assert mcnemar_exact(3, 3) == 1


@settings(max_examples=40, deadline=None)
@given(TABLES)
def test_mcnemar_is_that_of_statsmodels_and_of_scipys_binomial_test(table: tuple[int, int, int, int]) -> None:
    both, only_a, only_b, neither = table
    p = mcnemar_exact(only_a, only_b)
    if only_a + only_b == 0:
        assert p is None
        return
    assert p == pytest.approx(mcnemar([[both, only_a], [only_b, neither]], exact=True).pvalue)
    assert p == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue)
    assert p == mcnemar_exact(only_b, only_a)


def test_mcnemar_of_a_large_lopsided_table_is_small_and_not_negative() -> None:
    p = mcnemar_exact(0, 5000)
    assert p is not None
    assert 0 <= p < 1e-300


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 2)
