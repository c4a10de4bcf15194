"""A comparison as sections of a page, in the order of a reader's questions."""

from collections.abc import Iterator, Mapping
from typing import Final

from airjudge.cli.sections import Section
from airjudge.compare.records import (
    Accuracy,
    AnnotatorTest,
    Comparison,
    CorrectedRecall,
    Disagreement,
    Interval,
    JudgeFigures,
    Pair,
    Ranking,
    Ruling,
)

_SHOWN: Final[Mapping[bool | None, str]] = {True: "yes", False: "not shown", None: "undefined"}
_SLICES: Final = (
    "pair", "slice", "statements", "agreement", "kappa", "AC1", "first yes", "second yes", "recall difference",
)  # fmt: skip


def sections_of(comparison: Comparison) -> Iterator[Section]:
    """All sections that a comparison has something to say in."""
    yield _judges(comparison)
    yield from _pairs(comparison)
    yield from _against_people(comparison)
    yield from _corrections(comparison)
    yield from _annotator_tests(comparison)
    yield from _repeats(comparison)
    yield from _decisions(comparison)
    yield from _slices(comparison)
    yield from map(_disagreements, (pair for pair in comparison.pairs if pair.disagreements))
    if comparison.notes:
        yield Section("To be known", lines=comparison.notes)


def _judges(comparison: Comparison) -> Section:
    rows = tuple(
        (
            one.name,
            str(one.n),
            _number(one.prevalence),
            _with(one.mean, one.ci95),
            _with(one.micro_mean, one.micro_ci95),
            str(one.samples.n_scored),
            _cost(one),
        )
        for one in comparison.judges
    )
    header = ("judge", "statements", "attributed", "recall (samples)", "recall (statements)", "scored", "took")
    lines = [f"{one.name}: {one.signature}" for one in comparison.judges if one.signature]
    lines += [f"{one.name}: {left}" for one in comparison.judges if (left := _left_out(one))]
    title = f"{comparison.n_samples} samples, {comparison.n_groups} groups, " + (
        f"{comparison.n_statements} statements" if not comparison.scores_only else "scores alone"
    )
    return Section(title, header, rows, tuple(lines))


def _cost(one: JudgeFigures) -> str:
    """What a run took; of recorded verdicts nobody knows it."""
    if one.usage is None or not (one.seconds or one.usage.requests):
        return "-"
    parts = [f"{one.seconds:.1f} s"] if one.seconds else []
    if one.usage.requests:
        parts.append(f"{one.usage.requests} requests")
        parts.append(f"{one.usage.prompt_tokens} + {one.usage.completion_tokens} tokens")
    return ", ".join([*parts, str(one.cost)] if one.cost else parts)


def _left_out(one: JudgeFigures) -> str:
    """What of the comparison a judge gave no verdict or no score on."""
    of_statements, of_samples = one.statements, one.samples
    told = [
        _counted(name, count, what)
        for what, parts in (
            ("statements", (of_statements.n_failed, of_statements.n_unlabelled, of_statements.n_missing, 0)),
            (
                "samples",
                (of_samples.n_failed, of_samples.n_unlabelled, of_samples.n_missing, of_samples.n_undefined),
            ),
        )
        for name, count in zip(("failed", "unlabelled", "missing", "undefined"), parts, strict=True)
        if count
    ]
    return ", ".join(told)


def _counted(name: str, count: int, what: str) -> str:
    return f"{count} {what} {name}"


