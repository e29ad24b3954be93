"""`ConfigFile`: locates, reads and validates the configuration file."""

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

_KEYS = {path: key for key in KEYS for path in key.paths}
_TABLES = {path[0] for path in _KEYS if len(path) == 2}
_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


class ConfigFile:
    """The validated values of one file."""

    def __init__(self, path: Path | None, text: str | None = None, home: str | None = None) -> None:
        """Parse and validate *text*, the content of the file at *path*; `None` if it does not exist.

        Raises:
            ConfigError: The text is not TOML, or has an unknown key or an invalid value.
        """
        self.path = path
        """Location of the file, which may not exist; `None` if no location is known."""
        self.exists = text is not None
        self._text = text or ""
        self._home = home
        self._given: dict[str, tuple[tuple[str, ...], object]] = {}
        for key_path, value in self._entries():
            self._add(key_path, value)

    def find(self, key: Key[object]) -> tuple[object, Origin] | None:
        """Return the value of *key* and its origin, if the file sets it."""
        if key.name not in self._given:
            return None
        key_path, value = self._given[key.name]
        return value, self.origin(key_path, is_alias=key_path != key.path)

    def origin(self, key_path: KeyPath, *, is_alias: bool = False) -> Origin:
        """Return the origin of the value at *key_path*."""
        line = self._lines.of(key_path)
        return Origin(source=SettingSource.FILE, name=str(self.path), line=line, is_alias=is_alias)

    def _entries(self) -> Iterator[tuple[tuple[str, ...], object]]:
        """Iterate over all keys with their values."""
        for name, value in self._document().items():
            if name not in _TABLES:
                yield (name,), value
            elif isinstance(value, dict):
                yield from (((name, inner), each) for inner, each in value.items())
            else:
                self._reject((name,), f"must be a table, not {short_repr(value)}")

    def _document(self) -> dict[str, object]:
        try:
            return parse_toml(self._text)
        except UnreadableDocumentError as error:
            raise _config_error(self.path, error) from None

    def _add(self, key_path: tuple[str, ...], value: object) -> None:
        key = _KEYS.get(key_path)
        if key is None:
            self._reject(key_path, f"is not a known key{_suggestion(key_path)}")
        if key.name in self._given:
            other, _ = self._given[key.name]
            self._reject(key_path, f"is the same setting as {_render(other)}; give one of them")
        try:
            self._given[key.name] = key_path, key.kind.check(value, self._home, *key_path)
        except InvalidValueError as error:
            self._reject(error.at, str(error))

    def _reject(self, key_path: KeyPath, reason: str) -> NoReturn:
        location = f"{self.path}:{self._lines.of(key_path)}"
        raise ConfigError(f"{location}: {_render(key_path)} {reason}", path=str(self.path))

    @cached_property
    def _lines(self) -> TomlLines:
        from carrel.config.toml_lines import TomlLines

        return TomlLines(self._text)


def home_of(environ: Mapping[str, str]) -> str | None:
    """Return the home directory, if `HOME` is an absolute path."""
    home = environ.get("HOME", "")
    return home if home.startswith("/") else None


def read_config_file(environ: Mapping[str, str], path: str | os.PathLike[str] | None = None) -> ConfigFile:
    """Read the file at *path*, or at the location that the environment gives.

    A missing file counts as empty, unless *path* or the environment names it.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or has an unknown key or an invalid value.
    """
    home = home_of(environ)
    explicit = _explicit_path(environ, home) if path is None else Path(path)
    location = explicit or _default_path(environ, home)
    try:
        text = None if location is None else read_document(location)
    except UnreadableDocumentError as error:
        raise _config_error(location, error) from None
    if text is None and explicit is not None:
        by = f" (from {CONFIG_VARIABLE})" if path is None else ""
        raise ConfigError(f"{location}: there is no such file{by}", path=str(location))
    return _parse(location, text, home)


@lru_cache(maxsize=_MAX_CACHED)
def _parse(path: Path | None, text: str | None, home: str | None) -> ConfigFile:
    return ConfigFile(path, text, home)


def _explicit_path(environ: Mapping[str, str], home: str | None) -> Path | None:
    text = environ.get(CONFIG_VARIABLE)
    if not text:
        return None
    try:
        return expand(text, home)
    except InvalidValueError as error:
        raise ConfigError(f"{CONFIG_VARIABLE} {error}") from None


def _default_path(environ: Mapping[str, str], home: str | None) -> Path | None:
    base = environ.get("XDG_CONFIG_HOME", "")
    if base.startswith("/"):
        return Path(base, NAME)
    return None if home is None else Path(home, ".config", NAME)


def _config_error(path: Path | None, error: UnreadableDocumentError) -> ConfigError:
    line = "" if error.line is None else f":{error.line}"
    return ConfigError(f"{path}{line}: {error}", path=str(path))


def _suggestion(key_path: tuple[str, ...]) -> str:
    """Suggest a similar key of the same table, or of any table if the table is unknown."""
    if key_path[0] in _TABLES:
        known = {each[-1]: each for each in _KEYS if each[0] == key_path[0]}
    else:
        known = {each[-1]: each for each in _KEYS} | {name: (name,) for name in _TABLES}
    return did_you_mean(key_path[-1], {name: _render(each) for name, each in known.items()})


def _render(key_path: KeyPath) -> str:
    """Return a key path as it is written in TOML."""
    text = ""
    for part in key_path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        name = part if _BARE.fullmatch(part) else short_repr(part)
        text += f".{name}" if text else name
    return text
