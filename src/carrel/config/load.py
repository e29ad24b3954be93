"""Settings from the environment, the file and the defaults, in this order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, cast

from carrel.config import container_keys, serve_keys, table
from carrel.config.debug import DEBUG_VARIABLE
from carrel.config.document import UnreadableDocumentError, read_document
from carrel.config.file import ConfigFile, home_of, read_config_file
from carrel.config.key import Key
from carrel.config.kind import InvalidValueError, did_you_mean
from carrel.config.settings import (
    ContainerSettings,
    FilesSettings,
    OperatorSettings,
    Origin,
    PythonSettings,
    ServeSettings,
    SessionSettings,
    Settings,
    SettingSource,
    SettingValue,
    ShellSettings,
)
from carrel.config.table import CONFIG_VARIABLE, DEFAULT_ROLES, KEYS
from carrel.errors import ConfigError
from carrel.values import MIB

PREFIX = "CARREL_"
DEFAULT = Origin(source=SettingSource.DEFAULT)

T = TypeVar("T")


def load(environ: Mapping[str, str], *, path: str | os.PathLike[str] | None = None) -> Settings:
    """Everything that is set, from the file at *path*, or from where the environment says.

    Raises:
        ConfigError: The file or a variable cannot be used; the message names it, the line and the key.
    """
    return _settings(environ, read_config_file(environ, path))


def operator_settings(environ: Mapping[str, str], warn: Callable[[str], object]) -> Settings:
    """The settings of the operator's shell, which starts in any case: what is wrong is told and left out.

    A file that is wrong is left out whole, and so is an environment that is wrong. What remains is stricter.
    """
    try:
        file = read_config_file(environ)
    except ConfigError as error:
        warn(f"{error}; the file is not used")
        file = ConfigFile(None)
    try:
        return _settings(environ, file)
    except ConfigError as error:
        warn(f"{error}; only the defaults are used")
    return _settings({"HOME": environ.get("HOME", "")}, ConfigFile(None))


def sessions_dir(environ: Mapping[str, str]) -> Path:
    """The directory that holds all workspaces, whatever the other variables say.

    Raises:
        ConfigError: The file, or the variable for this directory, cannot be used.
    """
    return _Values(environ, read_config_file(environ)).of(table.DIRECTORY)


class _Values:
    """The value of each key."""

    def __init__(self, environ: Mapping[str, str], file: ConfigFile) -> None:
        self._environ = environ
        self._file = file
        self._home = home_of(environ)
        self._found: dict[str, SettingValue] = {}

    def of(self, key: Key[T]) -> T:
        """The value of *key*."""
        return cast(T, self.value(key).value)  # what the kind of the key made

    def value(self, key: Key[object]) -> SettingValue:
        """The value of *key*, and where it came from."""
        if key.name not in self._found:
            value, origin = self._forced(key) or self._find(key)
            self._found[key.name] = SettingValue(
                name=key.name, value=value, origin=origin, is_used=key.is_used, is_secret=key.is_secret
            )
        return self._found[key.name]

    def roles(self) -> Iterator[SettingValue]:
        """The tools of each role: as given, or as by default."""
        key = table.ROLE_TOOLS
        given = self.of(key)
        for name, tools in {**DEFAULT_ROLES, **given}.items():
            origin = self._file.origin((*key.place, name)) if name in given else DEFAULT
            yield SettingValue(name=f"{key.name}.{name}", value=tools, origin=origin, is_used=key.is_used)

    def _forced(self, key: Key[object]) -> tuple[object, Origin] | None:
        """The mode of a workspace that a variable names: who names it there means to work in it."""
        if key is not table.WORKSPACE_MODE:
            return None
        root = self.value(table.WORKSPACE_ROOT).origin
        return ("rw", root) if root.source is SettingSource.ENVIRONMENT else None

    def _find(self, key: Key[object]) -> tuple[object, Origin]:
        for name in key.variables:
            if text := self._environ.get(name):
                origin = Origin(source=SettingSource.ENVIRONMENT, name=name, is_alias=name != key.variable)
                return self._parse(key, name, text), origin
        return self._file.find(key) or (self._default(key), DEFAULT)

    def _parse(self, key: Key[object], name: str, text: str) -> object:
        try:
            return key.kind.check(key.kind.spell(text), self._home)
        except InvalidValueError as error:
            raise ConfigError(f"{name} {error}") from None

    def _default(self, key: Key[object]) -> object:
        caches = self._environ.get("XDG_CACHE_HOME", "")
        if key is table.PYTHON_CACHE and caches.startswith("/"):
            return Path(caches, "carrel")
        try:
            return None if key.default is None else key.kind.check(key.default, self._home)
        except InvalidValueError:
            # It begins with ~, and there is no home directory.
            return None


def _settings(environ: Mapping[str, str], file: ConfigFile) -> Settings:
    values = _Values(environ, file)
    return Settings(
        session=_session(values),
        shared_workspace=values.of(table.SHARED_WORKSPACE),
        dev_allow_cwd=values.of(table.DEV_ALLOW_CWD),
        allow_global_tmp=values.of(table.ALLOW_GLOBAL_TMP),
        sandbox=values.of(table.SANDBOX),
        sandbox_address=values.of(table.SANDBOX_ADDRESS),
        sandbox_key=values.of(table.SANDBOX_KEY),
        sandbox_ca=values.of(table.SANDBOX_CA),
        python=_python(values),
        shell=_shell(values),
        operator=_operator(values),
        files=_files(values),
        containers=_containers(values),
        serve=_serve(values),
        roles=MappingProxyType({**DEFAULT_ROLES, **values.of(table.ROLE_TOOLS)}),
        values=tuple(_listed(values)),
        file=file.path,
        has_file=file.is_there,
        notes=(*_differing(environ), *_misspelt(environ)),
    )


def _session(values: _Values) -> SessionSettings:
    size_mb = values.of(table.MAX_WORKSPACE_MB)
    return SessionSettings(
        directory=values.of(table.DIRECTORY),
        disk_bytes=None if size_mb is None else size_mb * MIB,
        entries=values.of(table.ENTRIES),
        min_free_bytes=values.of(table.MIN_FREE_MB) * MIB,
        durability=values.of(table.DURABILITY),
        ttl_seconds=values.of(table.TTL_SECONDS),
        max_sessions=values.of(table.MAX_SESSIONS),
    )


def _python(values: _Values) -> PythonSettings:
    return PythonSettings(
        workers=values.of(table.PYTHON_WORKERS),
        ready=values.of(table.PYTHON_READY),
        memory_bytes=values.of(table.PYTHON_MEMORY_MB) * MIB,
        stateful=values.of(table.PYTHON_STATEFUL),
        idle_seconds=values.of(table.PYTHON_IDLE_SECONDS),
        cache=values.of(table.PYTHON_CACHE),
    )


def _shell(values: _Values) -> ShellSettings:
    size_mb = values.of(table.SHELL_OUTPUT_MB)
    return ShellSettings(
        pipelines=values.of(table.SHELL_PIPELINES),
        timeout_seconds=values.of(table.SHELL_TIMEOUT_SECONDS),
        output_bytes=None if size_mb is None else size_mb * MIB,
        workers=values.of(table.SHELL_WORKERS),
        worker_bytes=values.of(table.SHELL_WORKER_MB) * MIB,
    )


def _operator(values: _Values) -> OperatorSettings:
    return OperatorSettings(
        root=values.of(table.WORKSPACE_ROOT),
        mode=values.of(table.WORKSPACE_MODE),
        enabled=values.of(table.WORKSPACE_ENABLED),
        allow=values.of(table.WORKSPACE_ALLOW),
    )


def _files(values: _Values) -> FilesSettings:
    return FilesSettings(
        default_encoding=values.of(table.DEFAULT_ENCODING),
        max_file_bytes=values.of(table.MAX_FILE_SIZE),
        allowed_paths=values.of(table.ALLOWED_PATHS),
        timeout_ms=values.of(table.TIMEOUT_MS),
    )


def _containers(values: _Values) -> ContainerSettings:
    return ContainerSettings(
        image=values.of(container_keys.IMAGE),
        address=values.of(container_keys.ADDRESS),
        pull=values.of(container_keys.PULL),
        user=values.of(container_keys.USER),
        memory_bytes=values.of(container_keys.MEMORY_MB) * MIB,
        cpus=values.of(container_keys.CPUS),
        pids=values.of(container_keys.PIDS),
        tmp_bytes=values.of(container_keys.TMP_MB) * MIB,
        network=values.of(container_keys.NETWORK),
        read_only=values.of(container_keys.READ_ONLY),
        capabilities=values.of(container_keys.CAPABILITY_NAMES),
        seccomp=_seccomp(values),
        new_privileges=values.of(container_keys.NEW_PRIVILEGES),
        timeout_seconds=values.of(container_keys.TIMEOUT_SECONDS),
        tools=values.of(container_keys.TOOLS),
    )


def _seccomp(values: _Values) -> str | None:
    """The text of the filter that is named; the engine wants that, and cannot open our files.

    Raises:
        ConfigError: The file cannot be read, or is not JSON.
    """
    name = values.of(container_keys.SECCOMP)
    if name is None or name == container_keys.UNCONFINED:
        return name
    import json

    where = _where(values.value(container_keys.SECCOMP))
    try:
        text = read_document(Path(name))
        if text is None:
            raise UnreadableDocumentError("is not there")
        if not isinstance(json.loads(text), dict):
            raise UnreadableDocumentError("is not an object in JSON")
    except UnreadableDocumentError as error:
        problem = str(error)
    except (ValueError, RecursionError):
        problem = "is not JSON"
    else:
        return text
    raise ConfigError(f"{where} names a file that {problem}", path=name)


def _where(value: SettingValue) -> str:
    """Where a value was given, as the beginning of a sentence."""
    origin = value.origin
    return f"{origin.name}:{origin.line}: {value.name}" if origin.line else str(origin.name)


def _serve(values: _Values) -> ServeSettings:
    return ServeSettings(
        host=values.of(serve_keys.HOST),
        port=values.of(serve_keys.PORT),
        grpc=values.of(serve_keys.GRPC),
        grpc_port=values.of(serve_keys.GRPC_PORT),
        tls_cert=values.of(serve_keys.TLS_CERT),
        tls_key=values.of(serve_keys.TLS_KEY),
        require_key=values.of(serve_keys.REQUIRE_KEY),
        isolate_sessions=values.of(serve_keys.ISOLATE_SESSIONS),
        rate_per_minute=values.of(serve_keys.RATE_PER_MINUTE),
        max_body_bytes=values.of(serve_keys.MAX_BODY_MB) * MIB,
        uploads_bytes=values.of(serve_keys.UPLOADS_MB) * MIB,
        max_requests=values.of(serve_keys.MAX_REQUESTS),
        executions=values.of(serve_keys.EXECUTIONS),
        executions_per_caller=values.of(serve_keys.EXECUTIONS_PER_CALLER),
        timeout_seconds=values.of(serve_keys.TIMEOUT_SECONDS),
        shutdown_seconds=values.of(serve_keys.SHUTDOWN_SECONDS),
        idle_seconds=values.of(serve_keys.IDLE_SECONDS),
        open_sessions=values.of(serve_keys.OPEN_SESSIONS),
        sweep_seconds=values.of(serve_keys.SWEEP_SECONDS),
        resume_seconds=values.of(serve_keys.RESUME_SECONDS),
        cors_origins=values.of(serve_keys.CORS_ORIGINS),
        metrics=values.of(serve_keys.METRICS),
        jwt_issuer=values.of(serve_keys.JWT_ISSUER),
        jwt_audience=values.of(serve_keys.JWT_AUDIENCE),
        jwt_jwks=values.of(serve_keys.JWT_JWKS),
        jwt_algorithms=values.of(serve_keys.JWT_ALGORITHMS),
        jwt_tenant_claim=values.of(serve_keys.JWT_TENANT_CLAIM),
        jwt_roles_claim=values.of(serve_keys.JWT_ROLES_CLAIM),
        traces=values.of(serve_keys.TRACES),
    )


def _listed(values: _Values) -> Iterator[SettingValue]:
    """All values in the order of the table."""
    for key in KEYS:
        if key is table.ROLE_TOOLS:
            yield from values.roles()
        else:
            yield values.value(key)


def _differing(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables that say one thing while their aliases say another."""
    for key in KEYS:
        said = [name for name in key.variables if environ.get(name)]
        if len({environ[name] for name in said}) > 1:
            yield f"{' and '.join(said)} are both set and differ; {said[0]} is used"


def _misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables that nobody reads but that look like ours."""
    names = (CONFIG_VARIABLE, DEBUG_VARIABLE, *(key.variable for key in KEYS if key.variable))
    known = {name.removeprefix(PREFIX): name for name in names}
    for name in environ:
        if name.startswith(PREFIX) and name not in names:
            hint = did_you_mean(name.removeprefix(PREFIX), known)
            yield f"{name} is set, but no setting has that name{hint}"
