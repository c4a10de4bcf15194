"""The benchmark of start-up: stages from the times at which they ended, and one real demo of it."""

import pytest

from benchmarks.startup import run


def demo(arm: run.Arm, repeat: int, whole_s: float) -> run.Demo:
    return run.Demo(arm=arm, repeat=repeat, stages_s=dict.fromkeys((*run.STAGES, *run.REST), 1.0), whole_s=whole_s)


def test_a_stage_lasts_from_the_end_of_the_one_before_and_one_that_is_not_there_took_none() -> None:
    names = list(run.STAGES)
    stamps = {names[0]: 11.0, names[1]: 15.0, names[2]: 15.0, names[4]: 18.0}
    found = run.stages_of(10.0, stamps, 20.0)
    assert list(found.values()) == [1, 4, 0, 0, 3, 0, 0, 0, 2]
    assert sum(found.values()) == 10


def test_a_log_that_tells_no_stage_is_an_error_and_no_table_of_zeros() -> None:
    with pytest.raises(ValueError, match="tells of no stage"):
        run.stages_of(10.0, {next(iter(run.STAGES)): 11.0}, 20.0)


def test_the_ratio_is_the_median_over_pairs_of_the_same_repeat() -> None:
    demos = [
        demo("against", 1, 10),
        demo("this", 1, 5),
        demo("against", 2, 20),
        demo("this", 2, 14),
        demo("this", 3, 1),
    ]
    assert run.ratio(demos) == pytest.approx((0.5 + 0.7) / 2)
    assert run.ratio(demos[1:2]) is None


@pytest.mark.usefixtures("smollm_ready")
def test_every_stage_of_a_real_demo_is_seen() -> None:
    found = run.demo("smollm2-135m", run.SOURCES, arm="this", repeat=1)
    assert sum(found.stages_s.values()) == pytest.approx(found.whole_s, abs=0.1)
    unseen = {name for name, seconds in found.stages_s.items() if not seconds}
    assert unseen <= {"KV cache"}  # of a small judge it may take less than a look at the log
