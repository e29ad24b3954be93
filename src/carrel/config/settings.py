"""The settings in effect, and the origin of each value."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from carrel.config.kind import AllowedPath, Mode, Roles
from carrel.errors import RuntimeMissingError
from carrel.values import MIB


class SettingSource(StrEnum):
    """The sources of a value; later ones override earlier ones."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of one value."""

    source: SettingSource
    name: str | None = None
    """Name of the file, variable or option."""
    line: int | None = None
    """Line in the file."""
    is_alias: bool = False
    """Whether the value was given under an alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One setting with its value and its origin."""

    name: str
    """Table and key in the file, joined by a dot."""
    value: object
    """The converted value; `None` for unset or for no limit."""
    origin: Origin
    is_used: bool
    """Whether the setting has an effect."""
    is_secret: bool = False
    """Whether the value must never be shown."""

    def __repr__(self) -> str:
        """Return the usual text of a dataclass, without the value of a secret."""
        value = "..." if self.is_secret else repr(self.value)
        name = type(self).__name__
        return f"{name}(name={self.name!r}, value={value}, origin={self.origin!r}, is_used={self.is_used!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Lifetime and quotas of sessions; `None` means no limit."""

    directory: Path
    """The directory that holds all workspaces."""
    disk_bytes: int | None
    """Maximum total size of the files of one session."""
    entries: int | None
    """Maximum number of files and directories of one session."""
    min_free_bytes: int
    """Writes are refused while the host disk has less free space than this."""
    durability: str
    """What an acknowledged change survives: `process` (a crash of any process) or `disk` (a power loss)."""
    ttl_seconds: int | None
    """Idle time after which a session expires."""
    max_sessions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSettings:
    """Host resources for guest Python."""

    workers: int
    """Number of worker processes; 0 means one per core."""
    ready: int
    """Number of interpreters kept ready."""
    memory_bytes: int
    """Maximum memory of the ready interpreters together."""
    stateful: int
    """Maximum number of interpreters kept for stateful sessions."""
    idle_seconds: int
    """Idle time after which a stateful interpreter is ended."""
    cache: Path | None
    """The directory of the compiled guest; `None` if it is not configured and there is no home directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """Docker engine, image and limits of containers; locked down by default."""

    image: str | None = None
    """Image of containers; `None` disables containers."""
    address: str | None = None
    """Address of the Docker engine; `None` means `DOCKER_HOST`, or the default socket."""
    pull: bool = False
    """Whether a missing image is pulled from its registry."""
    user: str | None = None
    """User of programs as `uid:gid`; `None` means the user of this process, or `nobody` if that is root."""
    memory_bytes: int = 512 * MIB
    """Maximum memory of all processes of one container and its `/tmp`."""
    cpus: float = 1.0
    pids: int = 128
    """Maximum number of processes and threads of one container."""
    tmp_bytes: int = 64 * MIB
    """Maximum size of its `/tmp`, which is in memory."""
    network: str = "none"
    """The Docker network that containers join."""
    read_only: bool = True
    """Whether the root file system is read-only."""
    capabilities: tuple[str, ...] = ()
    """The capabilities that containers keep."""
    seccomp: str | None = None
    """Seccomp profile instead of the engine's default: `unconfined`, or the profile as JSON text."""
    new_privileges: bool = False
    """Whether programs may gain privileges, for example through a setuid file."""
    timeout_seconds: float = 30.0
    """Timeout of requests to the engine."""
    tools: bool = False
    """Whether the tools `bash` and `python_executor` run in containers."""

    def require_image(self) -> str:
        """Return the image of containers.

        Raises:
            RuntimeMissingError: No image is configured.
        """
        if self.image is None:
            raise RuntimeMissingError(
                "no image for containers: set containers.image or CARREL_CONTAINER_IMAGE"
            )
        return self.image


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """Limits of command lines; `None` means no limit."""

    pipelines: bool
    """Whether a line may contain operators such as `|`, `;` and `&&`."""
    timeout_seconds: int | None
    output_bytes: int | None
    workers: int
    """Maximum number of worker processes of a service; 0 runs command lines in the service itself."""
    worker_bytes: int
    """Maximum memory of a command line in a worker process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The rules of the operator's shell."""

    root: Path | None
    """Its root directory; `None` if it is not configured and there is no home directory."""
    mode: Mode
    enabled: bool
    allow: tuple[AllowedPath, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings:
    """Limits of single file operations."""

    default_encoding: str
    max_file_bytes: int
    allowed_paths: tuple[str, ...]
    """Paths within a workspace that may be used; empty means all."""
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Addresses, authentication and limits of the service; `serve_keys` describes each field."""

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
    """Maximum bytes of one tenant's archive uploads on disk at the same time."""
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
        """The scheme of the service's URLs."""
        return "http" if self.tls_cert is None else "https"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """All settings, resolved and validated; compared and hashed by identity."""

    session: SessionSettings
    shared_workspace: Path | None
    """A directory that all sessions may read and write."""
    dev_allow_cwd: bool
    allow_global_tmp: bool
    sandbox: bool
    """Whether sessions may run guest code."""
    sandbox_address: str | None
    """`host:port` of the gRPC service that runs the calls of a toolbox; `None` runs them locally."""
    sandbox_key: str | None = field(repr=False)
    """API key for that service."""
    sandbox_ca: Path | None
    """PEM file of CA certificates to verify that service with; `None` means the system's."""
    python: PythonSettings
    shell: ShellSettings
    operator: OperatorSettings
    files: FilesSettings
    containers: ContainerSettings
    serve: ServeSettings
    roles: Roles
    """The tools of each role."""
    values: tuple[SettingValue, ...]
    """All settings one by one, in the order of the table."""
    file: Path | None
    """Path of the configuration file, which may not exist; `None` if no location is known."""
    has_file: bool
    """Whether the configuration file exists."""
    notes: tuple[str, ...]
    """Warnings about settings that are valid but probably not intended."""

    @property
    def sessions_dir(self) -> Path:
        """The directory that holds all workspaces."""
        return self.session.directory


def session_rules(settings: Settings, cwd: str | os.PathLike[str]) -> tuple[AllowedPath, ...]:
    """Return the host directories that every session may use besides its workspace, in rule order."""
    rules = []
    if settings.shared_workspace is not None:
        rules.append(AllowedPath(settings.shared_workspace, "rw"))
    if settings.dev_allow_cwd:
        rules.append(AllowedPath(Path(cwd), "rw"))
    if settings.allow_global_tmp:
        rules.append(AllowedPath(Path("/tmp"), "rw"))  # noqa: S108  # enabled by allow_global_tmp
    return tuple(rules)
