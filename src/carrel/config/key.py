"""`Key`: one setting, with its name in the file, its environment variables, default and description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from carrel.config.kind import SettingKind

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(Generic[T_co]):
    """One setting."""

    name: str
    """Table and key in the file, joined by a dot."""
    kind: SettingKind[T_co]
    default: object
    """Default, as it would be written in the file; `None` for unset."""
    meaning: str
    variable: str | None = None
    """Environment variable that overrides the file."""
    alias: str | None = None
    """Environment variable that is read if `variable` is not set."""
    file_alias: str | None = None
    """Alternative key in the same table of the file."""
    is_used: bool = True
    """Whether the setting has an effect; one without effect is validated all the same."""
    is_secret: bool = False
    """Whether the value must never be shown."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names that lead to the setting in the file."""
        return tuple(self.name.split("."))

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """All paths of the setting in the file, its own first."""
        return (self.path, (*self.path[:-1], self.file_alias)) if self.file_alias else (self.path,)

    @property
    def variables(self) -> tuple[str, ...]:
        """All environment variables that set it, its own first."""
        return tuple(name for name in (self.variable, self.alias) if name)
