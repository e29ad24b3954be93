"""Resolve the settings from the environment, the configuration file and the defaults, in this order.

A program loads its settings once and passes them down. Loading them again is cheap as well: the result is
cached by the variables and the text of the file, so an unchanged configuration is checked only once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
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
_VARIABLES = frozenset(
    {"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", *(name for key in KEYS for name in key.variables)}
)
"""Every variable that settings depend on. Others that start with `PREFIX` may be misspelled."""
_MAX_CACHED = 16

T = TypeVar("T")


def load(environ: Mapping[str, str], *, path: str | os.PathLike[str] | None = None) -> Settings:
    """Resolve all settings, with the file at *path* or at the location that the environment gives.

    An unchanged configuration gives the same object again, so that `Settings` can be a cache key.

    Raises:
        ConfigError: The file or a variable is invalid; the message names it, the line and the key.
    """
    variables = _variables(environ)
    file = read_config_file(dict(variables), path)
    return _with_seccomp_profile(_settings(variables, file))


def operator_settings(environ: Mapping[str, str], warn: Callable[[str], object]) -> Settings:
    """Resolve the settings of the operator's shell, which starts with any configuration.

    An invalid file is ignored as a whole, and so is an invalid environment; *warn* receives the reason. The
    defaults that remain are stricter.
    """
    variables = _variables(environ)
    try:
        file = read_config_file(dict(variables))
    except ConfigError as error:
        warn(f"{error}; the file is not used")
        file = ConfigFile(None)
    try:
        return _with_seccomp_profile(_settings(variables, file))
    except ConfigError as error:
        warn(f"{error}; only the defaults are used")
    return _settings((("HOME", environ.get("HOME", "")),), ConfigFile(None))


def sessions_dir(environ: Mapping[str, str]) -> Path:
    """Resolve the sessions directory alone; other variables may be invalid.

    Raises:
        ConfigError: The file, or the variable for this directory, is invalid.
    """
    variables = dict(_variables(environ))
    return _Values(variables, read_config_file(variables)).of(table.DIRECTORY)


def _variables(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, environ.get(name, "")) for name in environ if name in _VARIABLES or name.startswith(PREFIX)
    )


class _Values:
    """Resolves the value of each key."""

    def __init__(self, variables: Mapping[str, str], file: ConfigFile) -> None:
        self._variables = variables
        self._file = file
        self._home = home_of(variables)
        self._found: dict[str, SettingValue] = {}

    def of(self, key: Key[T]) -> T:
        """Return the value of *key*."""
        return cast(T, self.value(key).value)  # converted by the kind of the key

    def value(self, key: Key[object]) -> SettingValue:
        """Return the value of *key* with its origin."""
        if key.name not in self._found:
            value, origin = self._find(key)
            self._found[key.name] = SettingValue(
                name=key.name, value=value, origin=origin, is_used=key.is_used, is_secret=key.is_secret
            )
        return self._found[key.name]

    def roles(self) -> Iterator[SettingValue]:
        """Yield the tools of each role, configured or default."""
        key = table.ROLE_TOOLS
        given = self.of(key)
        for name, tools in {**DEFAULT_ROLES, **given}.items():
            origin = self._file.origin((*key.path, name)) if name in given else DEFAULT
            yield SettingValue(name=f"{key.name}.{name}", value=tools, origin=origin, is_used=key.is_used)

    def _find(self, key: Key[object]) -> tuple[object, Origin]:
        if key is table.WORKSPACE_MODE:
            root = self.value(table.WORKSPACE_ROOT).origin
            if root.source is SettingSource.ENVIRONMENT:
                return "rw", root
        for name in (key.variable, key.alias):
            if name and (text := self._variables.get(name)):
                origin = Origin(source=SettingSource.ENVIRONMENT, name=name, is_alias=name != key.variable)
                return self._parse(key, name, text), origin
        return self._file.find(key) or (self._default(key), DEFAULT)

    def _parse(self, key: Key[object], name: str, text: str) -> object:
        try:
            return key.kind.check(key.kind.from_text(text), self._home)
        except InvalidValueError as error:
            raise ConfigError(f"{name} {error}") from None

    def _default(self, key: Key[object]) -> object:
        caches = self._variables.get("XDG_CACHE_HOME", "")
        if key is table.PYTHON_CACHE and caches.startswith("/"):
            return Path(caches, "carrel")
        try:
            return None if key.default is None else key.kind.check(key.default, self._home)
        except InvalidValueError:
            # The default starts with ~, and there is no home directory.
            return None


@lru_cache(maxsize=_MAX_CACHED)
def _settings(variables: tuple[tuple[str, str], ...], file: ConfigFile) -> Settings:
    environ = dict(variables)
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
        has_file=file.exists,
        notes=(*_conflicts(environ), *_misspelled(environ)),
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
        seccomp=values.of(container_keys.SECCOMP),
        new_privileges=values.of(container_keys.NEW_PRIVILEGES),
        timeout_seconds=values.of(container_keys.TIMEOUT_SECONDS),
        tools=values.of(container_keys.TOOLS),
    )


def _with_seccomp_profile(settings: Settings) -> Settings:
    """Replace the path of the seccomp profile by its text, which is what the engine takes.

    Raises:
        ConfigError: The file cannot be read, or is not a JSON object.
    """
    name = settings.containers.seccomp
    if name is None or name == container_keys.UNCONFINED:
        return settings
    try:
        return _with_seccomp(settings, read_document(Path(name)))
    except UnreadableDocumentError as error:
        (value,) = (each for each in settings.values if each.name == container_keys.SECCOMP.name)
        raise ConfigError(f"{_location(value)} names a file that {error}", path=name) from None


@lru_cache(maxsize=_MAX_CACHED)
def _with_seccomp(settings: Settings, profile: str | None) -> Settings:
    import json

    if profile is None:
        raise UnreadableDocumentError("does not exist")
    try:
        document = json.loads(profile)
    except (ValueError, RecursionError):
        raise UnreadableDocumentError("is not JSON") from None
    if not isinstance(document, dict):
        raise UnreadableDocumentError("is not a JSON object")
    return replace(settings, containers=replace(settings.containers, seccomp=profile))


def _location(value: SettingValue) -> str:
    """Return the location of a value, as the start of a sentence."""
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
    """Yield all values in the order of the table."""
    for key in KEYS:
        if key is table.ROLE_TOOLS:
            yield from values.roles()
        else:
            yield values.value(key)


def _conflicts(environ: Mapping[str, str]) -> Iterator[str]:
    """Warn of variables whose value differs from that of their alias."""
    for key in KEYS:
        names = [name for name in key.variables if environ.get(name)]
        if len({environ[name] for name in names}) > 1:
            yield f"{' and '.join(names)} are both set and differ; {names[0]} is used"


def _misspelled(environ: Mapping[str, str]) -> Iterator[str]:
    """Warn of variables with our prefix that name no setting."""
    names = (CONFIG_VARIABLE, DEBUG_VARIABLE, *(key.variable for key in KEYS if key.variable))
    known = {name.removeprefix(PREFIX): name for name in names}
    for name in environ:
        if name.startswith(PREFIX) and name not in names:
            hint = did_you_mean(name.removeprefix(PREFIX), known)
            yield f"{name} is set, but no setting has that name{hint}"
