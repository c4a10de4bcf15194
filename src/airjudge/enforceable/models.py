"""The JSON schema of a type, as pydantic writes it, with what it leaves unsaid that would matter."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from pydantic import JsonValue, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

T = TypeVar("T")


class _AsWritten(GenerateJsonSchema):
    """A bounded Decimal is one of its numbers; any other is refused, for `1e+400` is no Decimal to pydantic."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        """A number with the Decimal's bounds; what numbers do not have is kept, to be refused by its name."""
        said = cast("dict[str, Any]", schema)
        made = self.float_schema(core_schema.float_schema())
        bounds = {name: float(said[name]) for name in ("multiple_of", "le", "ge", "lt", "gt") if name in said}
        self.update_with_validations(made, cast("dict[Any, Any]", bounds), self.ValidationsMapping.numeric)
        unsaid = {name: said[name] for name in ("max_digits", "decimal_places") if name in said}
        return made | unsaid | ({} if bounds else {"format": "decimal"})


def adapter_of(model: type[T]) -> TypeAdapter[T]:
    """What validates a type."""
    return TypeAdapter(model)


def json_schema_of(model: type[T]) -> Mapping[str, JsonValue]:
    """The schema of what a type takes, by its aliases."""
    return adapter_of(model).json_schema(schema_generator=_AsWritten)
