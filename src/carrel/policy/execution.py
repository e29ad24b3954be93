"""`ExecutionPolicy`: the limits of one run of guest code, and the environment it sees.

A policy is validated when it is created and never changes, so its users need not check it again. Use
`dataclasses.replace` to derive another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NoReturn

from carrel.config.document import UnreadableDocumentError, line_of, parse_toml, read_document
from carrel.config.kind import did_you_mean, short_repr
from carrel.errors import PolicyValidationError
from carrel.values import MIB


class Environment(Mapping[str, str]):
    """Environment variables: an immutable copy whose values are not printed."""

    __slots__ = ("_variables",)

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)

    def __getitem__(self, name: str) -> str:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __hash__(self) -> int:
        return hash(frozenset(self._variables.items()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {list(self._variables)}>"


DEFAULT_ENVIRONMENT = Environment(
    {
        "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp",  # noqa: S108  # the guest's own, in memory
        "TMPDIR": "/tmp",  # noqa: S108  # the guest's own, in memory
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108  # the guest's own, in memory
    }
)
"""Default variables: UTF-8 text everywhere, reproducible runs, and private files of programs in `/tmp`."""


MAX_NUMBER = 2**63 - 1
"""Maximum of numbers without another limit, the largest that an engine can count to."""
MEMORY_BYTES = 40 * MIB
"""Minimum memory limit in bytes: the initial memory of the guest."""
MAX_MEMORY_BYTES = 4096 * MIB
"""Maximum memory limit in bytes."""
TIMEOUT_SECONDS = 365 * 86_400
"""Maximum timeout in seconds: a year."""
WORKSPACE = "/workspace"
"""Path of the workspace in the guest under any policy."""
DATA = "/data"
"""Default path of the data directory in the guest."""
TABLE = "execution"
"""Name of the table in a policy file."""
_RANGES = {
    "memory_bytes": (MEMORY_BYTES, MAX_MEMORY_BYTES),
    "stdout_max_bytes": (1, MAX_NUMBER),
    "stderr_max_bytes": (1, MAX_NUMBER),
    "fuel_budget": (1, MAX_NUMBER),
    "open_files": (1, 1024),
    "file_operations": (1, MAX_NUMBER),
    "tmp_bytes": (0, MAX_NUMBER),
}
_RESERVED = ("/tmp", "/usr", "/dev", "/proc")  # noqa: S108  # names in the guest
"""Directories that the guest has for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPolicy:
    """The limits of one run of guest code, and its environment.

    Raises:
        PolicyValidationError: A field is invalid; the message and `field` name it.
    """

    memory_bytes: int = 128_000_000
    """Maximum memory of the guest; it starts with 40 MiB."""
    timeout_seconds: float = 60.0
    """Maximum duration of a call, including time that the guest sleeps or waits. A call always has one."""
    stdout_max_bytes: int = 2_000_000
    """How much of its standard output is kept; the rest is dropped, and the result says so."""
    stderr_max_bytes: int = 1_000_000
    """How much of its standard error is kept."""
    fuel_budget: int | None = None
    """Maximum number of instructions, as counted by the engine; `None` means no limit."""
    open_files: int = 256
    """Maximum number of open files."""
    file_operations: int = 100_000
    """Maximum number of file operations."""
    tmp_bytes: int = 64 * MIB
    """Size of its `/tmp`, which is in memory and lost after the run."""
    env: Mapping[str, str] = DEFAULT_ENVIRONMENT
    """All environment variables of the guest."""
    argv: tuple[str, ...] = ()
    """The arguments after the name of the script."""
    guest_mount_path: str = "/app"
    """Path of the workspace in the guest, in addition to `/workspace`."""
    mount_data_dir: str | os.PathLike[str] | None = None
    """A directory of the host that the guest may read; it must exist when the guest starts."""
    guest_data_path: str | None = None
    """Path of that directory in the guest; `/data` by default."""
    preserve_logs: bool = False
    """Whether the complete output is kept in files."""

    def __post_init__(self) -> None:
        for name in _RANGES:
            _require_number(name, getattr(self, name))
        self._set("timeout_seconds", _timeout(self.timeout_seconds))
        self._set("env", _environment(self.env))
        self._set("argv", _arguments(self.argv))
        _require_guest_path("guest_mount_path", self.guest_mount_path)
        self._set("mount_data_dir", _host_directory(self.mount_data_dir))
        self._set_guest_data_path()
        if type(self.preserve_logs) is not bool:
            _refuse("preserve_logs", f"must be True or False, not {short_repr(self.preserve_logs)}")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ExecutionPolicy:
        """Load a policy from the table `[execution]` of a TOML file, or from the top level if it has none.

        The keys are the names of the fields. Variables in `env` are added to the default ones. A missing file
        means the defaults.

        Raises:
            PolicyValidationError: The file cannot be read, or has an invalid key or value.
        """
        file = Path(path)
        text = ""
        try:
            text = read_document(file) or ""
            return cls(**_fields_of(parse_toml(text)))  # type: ignore[arg-type]  # it checks itself
        except UnreadableDocumentError as error:
            problem, line, field = str(error), error.line, None
        except PolicyValidationError as error:
            problem, field = error.message, error.field
            line = line_of(text, _key_path(text, field))
        location = file.name if line is None else f"{file.name}:{line}"
        raise PolicyValidationError(f"invalid execution policy in {location}: {problem}", field=field)

    def _set(self, name: str, value: object) -> None:
        """Set a field while the policy is created."""
        object.__setattr__(self, name, value)

    def _set_guest_data_path(self) -> None:
        name, path = "guest_data_path", self.guest_data_path
        if self.mount_data_dir is None:
            if path is not None:
                _refuse(name, "is given without mount_data_dir; give both or none")
            return
        path = DATA if path is None else path
        _require_guest_path(name, path)
        for other in (self.guest_mount_path, WORKSPACE):
            if _is_at_or_beneath(path, other) or _is_at_or_beneath(other, path):
                _refuse(name, f"must lie apart from {other}, not at {short_repr(path)}")
        self._set(name, path)


