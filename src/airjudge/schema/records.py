"""What every record of ours is."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen record of ours; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
