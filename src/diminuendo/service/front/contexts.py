"""Contexts at the front end: from what is known of a user to the number of the type, as streams/contexts.py says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diminuendo.errors import InvalidInput

OTHER = "other"


class Types:
    """Columns with their values, and types by number. Type 0 is a user of whom nothing is known."""

    def __init__(self, columns: Mapping[str, Sequence[str]], private: bool) -> None:
        self._columns = {
            name: {value: number for number, value in enumerate(values, start=1)}
            for name, values in columns.items()
        }
        self._private = private

    def __bool__(self) -> bool:
        return bool(self._columns)

    def of(self, context: Any) -> int:
        """The type of one user. A public context that is not listed is refused; a private one never is."""
        values = self._by_column(context)
        if values is None:
            if not self._private:
                raise InvalidInput("A context has a value for each column, by its name or in order.")
            return 0
        result = 0
        for value, numbers in zip(values, self._columns.values(), strict=True):
            number = 0
            if value is not None:
                try:
                    number = numbers.get(str(value), numbers.get(OTHER, -1))
                except Exception:  # a number of too many digits has no text
                    number = -1
            if number < 0 and not self._private:
                raise InvalidInput("A context has values that are listed, or null where nothing is known.")
            result = result * (len(numbers) + 1) + max(number, 0)
        return result

    def _by_column(self, context: Any) -> list[Any] | None:
        """The value of each column; None where it cannot be read."""
        if context is None:
            return [None] * len(self._columns)
        if isinstance(context, dict):
            if not self._private and not context.keys() <= self._columns.keys():
                return None
            return [context.get(name) for name in self._columns]
        values = context if isinstance(context, list) else [context]
        return values if len(values) == len(self._columns) else None
