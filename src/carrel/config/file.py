"""The configuration file: where it is, and its contents, checked as a whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from carrel.config.document import UnreadableDocumentError, parse_toml, read_document
from carrel.config.key import Key
from carrel.config.kind import InvalidValueError, KeyPath, did_you_mean, expand, short_repr
from carrel.config.settings import Origin, SettingSource
from carrel.config.table import CONFIG_VARIABLE, KEYS
from carrel.errors import ConfigError

if TYPE_CHECKING:
    from carrel.config.toml_lines import TomlLines

NAME = "carrel/config.toml"
_MAX_CACHED = 16

_BY_PLACE = {place: key for key in KEYS for place in key.places}
_TABLES = {place[0] for place in _BY_PLACE if len(place) == 2}
_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


class ConfigFile:
    """What one file gives."""

    def __init__(self, path: Path | None, text: str | None = None, home: str | None = None) -> None:
        """Check *text*, which stands in the file at *path*; `None` if there is no such file.

        Raises:
            ConfigError: It is not TOML, or holds a key or value that is wrong.
        """
        self.path = path
        """Where the file is, or would be; `None` if nothing says where."""
        self.is_there = text is not None
        self._text = text or ""
        self._home = home
        self._given: dict[str, tuple[tuple[str, ...], object]] = {}
        for place, value in self._entries():
            self._take(place, value)

    def find(self, key: Key[object]) -> tuple[object, Origin] | None:
        """The value of *key* and where it stands, if the file gives one."""
        if key.name not in self._given:
            return None
        place, value = self._given[key.name]
        return value, self.origin(place, is_alias=place != key.place)

    def origin(self, place: KeyPath, *, is_alias: bool = False) -> Origin:
        """Where *place* is in the file."""
        line = self._lines.of(place)
        return Origin(source=SettingSource.FILE, name=str(self.path), line=line, is_alias=is_alias)

    def _entries(self) -> Iterator[tuple[tuple[str, ...], object]]:
        """What stands in the file, and where."""
        for name, value in self._document().items():
            if name not in _TABLES:
                yield (name,), value
            elif isinstance(value, dict):
                yield from (((name, inner), each) for inner, each in value.items())
            else:
                self._refuse((name,), f"must be a table, not {short_repr(value)}")

    def _document(self) -> dict[str, object]:
        try:
            return parse_toml(self._text)
        except UnreadableDocumentError as error:
            raise _config_error(self.path, error) from None

    def _take(self, place: tuple[str, ...], value: object) -> None:
        key = _BY_PLACE.get(place)
        if key is None:
            self._refuse(place, f"is not a known key{_suggestion(place)}")
        if key.name in self._given:
            other, _ = self._given[key.name]
            self._refuse(place, f"is the same setting as {_render(other)}; give one of them")
        try:
            self._given[key.name] = place, key.kind.check(value, self._home, *place)
        except InvalidValueError as error:
            self._refuse(error.at, str(error))

    def _refuse(self, place: KeyPath, reason: str) -> NoReturn:
        where = f"{self.path}:{self._lines.of(place)}"
        raise ConfigError(f"{where}: {_render(place)} {reason}", path=str(self.path))

    @cached_property
    def _lines(self) -> TomlLines:
        from carrel.config.toml_lines import TomlLines

        return TomlLines(self._text)


def home_of(environ: Mapping[str, str]) -> str | None:
    """The home directory, if the environment names one."""
    home = environ.get("HOME", "")
    return home if home.startswith("/") else None


def read_config_file(environ: Mapping[str, str], path: str | os.PathLike[str] | None = None) -> ConfigFile:
    """Read the file at *path*, or where the environment says; a missing one is empty unless it was named.

    Raises:
        ConfigError: It cannot be read, is not TOML, or holds a key or value that is wrong.
    """
    home = home_of(environ)
    named = _named(environ, home) if path is None else Path(path)
    where = named or _usual_place(environ, home)
    try:
        text = None if where is None else read_document(where)
    except UnreadableDocumentError as error:
        raise _config_error(where, error) from None
    if text is None and named is not None:
        by = f" (from {CONFIG_VARIABLE})" if path is None else ""
        raise ConfigError(f"{where}: there is no such file{by}", path=str(where))
    return _checked(where, text, home)


@lru_cache(maxsize=_MAX_CACHED)
def _checked(path: Path | None, text: str | None, home: str | None) -> ConfigFile:
    return ConfigFile(path, text, home)


def config_path(environ: Mapping[str, str]) -> Path | None:
    """Where the file is looked for; `None` if nothing says where.

    Raises:
        ConfigError: The variable that names it cannot be used.
    """
    home = home_of(environ)
    return _named(environ, home) or _usual_place(environ, home)


def _named(environ: Mapping[str, str], home: str | None) -> Path | None:
    text = environ.get(CONFIG_VARIABLE)
    if not text:
        return None
    try:
        return expand(text, home)
    except InvalidValueError as error:
        raise ConfigError(f"{CONFIG_VARIABLE} {error}") from None


def _usual_place(environ: Mapping[str, str], home: str | None) -> Path | None:
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):
        return Path(base, NAME)
    return None if home is None else Path(home, ".config", NAME)


def _config_error(path: Path | None, error: UnreadableDocumentError) -> ConfigError:
    line = "" if error.line is None else f":{error.line}"
    return ConfigError(f"{path}{line}: {error}", path=str(path))


def _suggestion(place: tuple[str, ...]) -> str:
    """What may have been meant: in the same table, if there is one; anywhere, if not."""
    if place[0] in _TABLES:
        known = {each[-1]: each for each in _BY_PLACE if each[0] == place[0]}
    else:
        known = {each[-1]: each for each in _BY_PLACE} | {name: (name,) for name in _TABLES}
    return did_you_mean(place[-1], {name: _render(each) for name, each in known.items()})


def _render(place: KeyPath) -> str:
    """A place as one would write it."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        name = part if _BARE.fullmatch(part) else short_repr(part)
        text += f".{name}" if text else name
    return text
