"""One setting: its name in the file, its variables, its default and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from carrel.config.kind import SettingKind

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(Generic[T_co]):
    """One setting."""

    name: str
    """Its table in the file and its name there, with a dot between."""
    kind: SettingKind[T_co]
    default: object
    """As it would stand in the file; `None` if it is not set."""
    meaning: str
    variable: str | None = None
    """The variable that goes before the file."""
    alias: str | None = None
    """Another variable, read where the first is not set."""
    file_alias: str | None = None
    """Another name in the same table of the file."""
    is_used: bool = True
    """Whether anything makes use of it yet; one that nothing uses is checked all the same."""
    is_secret: bool = False
    """Whether its value must not be shown to anybody."""

    @property
    def place(self) -> tuple[str, ...]:
        """The names that lead to it in the file."""
        return tuple(self.name.split("."))

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """All the names it goes by in the file, its own first."""
        return (self.place, (*self.place[:-1], self.file_alias)) if self.file_alias else (self.place,)

    @property
    def variables(self) -> tuple[str, ...]:
        """All the variables it is read from, its own first."""
        return tuple(name for name in (self.variable, self.alias) if name)
