"""The local token: programs of the user who runs a service can call it without a key.

A service writes the token to a file that only its user can read, one per listening port, and removes it on
exit. The token acts as the operator and is new each time a service starts. A client without a key looks for
it if the service is on loopback.

Not covered: other programs of the same user on the host, and root, which can read the file as well.
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
"""Maximum size of a token file."""


def directory(environ: Mapping[str, str]) -> Path | None:
    """The directory of the tokens, in `$XDG_STATE_HOME` or `~/.local/state`; `None` without a home."""
    state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if state.startswith("/"):
        return Path(state, "carrel", "services")
    return Path(home, ".local", "state", "carrel", "services") if home.startswith("/") else None


@contextmanager
def stored(tokens: Path, token: str, *ports: int) -> Iterator[None]:
    """Store *token* for the services at *ports* while the body runs.

    Raises:
        OSError: The token cannot be stored.
        ConfigError: Other users could read or replace files in the directory.
    """
    tokens.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(os.stat(tokens, follow_symlinks=False), stat.S_ISDIR):
        raise ConfigError("other users have access to the directory of local tokens")
    files = [tokens / str(port) for port in ports]
    for file in files:
        _write(file, token)
    try:
        yield
    finally:
        for file in files:
            with suppress(OSError, ConfigError):
                # Another service may use that port by now.
                if _read(file) == token:
                    file.unlink()


def find(host: str, port: int, environ: Mapping[str, str]) -> str | None:
    """The local token of the service at *host* and *port*; `None` without one, or if not on loopback.

    Raises:
        ConfigError: Other users could have read or written the file.
    """
    tokens = directory(environ)
    if tokens is None or not is_loopback(host.strip("[]")):
        return None
    try:
        return _read(tokens / str(port))
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
                f"the local token of port {file.name} is not used: the file must belong to you and be"
                " readable by you only; remove it and restart the service, or use a key"
            )
        return stream.read(MAX_BYTES).strip()


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
