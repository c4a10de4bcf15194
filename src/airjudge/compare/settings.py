"""What is asked of a comparison."""

from pydantic import Field

from airjudge.schema import Record


class CompareSettings(Record):
    """What is asked of a comparison beside the figures that every one has.

    `by` names columns of the data to slice by, `systems` the one whose values are ranked, `fail_under` the gate on mean
    recall. `margin` is the difference of mean recall that would not matter. `scores_only` compares runs whose
    statements differ by their samples' scores. `labels_random` says that the labelled samples were drawn at random from
    those of the runs, and were not used to calibrate or to write the prompt. `epsilon` is what the alternative
    annotator test takes off an annotator's alignment for the cost of people. `max_disagreements` are shown of each
    pair; None means all.
    """

    by: tuple[str, ...] = ()
    systems: str | None = None
    fail_under: float | None = Field(default=None, ge=0, le=1)
    margin: float = Field(default=0.05, gt=0, lt=1)
    max_disagreements: int | None = Field(default=10, ge=0)
    scores_only: bool = False
    labels_random: bool = False
    epsilon: float = Field(default=0.1, ge=0, lt=1)
