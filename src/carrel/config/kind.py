"""`SettingKind`: validates the value of a setting and converts it from the file and the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from types import MappingProxyType
from typing import Generic, Literal, NamedTuple, TypeVar

Mode = Literal["ro", "rw"]
KeyPath = tuple[str | int, ...]
"""Keys and list indexes that lead to a value in a document."""
Roles = Mapping[str, tuple[str, ...]]

NONE = "none"
"""The value for "no limit", because TOML has no null."""
SHOWN_CHARACTERS = 60
_UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_MODES: dict[str, Mode] = {
    "ro": "ro",
    "readonly": "ro",
    "read-only": "ro",
    "rw": "rw",
    "readwrite": "rw",
    "read-write": "rw",
}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True}
_SWITCHES |= {"0": False, "false": False, "no": False, "off": False}
_ROLE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,18})[ ]?(KB|MB|GB)?", re.ASCII | re.IGNORECASE)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class InvalidValueError(ValueError):
    """The value is invalid; `at` leads from the setting to the invalid part."""

    def __init__(self, reason: str = "", at: KeyPath = ()) -> None:
        """Keep the *reason*; the default is that the value is of another kind."""
        super().__init__(reason)
        self.at = at


class AllowedPath(NamedTuple):
    """A host directory and the access mode beneath it."""

    path: Path
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingKind(Generic[T_co]):
    """One kind of value."""

    says: str
    """Describes valid values, after "must be"."""
    make: Callable[[object, str | None], T_co]
    """Convert a value of the file, given the home directory, or raise `InvalidValueError`."""
    from_text: Callable[[str], object] = str
    """Convert the text of a variable to the value a file would have."""

    def check(self, value: object, home: str | None, *at: str | int) -> T_co:
        """Validate and convert a value of the file, found *at* a path below the setting.

        Raises:
            InvalidValueError: The value is invalid; the reason ends a sentence that starts with the setting.
        """
        try:
            return self.make(value, home)
        except InvalidValueError as error:
            reason = str(error) or f"must be {self.says}, not {short_repr(value)}"
            raise InvalidValueError(reason, (*at, *error.at)) from None


def short_repr(value: object) -> str:
    """Return a short text of *value* for error messages."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, date | time):
        return "a date or a time"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of that size"
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


# Numbers and switches


def number(low: int, high: int) -> SettingKind[int]:
    """Accept an integer in a range."""
    return SettingKind(
        says=f"a whole number from {low} to {high}",
        make=lambda value, home: _whole(value, low, high),
        from_text=_number_of,
    )


def number_or_none(low: int, high: int) -> SettingKind[int | None]:
    """Accept an integer in a range, or no limit."""
    return SettingKind(
        says=f'a whole number from {low} to {high} or "{NONE}"',
        make=lambda value, home: None if value == NONE else _whole(value, low, high),
        from_text=_number_of,
    )


def _whole(value: object, low: int, high: int) -> int:
    # bool is a subclass of int, but not a number in TOML.
    if type(value) is not int or not low <= value <= high:
        raise InvalidValueError
    return value


def _number_of(text: str) -> object:
    text = text.strip()
    return int(text) if len(text) <= 18 and text.isascii() and text.isdecimal() else text.lower()


def _size(value: object, home: str | None) -> int:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = int(match[1]) * _UNITS[(match[2] or "").upper()] if match else value
    return _whole(size, 0, 2**60 - 1)


SIZE = SettingKind(says='a number of bytes, or a text like "512KB", "10MB" or "1GB"', make=_size)
"""Bytes; KB, MB and GB are powers of 1024."""


def _switch(value: object, home: str | None) -> bool:
    if not isinstance(value, bool):
        raise InvalidValueError
    return value


SWITCH = SettingKind(
    says="true or false",
    make=_switch,
    from_text=lambda text: _SWITCHES.get(text.strip().lower(), text),
)
"""True or false; a variable may also be 1, 0, yes, no, on or off."""


# Texts and paths


def _text(value: object, home: str | None) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidValueError
    return value


TEXT = SettingKind(says="a text that is not empty", make=_text)