def _pairs(comparison: Comparison) -> Iterator[Section]:
    pairs = comparison.pairs
    if any(pair.n for pair in pairs):
        alpha = f"Krippendorff's alpha of all judges: {_with(comparison.alpha, comparison.alpha_ci95)}"
        yield Section(
            "Agreement on statements",
            ("pair", "statements", "groups", "agreement", "Cohen's kappa", "Gwet's AC1"),
            tuple(
                (
                    _pair(one),
                    str(one.n),
                    str(one.n_groups),
                    _with(one.agreement, one.agreement_ci95),
                    _with(one.kappa, one.kappa_ci95),
                    _with(one.ac1, one.ac1_ci95),
                )
                for one in pairs
            ),
            (f"{alpha}, on {comparison.alpha_n} statements", "(95 % intervals from resampling groups)"),
        )
        yield Section(
            "Where they differ",
            ("pair", "both yes", "only first", "only second", "both no", "left out", "McNemar p", "permutation p"),
            tuple(
                (
                    _pair(one),
                    *(str(one.table[x][y]) for x, y in ((1, 1), (1, 0), (0, 1), (0, 0))),
                    str(one.n_left_out),
                    _p(one.mcnemar_p),
                    _p(one.permutation_p),
                )
                for one in pairs
            ),
            ("McNemar's test takes statements for independent; the permutation test keeps groups together.",),
        )
    if pairs:
        yield _recalls(pairs)


def _recalls(pairs: tuple[Pair, ...]) -> Section:
    margin = pairs[0].recall.margin
    return Section(
        "Mean recall of samples that both scored",
        ("pair", "samples", "first", "second", "difference", f"within ±{margin:g}", "p", "Pearson", "Spearman"),
        tuple(
            (
                _pair(pair),
                str(one.n),
                _number(one.mean_a),
                _number(one.mean_b),
                _with(one.difference, one.ci95),
                _SHOWN[one.equivalent],
                _p(one.equivalence_p),
                _number(one.pearson),
                _number(one.spearman),
            )
            for pair in pairs
            for one in (pair.recall,)
        ),
        ("Equivalence by two one-sided tests at 5 %: not shown does not mean that they differ.",),
    )


def _against_people(comparison: Comparison) -> Iterator[Section]:
    rows = []
    for one in comparison.judges:
        if one.people is not None:
            rows.append((one.name, *_accuracy_cells(one.people.all)))
            if one.people.without_partial is not None:
                rows.append((f"{one.name}, without partial", *_accuracy_cells(one.people.without_partial)))
    if rows and not comparison.scores_only:
        yield Section(
            "Against people",
            ("judge", "statements", "groups", "sensitivity", "specificity", "balanced accuracy", "F1", "AUC", "kappa"),
            tuple(rows),
        )


def _accuracy_cells(one: Accuracy) -> tuple[str, ...]:
    return (
        f"{one.n} ({one.n_positive} yes)",
        str(one.n_groups),
        _with(one.sensitivity, one.sensitivity_ci95),
        _with(one.specificity, one.specificity_ci95),
        _with(one.balanced_accuracy, one.balanced_accuracy_ci95),
        _with(one.f1, one.f1_ci95),
        _with(one.auc, one.auc_ci95) if one.n_auc else "-",
        _with(one.kappa, one.kappa_ci95),
    )


def _corrections(comparison: Comparison) -> Iterator[Section]:
    corrected = [(one.name, one.people.corrected) for one in comparison.judges if one.people and one.people.corrected]
    if corrected:
        rows = [
            (name, *cells)
            for name, one in corrected
            for cells in (
                ("all statements (Rogan-Gladen)", *_corrected_cells(one.micro)),
                ("mean of samples (prediction-powered)", *_corrected_cells(one.macro)),
            )
        ]
        yield Section(
            "Recall corrected for the judge's errors",
            ("judge", "recall", "as judged", "corrected", "labelled", "not labelled", "labelled groups"),
            tuple(rows),
            ("It holds if the labelled samples were drawn at random, and were not used to calibrate.",),
            n_texts=2,
        )


def _corrected_cells(one: CorrectedRecall) -> tuple[str, ...]:
    return _number(one.raw), _with(one.value, one.ci95), str(one.n_labelled), str(one.n_other), str(one.n_groups)


