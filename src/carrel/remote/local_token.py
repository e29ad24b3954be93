"""The local token: programs of the user who runs a service call it without a key.

A service writes it into a file that only its user can read, one per port it listens at, and removes it when
it ends. It is the operator's, and another one each time a service starts. A client that is given no key looks
for it if the service is on loopback.

Not covered: whoever is the same user on the host, or root, who can read the file as well.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from carrel.config.network_kinds import is_loopback
from carrel.errors import ConfigError

MAX_BYTES = 256
"""Size of the largest file that is read."""


def directory(environ: Mapping[str, str]) -> Path | None:
    """Where the tokens are: in `$XDG_STATE_HOME`, else in `~/.local/state`; `None` if there is no home."""
    given, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if given.startswith("/"):
        return Path(given, "carrel", "services")
    return Path(home, ".local", "state", "carrel", "services") if home.startswith("/") else None


@contextmanager
def stored(place: Path, token: str, *ports: int) -> Iterator[None]:
    """Keep *token* for the services at *ports* meanwhile.

    Raises:
        OSError: It cannot be stored.
        ConfigError: Others could read or replace what is stored there.
    """
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(os.stat(place, follow_symlinks=False), stat.S_ISDIR):
        raise ConfigError("others have access to the directory of local tokens")
    files = [place / str(port) for port in ports]
    for file in files:
        _write(file, token)
    try:
        yield
    finally:
        for file in files:
            with suppress(OSError, ConfigError):
                # Another service may be at that port by now.
                if _read(file) == token:
                    file.unlink()


def find(host: str, port: int, environ: Mapping[str, str]) -> str | None:
    """The local token of the service at *host* and *port*; `None` if there is none, or it is not on loopback.

    Raises:
        ConfigError: Others could have read or written it.
    """
    place = directory(environ)
    if place is None or not is_loopback(host.strip("[]")):
        return None
    try:
        return _read(place / str(port))
    except OSError:
        return None


def _write(file: Path, token: str) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "w", encoding="ascii") as stream:
        stream.write(token)
    draft.replace(file)


def _read(file: Path) -> str:
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, encoding="ascii", errors="replace") as stream:
        if not _is_private(os.fstat(opened), stat.S_ISREG):
            raise ConfigError(
                f"the local token of port {file.name} is not used: it must belong to you and be readable by"
                " you alone; remove it and start the service again, or give a key"
            )
        return stream.read(MAX_BYTES).strip()


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
