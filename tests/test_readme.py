"""What README says is true: its options exist, its example runs, its figures are those of the benchmarks."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest

from airjudge.profiles import default_profile_name
from benchmarks.claims import run as claims
from benchmarks.evidence import run as evidence
from benchmarks.peers import run as peers
from benchmarks.scaling import run as scaling

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "results"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def ours(*arguments: str) -> str:
    command = [sys.executable, "-m", "airjudge", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_each_option_of_the_table_exists() -> None:
    options = set(re.findall(r"--[a-z][a-z-]+", README.split("| option |")[1].split("\n\n")[0]))
    assert len(options) >= 10
    known = ours("score", "--help")
    assert not [option for option in options if option not in known]


def test_each_command_of_the_shell_blocks_exists() -> None:
    lines = [line.split("#")[0].split() for block in blocks("sh") for line in block.splitlines()]
    targets = {words[1] for words in lines if words[:1] == ["make"]}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets >= {"demo", "test"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    commands = {words[1] for words in lines if words and words[0].endswith("airjudge")}
    assert commands >= {"score", "serve"}
    assert all(f"  {command} " in ours("--help") for command in commands)


def test_the_named_default_is_the_default() -> None:
    assert f"`{default_profile_name('cpu')}`" in README


@pytest.mark.server
@pytest.mark.usefixtures("smollm_ready")
def test_the_python_example_runs() -> None:
    [example] = blocks("python")
    assert 'Judge.serve("qwen2.5-coder-1.5b")' in example
    script = example.replace('"qwen2.5-coder-1.5b"', '"smollm2-135m"')
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    value, statements, signature = ended.stdout.splitlines()
    assert float(value) in {0.0, 0.5, 1.0}
    assert "埃菲尔铁塔位于巴黎。" in statements
    assert "smollm2-135m" in signature


def test_the_accuracy_figures_are_those_of_the_benchmark() -> None:
    found = json.loads((RESULTS / "accuracy.json").read_text(encoding="utf-8"))
    for name, figures in found["sets"].items():
        low, high = figures["auc_ci95"]
        assert f"| {name} | {figures['n']} | {figures['auc']:.3f} ({low:.2f}–{high:.2f}) |" in BENCHMARKS
        assert f"| {name} | {figures['n']} | {figures['auc']:.2f} | {figures['balanced_accuracy']:.2f} |" in README
    for key in ("auc", "balanced_accuracy"):
        assert f"{found['means'][key]:.3f}" in BENCHMARKS


def test_the_efficiency_figures_are_those_of_the_benchmark() -> None:
    found = json.loads((RESULTS / "efficiency.json").read_text(encoding="utf-8"))
    for name, milliseconds in found["client_ms_per_verdict"].items():
        assert f"| {name} | {milliseconds:.2f} |" in BENCHMARKS
    for name, tokens in found["tokens"].items():
        figures = f"| {tokens['computed']:.0f} | {tokens['unique']:.0f} | {tokens['ratio']:.3f} |"
        assert re.search(rf"\| {name}[^|]* {re.escape(figures)}", BENCHMARKS)
    assert f"{found['time']['median_ratio']:.3f}" in BENCHMARKS


def test_the_figures_of_chaos_and_scale_are_those_of_the_benchmarks() -> None:
    chaos = json.loads((RESULTS / "chaos.json").read_text(encoding="utf-8"))
    assert chaos["wrong"] == []
    assert f"{chaos['n_kills']} kills over {chaos['n_runs']} runs, {chaos['n_starts']} starts" in BENCHMARKS
    scale = json.loads((RESULTS / "scale.json").read_text(encoding="utf-8"))
    assert f"| samples | {scale['samples']} |" in BENCHMARKS
    assert f"| verdicts per s | {scale['verdicts_per_s']:.0f} |" in BENCHMARKS


def test_the_agreement_figures_are_those_of_the_benchmark() -> None:
    found = json.loads((RESULTS / "agreement.json").read_text(encoding="utf-8"))
    for name, one in found["sets"].items():
        for judge, told in one["judges"].items():
            every = told["all"]
            figures = [every["auc"], every["balanced_accuracy"], every["kappa"]]
            shown = ["–" if value is None else rf"{value:.3f}[^|]*" for value in figures]
            row = r" \| ".join([name, re.escape(judge), str(every["n"]), *shown])
            assert re.search(row, BENCHMARKS), row
        before, after = one["calibrated"]["before"], one["calibrated"]["after"]
        row = f"| {name} | {before['balanced_accuracy']:.3f} | {after['balanced_accuracy']:.3f} |"
        assert row in BENCHMARKS
    means = found["means"]
    assert f"reached: {means['balanced_accuracy_calibrated']:.3f}".replace("0.", ".") in BENCHMARKS
    assert f"not reached: {means['auc']:.3f}".replace("0.", ".") in BENCHMARKS


def test_the_figures_of_fitted_weights_are_those_of_the_benchmark() -> None:
    for name, told in json.loads((RESULTS / "stacked.json").read_text(encoding="utf-8")).items():
        cells = " | ".join(f"{value[0]:.3f} / {value[1]:.3f}" for value in told.values())
        assert f"| {name} | {cells} |" in BENCHMARKS


def test_the_figures_of_the_methods_are_those_of_the_benchmark() -> None:
    rows = json.loads((RESULTS / "methods.json").read_text(encoding="utf-8"))["rows"]
    assert {row["method"] for row in rows} == {"pointwise", "reasoned", "ragas", "opik"}
    for row in rows:
        told = ["–" if row[name] is None else rf"{row[name]:.3f}[^|]*" for name in ("auc", "balanced_accuracy")]
        told += [f"{row['mean_absolute_error']:.3f}", "–" if row["spearman"] is None else f"{row['spearman']:.3f}"]
        usage = [f"{row['usage'][name]:,}" for name in ("requests", "completion_tokens")]
        statements = str(row["n_statements"] or "–")
        cells = r" \| ".join([row["set"], row["method"], str(row["n_samples"]), statements, *told, *usage])
        assert re.search(rf"\| {cells} \|", BENCHMARKS), cells


def test_the_figures_of_evidence_are_those_of_the_benchmark() -> None:
    found = evidence.Found.model_validate_json((RESULTS / "evidence.json").read_bytes())
    for line in evidence.tables(found):
        assert line in BENCHMARKS


def test_the_figures_of_claims_are_those_of_the_benchmark() -> None:
    measured = claims.Measured.model_validate_json((RESULTS / "claims.json").read_bytes())
    for line in claims.table(measured):
        assert line in BENCHMARKS


def test_the_figures_of_scaling_are_those_of_the_benchmark() -> None:
    measured = scaling.Measured.model_validate_json((RESULTS / "scaling.json").read_bytes())
    for line in scaling.table(measured):
        assert line in BENCHMARKS
    assert all(curve.last_exponent < 1.1 for curve in measured.curves)
    assert (ROOT / "benchmarks" / "scaling" / "scaling.svg").read_text(encoding="utf-8") == scaling.plot(measured)


@pytest.mark.parametrize("name", ["peers", "limits", "startup", "long"])
def test_the_tables_of_a_benchmark_are_those_of_its_results(name: str) -> None:
    benchmark = import_module(f"benchmarks.{name}.run")
    measured = benchmark.Measured.model_validate_json((RESULTS / f"{name}.json").read_bytes())
    for line in benchmark.table(measured):
        assert line in BENCHMARKS


def test_what_is_said_of_the_peers_is_what_was_measured() -> None:
    turns = peers.held(RESULTS / "peers.json").turns
    for dataset, least in (("wice_subclaims", 3), ("factcheck_bench_responses", 2)):
        ours, theirs = (
            [one for one in turns if (one.tool, one.dataset) == (tool, dataset)]
            for tool in ("airjudge pointwise", "ragas")
        )
        ratio = peers.ratio_to(ours, theirs)
        assert ratio is not None
        assert ratio >= least
        assert not any(one.failures for one in ours)
        if dataset == "wice_subclaims":
            error = median(one.mean_absolute_error or 0 for one in ours) / median(
                one.mean_absolute_error or 1 for one in theirs
            )
            covered = median((one.covered or 0) / one.n_statements for one in theirs)
            sentence = README.split("On the same server, weights and samples")[1].split("\n\n")[0]
            assert f"ragas {theirs[0].version} on {covered:.2f} of them" in sentence
            assert f"{ratio:.1f} times as many of them a second, with {error:.2f} of the error" in sentence


def test_what_readme_says_of_recorded_judges_is_what_was_measured() -> None:
    judges = json.loads((RESULTS / "agreement.json").read_text(encoding="utf-8"))["sets"]["wice_subclaims"]["judges"]
    said = {name: f"{told['all']['balanced_accuracy']:.2f}" for name, told in judges.items()}
    sentence = README.split("On the first set, same statements:")[1].split("Calibrated")[0]
    assert re.findall(r"0\.\d\d", sentence) == [
        said[name] for name in ("gpt-4-0613", "gpt-3.5-turbo-0613", "t5-3b-anli-wice")
    ]


def test_every_picture_of_readme_is_there() -> None:
    pictures = re.findall(r"\.github/images/[\w-]+\.png", README)
    assert len(pictures) >= 4
    assert all((ROOT / picture).stat().st_size < 150_000 for picture in pictures)