def _refuse(field: str, reason: str) -> NoReturn:
    raise PolicyValidationError(f"{field} {reason}", field=field)


# Numbers


def _require_number(field: str, value: object) -> None:
    low, high = _RANGES[field]
    or_none = " or None" if field == "fuel_budget" else ""
    if value is None and or_none:
        return
    # A boolean is an int in Python, but not a quantity.
    if type(value) is not int or value < low:
        _refuse(field, f"must be a whole number of at least {low}{or_none}, not {short_repr(value)}")
    if value > high:
        _refuse(field, f"must be a whole number of at most {high}{or_none}, not {short_repr(value)}")


def _timeout(value: object) -> float:
    field = "timeout_seconds"
    if value is None:
        _refuse(field, "must be a number, not None: a call always ends")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= TIMEOUT_SECONDS:
        _refuse(field, f"must be a number from 0 to {TIMEOUT_SECONDS}, not {short_repr(value)}")
    return float(value)


# Texts


def _is_text(value: object) -> bool:
    """Whether *value* is text that can be passed to a guest: valid UTF-8 without NUL."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)


def _environment(env: object) -> Environment:
    if not isinstance(env, Mapping):
        _refuse("env", f"must be a mapping of names to texts, not {type(env).__name__}")
    for name, value in env.items():
        if not _is_text(name) or not name or "=" in name:
            _refuse("env", f"must have names that are text without = and NUL, not {short_repr(name)}")
        # The value may be a secret.
        if not _is_text(value):
            _refuse("env", f"must have texts without NUL as values, which that of {short_repr(name)} is not")
    return Environment(env)


def _arguments(argv: object) -> tuple[str, ...]:
    if not isinstance(argv, list | tuple):
        _refuse("argv", f"must be a list of texts, not {type(argv).__name__}")
    for index, each in enumerate(argv):
        if not _is_text(each):
            _refuse("argv", f"must be a list of texts without NUL, which number {index} is not")
    return tuple(argv)


# Paths


def _require_guest_path(field: str, path: object) -> None:
    if not isinstance(path, str) or not _is_text(path) or not path.startswith("/") or path == "/":
        _refuse(field, f"must be an absolute path below /, not {short_repr(path)}")
    if path.startswith("//") or os.path.normpath(path) != path:
        _refuse(field, f"must be written without '.', '..' and empty names, not {short_repr(path)}")
    for top in _RESERVED:
        if _is_at_or_beneath(path, top):
            _refuse(field, f"must not lie in {top}, which the guest has for itself, not {short_repr(path)}")
    if path != WORKSPACE and _is_at_or_beneath(path, WORKSPACE):
        _refuse(field, f"must not lie in {WORKSPACE}, where the workspace is too, not {short_repr(path)}")


def _is_at_or_beneath(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}/")


def _host_directory(path: object) -> str | None:
    """Return the directory as text. It is a host path, so no message contains it."""
    field = "mount_data_dir"
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        _refuse(field, f"must be a path or None, not {type(path).__name__}")
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        _refuse(field, "must be a path, which is text that is not empty and has no NUL")
    return text


# Files


def _fields_of(document: dict[str, object]) -> dict[str, object]:
    """Return the fields that a document sets."""
    table = document.get(TABLE, document)
    if not isinstance(table, dict):
        _refuse(TABLE, f"must be a table, not {short_repr(table)}")
    names = {field.name: field.name for field in fields(ExecutionPolicy)}
    for name in table:
        if name not in names:
            message = f"{short_repr(name)} is not a known key{did_you_mean(name, names)}"
            raise PolicyValidationError(message, field=name)
    env = table.get("env", {})
    return {**table, "env": {**DEFAULT_ENVIRONMENT, **env} if isinstance(env, dict) else env}


def _key_path(text: str, field: str | None) -> tuple[str, ...]:
    """Return the key path of *field* in a valid document."""
    name = field or ""
    return (TABLE, name) if TABLE in parse_toml(text) and name != TABLE else (name,)


DEFAULT_POLICY = ExecutionPolicy()
"""Policy of sandboxes that are given none, validated once."""