def _annotator_tests(comparison: Comparison) -> Iterator[Section]:
    tested = [(one.name, one.people.annotators) for one in comparison.judges if one.people and one.people.annotators]
    if tested:
        first = tested[0][1]
        yield Section(
            f"Alternative annotator test (epsilon {first.epsilon:g})",
            ("judge", "annotators", "statements", "winning rate", "advantage", "may stand in for one"),
            tuple((name, *_test_cells(one)) for name, one in tested),
            tuple(f"Assumed: {one}." for one in first.assumptions),
        )


def _test_cells(one: AnnotatorTest) -> tuple[str, ...]:
    passed = {True: "yes", False: "not shown", None: "undefined"}[one.passed]
    return (
        f"{one.n_tested} of {one.n_annotators}",
        str(one.n),
        _number(one.winning_rate),
        _number(one.advantage),
        passed,
    )


def _repeats(comparison: Comparison) -> Iterator[Section]:
    lines = tuple(f"{one.name}: {one.repeats}" for one in comparison.judges if one.repeats)
    if lines:
        yield Section("Each judge against itself: the ceiling of its agreement with any other", lines=lines)


def _decisions(comparison: Comparison) -> Iterator[Section]:
    if comparison.gate is not None:
        gate = comparison.gate
        yield Section(
            f"The gate at recall {gate.limit:g} {_flips(gate.flips)}",
            ("judge", "recall", "gate"),
            tuple((one.judge, _number(one.value), "passes" if one.passed else "fails") for one in gate.outcomes),
        )
    if comparison.ranking is not None:
        yield _ranking(comparison.ranking)


def _ranking(ranking: Ranking) -> Section:
    return Section(
        f"The ranking of {ranking.column} {_flips(ranking.flips)}",
        (ranking.column, *(one.judge for one in ranking.judges)),
        tuple(
            (system, *(f"{_number(one.means[row])} of {one.n_samples[row]}" for one in ranking.judges))
            for row, system in enumerate(ranking.systems)
        ),
        tuple(
            f"{one.a} | {one.b}: Kendall's tau {_number(one.tau)} on {one.n_samples} samples"
            + "".join(f"; {first} over {second} is the other way round" for first, second in one.flipped)
            for one in ranking.pairs
        ),
    )


def _flips(flips: bool) -> str:
    return "depends on the judge" if flips else "is the same for all judges"


def _slices(comparison: Comparison) -> Iterator[Section]:
    rows = tuple(
        (
            _pair(pair),
            f"{one.column} = {_shortened(one.value)}",
            str(one.n),
            _number(one.agreement),
            _number(one.kappa),
            _number(one.ac1),
            _number(one.prevalence_a),
            _number(one.prevalence_b),
            _number(one.recall_difference),
        )
        for pair in comparison.pairs
        for one in pair.slices
    )
    if rows:
        header = (
            "pair",
            "slice",
            "statements",
            "agreement",
            "kappa",
            "AC1",
            "first yes",
            "second yes",
            "recall difference",
        )
        yield Section("Slices", header, rows, n_texts=2)


def _disagreements(pair: Pair) -> Section:
    shown = len(pair.disagreements)
    return Section(
        f"{_pair(pair)}: {pair.n_disagreements} disagreements, the {shown} most confident",
        ("sample", "statement", "text", pair.a, pair.b),
        tuple(_disagreement_cells(one) for one in pair.disagreements),
        n_texts=3,
    )


def _disagreement_cells(one: Disagreement) -> tuple[str, ...]:
    return one.sample, one.statement, _shortened(one.text, 120), _ruling(one.a), _ruling(one.b)


def _ruling(one: Ruling) -> str:
    said = "yes" if one.attributed else "no"
    return said if one.probability is None else f"{said} ({one.probability:.3f})"


def _pair(one: Pair) -> str:
    return f"{one.a} | {one.b}"


def _with(value: float | None, interval: Interval) -> str:
    return _number(value) + (f" ({interval[0]:.3f} to {interval[1]:.3f})" if value is not None and interval else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
