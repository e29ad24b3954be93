"""Every setting: its name in the file, environment variable, default and description."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from carrel.config.container_keys import CONTAINER_KEYS
from carrel.config.key import Key
from carrel.config.kind import (
    ABSOLUTE,
    ALLOWED,
    MODE,
    PATH,
    ROLES,
    SIZE,
    SWITCH,
    TEXTS,
    Roles,
    choice,
    number,
    number_or_none,
)
from carrel.config.network_kinds import ADDRESS, SECRET
from carrel.config.serve_keys import SERVE_KEYS

CONFIG_VARIABLE = "CARREL_CONFIG"
"""Environment variable with the path of the configuration file."""
YEAR_SECONDS = 365 * 86_400
DEFAULT_ROLES: Roles = MappingProxyType(
    {
        "developer": ("file_read", "file_write", "file_list", "bash", "python_executor"),
        "generalist": ("file_read", "file_list", "bash"),
        "critic": ("file_read", "file_list", "bash"),
    }
)


DIRECTORY = Key(
    name="session.directory",
    kind=PATH,
    default="workspace",
    meaning="Directory that holds all workspaces; a relative path starts at the current directory.",
    variable="CARREL_SESSIONS_DIR",
    alias="SHANNON_SESSION_WORKSPACES_DIR",
)
MAX_WORKSPACE_MB = Key(
    name="session.max_workspace_mb",
    kind=number_or_none(0, 10**9),
    default=100,
    meaning="Maximum total size of the files of one session, in MiB (2**20 bytes).",
    variable="CARREL_MAX_WORKSPACE_MB",
    alias="SHANNON_MAX_WORKSPACE_SIZE_MB",
)
ENTRIES = Key(
    name="session.entries",
    kind=number_or_none(0, 10**12),
    default=100_000,
    meaning="Maximum number of files and directories of any kind in one session.",
    variable="CARREL_MAX_ENTRIES",
)
MIN_FREE_MB = Key(
    name="session.min_free_mb",
    kind=number(0, 10**9),
    default=100,
    meaning="Minimum free space of the host disk in MiB; below it, writes of sessions are rejected.",
    variable="CARREL_MIN_FREE_MB",
)
DURABILITY = Key(
    name="session.durability",
    kind=choice("process", "disk"),
    default="process",
    meaning="What an acknowledged change survives: `process`, the crash of any process; `disk`, also a power"
    " loss, at the cost that every change waits for the disk.",
    variable="CARREL_DURABILITY",
)
TTL_SECONDS = Key(
    name="session.ttl_seconds",
    kind=number_or_none(1, 100 * YEAR_SECONDS),
    default=86_400,
    meaning="Idle time in seconds after which a session expires.",
    variable="CARREL_TTL_SECONDS",
)
MAX_SESSIONS = Key(
    name="session.max_sessions",
    kind=number_or_none(1, 10**9),
    default=1_000,
    meaning="Maximum number of sessions at the same time.",
    variable="CARREL_MAX_SESSIONS",
)
SHARED_WORKSPACE: Key[Path | None] = Key(
    name="session.shared_workspace",
    kind=ABSOLUTE,
    default=None,
    meaning="Directory that all sessions may read and write.",
    variable="CARREL_SHARED_WORKSPACE",
    alias="SHANNON_WORKSPACE",
)
DEV_ALLOW_CWD = Key(
    name="session.dev_allow_cwd",
    kind=SWITCH,
    default=False,
    meaning="Whether sessions may read and write the current directory; for development only.",
    variable="CARREL_DEV_ALLOW_CWD",
    alias="SHANNON_DEV_ALLOW_CWD",
)
ALLOW_GLOBAL_TMP = Key(
    name="session.allow_global_tmp",
    kind=SWITCH,
    default=False,
    meaning="Whether sessions may read and write `/tmp`.",
    variable="CARREL_ALLOW_GLOBAL_TMP",
    alias="SHANNON_ALLOW_GLOBAL_TMP",
)
SANDBOX = Key(
    name="sandbox.enabled",
    kind=SWITCH,
    default=True,
    meaning="Whether sessions may run guest code.",
    variable="CARREL_SANDBOX",
    alias="SHANNON_USE_WASI_SANDBOX",
)
SANDBOX_ADDRESS: Key[str | None] = Key(
    name="sandbox.address",
    kind=ADDRESS,
    default=None,
    meaning="Address of the gRPC service that runs the calls of a toolbox; unset runs them locally.",
    variable="CARREL_SANDBOX_ADDR",
)
SANDBOX_KEY: Key[str | None] = Key(
    name="sandbox.key",
    kind=SECRET,
    default=None,
    meaning="API key for that service; preferably set by the variable, not in the file.",
    variable="CARREL_SANDBOX_KEY",
    is_secret=True,
)
SANDBOX_CA: Key[Path | None] = Key(
    name="sandbox.ca",
    kind=ABSOLUTE,
    default=None,
    meaning="PEM file of the CA certificates to verify that service with, instead of the system's; for"
    " `grpcs://`.",
    variable="CARREL_SANDBOX_CA",
)
PYTHON_WORKERS = Key(
    name="python.workers",
    kind=number(0, 64),
    default=0,
    meaning="Number of processes that run guest Python; 0 means one per core.",
    variable="CARREL_PYTHON_WORKERS",
)
PYTHON_READY = Key(
    name="python.ready",
    kind=number(0, 64),
    default=2,
    meaning="Number of interpreters kept ready ahead of use.",
    variable="CARREL_PYTHON_READY",
)
PYTHON_MEMORY_MB = Key(
    name="python.memory_mb",
    kind=number(0, 10**6),
    default=64,
    meaning="Maximum memory of the ready interpreters together, in MiB (2**20 bytes).",
    variable="CARREL_PYTHON_MEMORY_MB",
)
PYTHON_STATEFUL = Key(
    name="python.stateful",
    kind=number(1, 1024),
    default=16,
    meaning="Maximum number of interpreters kept for stateful sessions.",
    variable="CARREL_PYTHON_STATEFUL",
)
PYTHON_IDLE_SECONDS = Key(
    name="python.idle_seconds",
    kind=number(1, YEAR_SECONDS),
    default=900,
    meaning="Idle time in seconds after which the interpreter of a stateful session is ended.",
    variable="CARREL_PYTHON_IDLE_SECONDS",
)
PYTHON_CACHE: Key[Path | None] = Key(
    name="python.cache",
    kind=ABSOLUTE,
    default="~/.cache/carrel",
    meaning="Directory of the compiled guest; by default in `$XDG_CACHE_HOME`, if that is set.",
    variable="CARREL_CACHE",
)
SHELL_PIPELINES = Key(
    name="shell.pipelines",
    kind=SWITCH,
    default=False,
    meaning="Whether the shell accepts `|`, `&&`, `||`, `;`, `<`, `>` and `>>` instead of rejecting them.",
    variable="CARREL_SHELL_PIPELINES",
)
SHELL_TIMEOUT_SECONDS = Key(
    name="shell.timeout_seconds",
    kind=number_or_none(1, YEAR_SECONDS),
    default=30,
    meaning="Timeout of one command line, in seconds.",
    variable="CARREL_SHELL_TIMEOUT_SECONDS",
)
SHELL_OUTPUT_MB = Key(
    name="shell.output_mb",
    kind=number_or_none(0, 10**6),
    default=16,
    meaning="Maximum output of one command line, in MiB (2**20 bytes).",
    variable="CARREL_SHELL_OUTPUT_MB",
)
SHELL_WORKERS = Key(
    name="shell.workers",
    kind=number(0, 1024),
    default=32,
    meaning="Maximum number of processes in which a service runs command lines, at most half of them for"
    " one tenant; 0 runs them in the service itself.",
    variable="CARREL_SHELL_WORKERS",
)
SHELL_WORKER_MB = Key(
    name="shell.worker_mb",
    kind=number(64, 10**6),
    default=512,
    meaning="Maximum memory of one command line in such a process, in MiB (2**20 bytes).",
    variable="CARREL_SHELL_WORKER_MB",
)
WORKSPACE_ROOT: Key[Path | None] = Key(
    name="workspace.root",
    kind=PATH,
    default="~/.local/share/carrel/workspace",
    meaning="Root directory of the operator's shell; setting the variable also makes it read-write.",
    variable="CARREL_WORKSPACE",
    alias="SWEBASH_WORKSPACE",
)
WORKSPACE_MODE = Key(
    name="workspace.mode",
    kind=MODE,
    default="ro",
    meaning="Access of the operator's shell to that directory.",
)
WORKSPACE_ENABLED = Key(
    name="workspace.enabled",
    kind=SWITCH,
    default=True,
    meaning="Whether the rules of the operator's shell are enforced.",
)
WORKSPACE_ALLOW = Key(
    name="workspace.allow",
    kind=ALLOWED,
    default=[],
    meaning="Other directories that the operator's shell may use, each with `path` and `mode`, in order.",
)
DEFAULT_ENCODING = Key(
    name="files.default_encoding",
    kind=choice("utf-8", "ascii", "latin-1", "base64"),
    default="utf-8",
    meaning="Encoding of text where a call names none.",
    file_alias="defaultEncoding",
)
MAX_FILE_SIZE = Key(
    name="files.max_file_size",
    kind=SIZE,
    default="10MB",
    meaning="Maximum size of a file in one operation; `MB` means MiB.",
    file_alias="maxFileSize",
)
ALLOWED_PATHS = Key(
    name="files.allowed_paths",
    kind=TEXTS,
    default=[],
    meaning="Paths within a workspace that operations may use; an empty list means all.",
    file_alias="allowedPaths",
)
TIMEOUT_MS = Key(
    name="files.timeout_ms",
    kind=number(1, 86_400_000),
    default=30_000,
    meaning="Timeout of one operation, in milliseconds.",
    file_alias="timeoutMs",
)
ROLE_TOOLS = Key(
    name="roles",
    kind=ROLES,
    default={},
    meaning="Tools of each role: `tools` in `[roles.NAME]`. Other roles keep their default tools.",
)

KEYS: tuple[Key[object], ...] = (
    DIRECTORY,
    MAX_WORKSPACE_MB,
    ENTRIES,
    MIN_FREE_MB,
    DURABILITY,
    TTL_SECONDS,
    MAX_SESSIONS,
    SHARED_WORKSPACE,
    DEV_ALLOW_CWD,
    ALLOW_GLOBAL_TMP,
    SANDBOX,
    SANDBOX_ADDRESS,
    SANDBOX_KEY,
    SANDBOX_CA,
    PYTHON_WORKERS,
    PYTHON_READY,
    PYTHON_MEMORY_MB,
    PYTHON_STATEFUL,
    PYTHON_IDLE_SECONDS,
    PYTHON_CACHE,
    SHELL_PIPELINES,
    SHELL_TIMEOUT_SECONDS,
    SHELL_OUTPUT_MB,
    SHELL_WORKERS,
    SHELL_WORKER_MB,
    WORKSPACE_ROOT,
    WORKSPACE_MODE,
    WORKSPACE_ENABLED,
    WORKSPACE_ALLOW,
    DEFAULT_ENCODING,
    MAX_FILE_SIZE,
    ALLOWED_PATHS,
    TIMEOUT_MS,
    *CONTAINER_KEYS,
    *SERVE_KEYS,
    ROLE_TOOLS,
)
"""All settings, in the order in which they are listed."""