def choice(*names: str) -> SettingKind[str]:
    """Accept one of *names*."""

    def make(value: object, home: str | None) -> str:
        if not isinstance(value, str) or value not in names:
            raise InvalidValueError
        return value

    return SettingKind(says="one of " + ", ".join(f'"{name}"' for name in names), make=make)


def _mode(value: object, home: str | None) -> Mode:
    mode = _MODES.get(value.strip().lower()) if isinstance(value, str) else None
    if mode is None:
        raise InvalidValueError
    return mode


MODE = SettingKind(says='"ro" or "rw"', make=_mode)
"""Access mode of a directory; `readonly`, `read-only`, `readwrite` and `read-write` are aliases."""


def _path(value: object, home: str | None) -> Path:
    return expand(_text(value, home), home)


PATH = SettingKind(says="a path", make=_path)
"""A host path; `~` is the home directory."""


def _absolute(value: object, home: str | None) -> Path:
    path = _path(value, home)
    if not path.is_absolute():
        raise InvalidValueError
    return path


ABSOLUTE = SettingKind(says="an absolute path, or one that begins with ~/", make=_absolute)
"""A path that grants access, which must not depend on the current directory."""


def expand(text: str, home: str | None) -> Path:
    """Return *text* as a path, with `~` replaced by the home directory.

    Raises:
        InvalidValueError: There is no home directory, or *text* names that of another user.
    """
    head, _, rest = text.partition("/")
    if not head.startswith("~"):
        return Path(text)
    if head != "~":
        raise InvalidValueError(
            f"begins with {short_repr(head)}; only ~ itself, your own home directory, is understood"
        )
    if home is None:
        raise InvalidValueError("begins with ~, but HOME does not name a directory")
    return Path(home, rest.lstrip("/"))


# Lists and tables


def many(kind: SettingKind[T], says: str) -> SettingKind[tuple[T, ...]]:
    """Accept a list of values of one kind; a variable separates them by commas."""

    def make(value: object, home: str | None) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise InvalidValueError
        return tuple(kind.check(each, home, index) for index, each in enumerate(value))

    return SettingKind(says=says, make=make, from_text=_list_of)


def _list_of(text: str) -> object:
    return [part.strip() for part in text.split(",")]


TEXTS = many(TEXT, "a list of texts")


def _table(value: object, required: str, *optional: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidValueError
    known = {name: name for name in (required, *optional)}
    for name in value:
        if name not in known:
            raise InvalidValueError(f"is not a known key{did_you_mean(name, known)}", at=(name,))
    if required not in value:
        raise InvalidValueError(f"must have {required}")
    return value


def _allowed(value: object, home: str | None) -> AllowedPath:
    table = _table(value, "path", "mode")
    path = ABSOLUTE.check(table["path"], home, "path")
    return AllowedPath(path, MODE.check(table.get("mode", "ro"), home, "mode"))


ALLOWED = many(SettingKind(says="a table", make=_allowed), "a list of tables with path and mode")
"""Directories besides the workspace, in rule order; read-only by default."""


def _tool(value: object, home: str | None) -> str:
    if not isinstance(value, str) or not _TOOL.fullmatch(value):
        raise InvalidValueError
    return value


_TOOLS = many(SettingKind(says="the name of a tool", make=_tool), "a list of tools")


def _role(value: object, home: str | None) -> tuple[str, ...]:
    return _TOOLS.check(_table(value, "tools")["tools"], home, "tools")


_ROLE = SettingKind(says="a table", make=_role)


def _roles(value: object, home: str | None) -> Roles:
    if not isinstance(value, dict):
        raise InvalidValueError
    for name in value:
        if not _ROLE_NAME.fullmatch(name):
            raise InvalidValueError("must be named by lower-case letters, digits, - and _", at=(name,))
    return MappingProxyType({name: _ROLE.check(row, home, name) for name, row in value.items()})


ROLES = SettingKind(says="a table of roles", make=_roles)
"""The tools of each role."""


# Suggestions


def did_you_mean(name: str, names: Mapping[str, str]) -> str:
    """Return a suffix that suggests the closest of *names*, in full; empty if none is similar."""
    from difflib import get_close_matches

    longer = [each for each in names if name and each.startswith(name)]
    close = longer or get_close_matches(name[:SHOWN_CHARACTERS], names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""
