"""The settings that are in force, and where each came from."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from carrel.config.kind import AllowedPath, Mode, Roles
from carrel.errors import RuntimeMissingError
from carrel.values import MIB


class SettingSource(StrEnum):
    """The kinds of places that a value comes from; later ones go before earlier ones."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where one value came from."""

    source: SettingSource
    name: str | None = None
    """The file, the variable or the option."""
    line: int | None = None
    """Of the file."""
    is_alias: bool = False
    """Whether the value was given under another name than carrel's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One setting with its value and its origin."""

    name: str
    """Its table in the file and its name there, with a dot between."""
    value: object
    """As the kind of the setting makes it; `None` if it is not set, or for no ceiling."""
    origin: Origin
    is_used: bool
    """Whether anything makes use of it yet."""
    is_secret: bool = False
    """Whether it must not be shown to anybody."""

    def __repr__(self) -> str:
        """Like any other dataclass, but for a secret."""
        value = "..." if self.is_secret else repr(self.value)
        return f"Value(name={self.name!r}, value={value}, origin={self.origin!r}, is_used={self.is_used!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How long sessions live and what they may hold; `None` means no ceiling."""

    directory: Path
    """Holds all workspaces."""
    disk_bytes: int | None
    """Sum of the sizes of the files of one session."""
    entries: int | None
    """Files and directories of any kind of one session."""
    min_free_bytes: int
    """Writes are refused while the host's disk has less than this free."""
    durability: str
    """What an acknowledged change survives: `process` or `disk`."""
    ttl_seconds: int | None
    """A session that is not used for so long expires."""
    max_sessions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSettings:
    """What guest Python may take of the host."""

    workers: int
    """Processes that run guests; 0 is one a core."""
    ready: int
    """Interpreters that are kept ready."""
    memory_bytes: int
    """Most that the ready interpreters may take together."""
    stateful: int
    """Most interpreters that are kept for stateful sessions."""
    idle_seconds: int
    """A stateful interpreter that is not used for so long is ended."""
    cache: Path | None
    """Holds the compiled guest; `None` if nothing names it and there is no home directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """The engine for containers, what they are made of, and what they may take; locked down by default."""

    image: str | None = None
    """What containers are made of; `None`: there are none."""
    address: str | None = None
    """Where the Docker engine is; `None`: where `DOCKER_HOST` says, or at the usual socket."""
    pull: bool = False
    """Whether a missing image is fetched from its registry."""
    user: str | None = None
    """Who programs run as, `uid:gid`; `None`: the user of this process, or nobody if that is root."""
    memory_bytes: int = 512 * MIB
    """Of all processes of one container and of its `/tmp`."""
    cpus: float = 1.0
    pids: int = 128
    """Most processes and threads of one container."""
    tmp_bytes: int = 64 * MIB
    """What its `/tmp` may hold, in memory."""
    network: str = "none"
    """The engine's network that containers are in."""
    read_only: bool = True
    """Whether their root cannot be written."""
    capabilities: tuple[str, ...] = ()
    """Those that they keep."""
    seccomp: str | None = None
    """Another filter of system calls than the engine's own: `unconfined`, or its text as JSON."""
    new_privileges: bool = False
    """Whether programs may gain privileges, as by a set-user-id file."""
    timeout_seconds: float = 30.0
    """Longest time until the engine answers."""
    tools: bool = False
    """Whether the tools `bash` and `python_executor` work in containers."""

    def require_image(self) -> str:
        """What containers are made of.

        Raises:
            RuntimeMissingError: No image is configured.
        """
        if self.image is None:
            raise RuntimeMissingError(
                "no image for containers: name one by containers.image or CARREL_CONTAINER_IMAGE"
            )
        return self.image


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """What command lines may do and take; `None` means no ceiling."""

    pipelines: bool
    """Whether more than one command may be on a line."""
    timeout_seconds: int | None
    output_bytes: int | None
    workers: int
    """Most processes of a service that run command lines; 0: they run in the service itself."""
    worker_bytes: int
    """Most memory that a command line may take in such a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The rules of the operator's shell."""

    root: Path | None
    """Where it works; `None` if nothing names it and there is no home directory."""
    mode: Mode
    enabled: bool
    allow: tuple[AllowedPath, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """Ceilings of single file operations."""

    default_encoding: str
    max_file_bytes: int
    allowed_paths: tuple[str, ...]
    """Within a workspace; all, if there are none."""
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Where the service listens, whom it knows and what it takes on; the table says what each means."""

    host: str
    port: int
    grpc: bool
    grpc_port: int
    tls_cert: Path | None
    tls_key: Path | None
    require_key: bool
    isolate_sessions: bool
    rate_per_minute: int | None
    max_body_bytes: int
    uploads_bytes: int
    """Most bytes of archives that are held on the disk at one time for one tenant."""
    max_requests: int
    executions: int
    executions_per_caller: int
    timeout_seconds: int
    shutdown_seconds: int
    idle_seconds: int
    open_sessions: int
    sweep_seconds: int
    resume_seconds: int
    cors_origins: tuple[str, ...]
    metrics: bool
    jwt_issuer: str | None
    jwt_audience: str | None
    jwt_jwks: str | None
    jwt_algorithms: tuple[str, ...]
    jwt_tenant_claim: str
    jwt_roles_claim: str
    traces: bool

    @property
    def scheme(self) -> str:
        """How URLs of the service begin."""
        return "http" if self.tls_cert is None else "https"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """Every setting, resolved and checked; compared and hashed by identity."""

    session: SessionSettings
    shared_workspace: Path | None
    """A directory that all sessions may read and write."""
    dev_allow_cwd: bool
    allow_global_tmp: bool
    sandbox: bool
    """Whether sessions may run guest code."""
    sandbox_address: str | None
    """The `host:port` of the gRPC service that runs the calls of a toolbox; `None`: they run here."""
    sandbox_key: str | None = field(repr=False)
    """The key that is shown to it."""
    sandbox_ca: Path | None
    """The authorities that may vouch for it; `None`: the usual ones."""
    python: PythonSettings
    shell: ShellSettings
    operator: OperatorSettings
    files: FilesSettings
    containers: ContainerSettings
    serve: ServeSettings
    roles: Roles
    """The tools of each role."""
    values: tuple[SettingValue, ...]
    """The same settings one by one, in the order of the table."""
    file: Path | None
    """Where the file is looked for; `None` if nothing says where."""
    has_file: bool
    """Whether there is one."""
    notes: tuple[str, ...]
    """What is not wrong but may not be meant."""

    @property
    def sessions_dir(self) -> Path:
        """The directory that holds all workspaces."""
        return self.session.directory


def session_rules(settings: Settings, cwd: str | os.PathLike[str]) -> tuple[AllowedPath, ...]:
    """The directories besides its workspace that every session may use, in the order of their rules."""
    rules = []
    if settings.shared_workspace is not None:
        rules.append(AllowedPath(settings.shared_workspace, "rw"))
    if settings.dev_allow_cwd:
        rules.append(AllowedPath(Path(cwd), "rw"))
    if settings.allow_global_tmp:
        rules.append(AllowedPath(Path("/tmp"), "rw"))  # noqa: S108  # the one that users asked for
    return tuple(rules)
