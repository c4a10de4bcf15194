"""What people, or another judge, ruled on statements; and which of a run's statements that concerns."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field

from airjudge.schema import Record, ScoredSample, Verdict


class Label(Record):
    """What one person, several, or another judge ruled on one statement of a sample.

    The statement is told by `id`, by `text` or by both, or by `named`, which is one of them and does not say
    which. `attributed` is None where nobody decided. `votes` are those of single people, in the same order all
    over a data set; `partial` marks a statement that is supported in part. `score` is what a judge recorded
    beside its verdict, on whatever scale; `probability` is the same where it lies in [0, 1].
    """

    sample: str
    id: str | None = None
    text: str | None = None
    named: str | None = None
    attributed: bool | None
    votes: tuple[bool | None, ...] = ()
    partial: bool = False
    score: float | None = None
    probability: float | None = Field(default=None, ge=0, le=1)
    reason: str | None = None

    def is_on(self, verdict: Verdict) -> bool:
        """Say whether it is on the statement of a verdict of the same sample: all that it tells fits."""
        return (
            self.id in {None, verdict.id}
            and (self.text is None or self.text.strip() == verdict.text.strip())
            and (self.named is None or self.named.strip() in {verdict.id, verdict.text.strip()})
        )


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of many samples: `by_sample` by the sample's id, `groups` by the same where they are known.

    `hosted` says whether the judge that they are of runs at a provider's; None where nothing tells it.
    """

    name: str
    by_sample: Mapping[str, tuple[Label, ...]]
    groups: Mapping[str, str] = field(default_factory=dict)
    hosted: bool | None = None

    def on(self, sample: ScoredSample) -> tuple[Label | None, ...]:
        """The label of each statement of a sample, in order; None where there is none.

        A label that names a text alone is on each statement with that text.
        """
        own = self.by_sample.get(sample.id, ())
        return tuple(next((one for one in own if one.is_on(verdict)), None) for verdict in sample.statements)

    def group_of(self, sample: ScoredSample) -> str:
        """The unit of independence of a sample: its group, that which the labels know, or the sample itself."""
        return sample.group or self.groups.get(sample.id) or sample.id
