"""How a data set is scored."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from airjudge.schema import Record


class RunSettings(Record):
    """How a data set is scored.

    `limit` is the number of places taken from its start; `keep` names input columns that are carried
    into the records, `by` those that the summary is sliced by, which are carried too; `bad_lines` says
    whether a malformed one is a record or stops the run. `overwrite` replaces a run in the folder;
    `retry_failed` asks again what failed in it; `fork` names the folder of another run whose verdicts are
    taken over where they are still valid; `statements_from` that of a finished run whose statements are judged, of
    the sample with the same id, so that another judge, or another retriever, is held against the same units.
    """

    zero_if_empty: bool = True
    limit: int | None = Field(default=None, ge=1)
    keep: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    bad_lines: Literal["record", "stop"] = "record"
    overwrite: bool = False
    retry_failed: bool = False
    fork: Path | None = None
    statements_from: Path | None = None

    @property
    def carried(self) -> tuple[str, ...]:
        """Columns that go into the records, each once; the group has a field of its own."""
        return tuple(dict.fromkeys(name for name in (*self.keep, *self.by) if name != "group"))
