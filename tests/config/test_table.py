"""Every setting, by every way it can be given."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from carrel.config.key import Key
from carrel.config.kind import AllowedPath
from carrel.config.settings import Origin, Settings, SettingSource, SettingValue
from carrel.config.table import DEFAULT_ROLES, KEYS
from tests.config.conftest import Home


@dataclass(frozen=True, slots=True)
class Sample:
    """One setting with another value than its default."""

    text: str
    """In the file."""
    value: object
    get: Callable[[Settings], object]
    default: object
    variable: str | None = None
    """In the environment."""
    other: str | None = None
    """In the file, but not the same; for a value that may not be any text."""


HOME = "HOME"
"""Stands for the home directory."""
SAMPLES = {
    "session.directory": Sample(
        '"/srv/s"', Path("/srv/s"), lambda s: s.sessions_dir, Path("workspace"), "/srv/s"
    ),
    "session.max_workspace_mb": Sample("7", 7 * 2**20, lambda s: s.session.disk_bytes, 100 * 2**20, "7"),
    "session.entries": Sample("9", 9, lambda s: s.session.entries, 100_000, "9"),
    "session.min_free_mb": Sample("3", 3 * 2**20, lambda s: s.session.min_free_bytes, 100 * 2**20, "3"),
    "session.durability": Sample(
        '"disk"', "disk", lambda s: s.session.durability, "process", "disk", '"process"'
    ),
    "session.ttl_seconds": Sample('"none"', None, lambda s: s.session.ttl_seconds, 86_400, "none"),
    "session.max_sessions": Sample("1", 1, lambda s: s.session.max_sessions, 1_000, "1"),
    "session.shared_workspace": Sample('"/all"', Path("/all"), lambda s: s.shared_workspace, None, "/all"),
    "session.dev_allow_cwd": Sample("true", True, lambda s: s.dev_allow_cwd, False, "yes"),
    "session.allow_global_tmp": Sample("true", True, lambda s: s.allow_global_tmp, False, "1"),
    "sandbox.enabled": Sample("false", False, lambda s: s.sandbox, True, "off"),
    "sandbox.address": Sample(
        '"box:50051"', "box:50051", lambda s: s.sandbox_address, None, "box:50051", '"else:1"'
    ),
    "sandbox.key": Sample('"word"', "word", lambda s: s.sandbox_key, None, "word"),
    "sandbox.ca": Sample('"/ca.pem"', Path("/ca.pem"), lambda s: s.sandbox_ca, None, "/ca.pem"),
    "python.workers": Sample("3", 3, lambda s: s.python.workers, 0, "3"),
    "python.ready": Sample("0", 0, lambda s: s.python.ready, 2, "0"),
    "python.memory_mb": Sample("6", 6 * 2**20, lambda s: s.python.memory_bytes, 64 * 2**20, "6"),
    "python.stateful": Sample("1", 1, lambda s: s.python.stateful, 16, "1"),
    "python.idle_seconds": Sample("30", 30, lambda s: s.python.idle_seconds, 900, "30"),
    "python.cache": Sample(
        '"/srv/c"', Path("/srv/c"), lambda s: s.python.cache, Path(HOME, ".cache/carrel"), "/srv/c"
    ),
    "shell.pipelines": Sample("true", True, lambda s: s.shell.pipelines, False, "yes"),
    "shell.timeout_seconds": Sample("5", 5, lambda s: s.shell.timeout_seconds, 30, "5"),
    "shell.output_mb": Sample("3", 3 * 2**20, lambda s: s.shell.output_bytes, 16 * 2**20, "3"),
    "shell.workers": Sample("0", 0, lambda s: s.shell.workers, 32, "0"),
    "shell.worker_mb": Sample(
        "128", 128 * 2**20, lambda s: s.shell.worker_bytes, 512 * 2**20, "128", other="256"
    ),
    "workspace.root": Sample(
        '"/w"', Path("/w"), lambda s: s.operator.root, Path(HOME, ".local/share/carrel/workspace"), "/w"
    ),
    "workspace.mode": Sample('"rw"', "rw", lambda s: s.operator.mode, "ro"),
    "workspace.enabled": Sample("false", False, lambda s: s.operator.enabled, True),
    "workspace.allow": Sample(
        '[{ path = "/a", mode = "rw" }, { path = "/b" }]',
        (AllowedPath(Path("/a"), "rw"), AllowedPath(Path("/b"), "ro")),
        lambda s: s.operator.allow,
        (),
    ),
    "files.default_encoding": Sample('"latin-1"', "latin-1", lambda s: s.files.default_encoding, "utf-8"),
    "files.max_file_size": Sample('"2KB"', 2048, lambda s: s.files.max_file_bytes, 10 * 2**20),
    "files.allowed_paths": Sample('["a", "b"]', ("a", "b"), lambda s: s.files.allowed_paths, ()),
    "files.timeout_ms": Sample("5", 5, lambda s: s.files.timeout_ms, 30_000),
    "containers.image": Sample('"box"', "box", lambda s: s.containers.image, None, "box", '"other"'),
    "containers.address": Sample(
        '"unix:///e"', "unix:///e", lambda s: s.containers.address, None, "unix:///e", '"tcp://e:1"'
    ),
    "containers.pull": Sample("true", True, lambda s: s.containers.pull, False, "yes"),
    "containers.user": Sample('"7:8"', "7:8", lambda s: s.containers.user, None, "7:8", '"1:1"'),
    "containers.memory_mb": Sample(
        "8", 8 * 2**20, lambda s: s.containers.memory_bytes, 512 * 2**20, "8", "9"
    ),
    "containers.cpus": Sample("0.5", 0.5, lambda s: s.containers.cpus, 1.0, "0.5", "2"),
    "containers.pids": Sample("9", 9, lambda s: s.containers.pids, 128, "9", "8"),
    "containers.tmp_mb": Sample("1", 2**20, lambda s: s.containers.tmp_bytes, 64 * 2**20, "1"),
    "containers.network": Sample(
        '"bridge"', "bridge", lambda s: s.containers.network, "none", "bridge", '"mine"'
    ),
    "containers.read_only": Sample("false", False, lambda s: s.containers.read_only, True, "no"),
    "containers.capabilities": Sample(
        '["CHOWN", "CAP_KILL"]',
        ("CHOWN", "KILL"),
        lambda s: s.containers.capabilities,
        (),
        "CHOWN, CAP_KILL",
        "[]",
    ),
    "containers.seccomp": Sample(
        '"unconfined"',
        "unconfined",
        lambda s: s.containers.seccomp,
        None,
        "unconfined",
        f'"{Path(__file__).parent / "filter.json"}"',
    ),
    "containers.new_privileges": Sample("true", True, lambda s: s.containers.new_privileges, False, "on"),
    "containers.timeout_seconds": Sample("9", 9, lambda s: s.containers.timeout_seconds, 30, "9"),
    "containers.tools": Sample("true", True, lambda s: s.containers.tools, False, "1"),
    "serve.host": Sample('"0.0.0.0"', "0.0.0.0", lambda s: s.serve.host, "127.0.0.1", "0.0.0.0", '"::1"'),
    "serve.port": Sample("0", 0, lambda s: s.serve.port, 8080, "0"),
    "serve.grpc": Sample("false", False, lambda s: s.serve.grpc, True, "no"),
    "serve.grpc_port": Sample("9", 9, lambda s: s.serve.grpc_port, 50_051, "9"),
    "serve.tls_cert": Sample('"/c.pem"', Path("/c.pem"), lambda s: s.serve.tls_cert, None, "/c.pem"),
    "serve.tls_key": Sample('"/k.pem"', Path("/k.pem"), lambda s: s.serve.tls_key, None, "/k.pem"),
    "serve.require_key": Sample("false", False, lambda s: s.serve.require_key, True, "no"),
    "serve.isolate_sessions": Sample("false", False, lambda s: s.serve.isolate_sessions, True, "no"),
    "serve.rate_per_minute": Sample('"none"', None, lambda s: s.serve.rate_per_minute, 6_000, "none"),
    "serve.max_body_mb": Sample("1", 2**20, lambda s: s.serve.max_body_bytes, 128 * 2**20, "1"),
    "serve.uploads_mb": Sample("1", 2**20, lambda s: s.serve.uploads_bytes, 2**31, "1"),
    "serve.max_requests": Sample("9", 9, lambda s: s.serve.max_requests, 1_024, "9"),
    "serve.executions": Sample("9", 9, lambda s: s.serve.executions, 32, "9"),
    "serve.executions_per_caller": Sample("9", 9, lambda s: s.serve.executions_per_caller, 8, "9"),
    "serve.timeout_seconds": Sample("9", 9, lambda s: s.serve.timeout_seconds, 300, "9"),
    "serve.shutdown_seconds": Sample("0", 0, lambda s: s.serve.shutdown_seconds, 10, "0"),
    "serve.idle_seconds": Sample("9", 9, lambda s: s.serve.idle_seconds, 900, "9"),
    "serve.open_sessions": Sample("9", 9, lambda s: s.serve.open_sessions, 256, "9"),
    "serve.sweep_seconds": Sample("9", 9, lambda s: s.serve.sweep_seconds, 60, "9"),
    "serve.resume_seconds": Sample("9", 9, lambda s: s.serve.resume_seconds, 5, "9"),
    "serve.cors_origins": Sample(
        '["https://a.example", "http://localhost:3000"]',
        ("https://a.example", "http://localhost:3000"),
        lambda s: s.serve.cors_origins,
        (),
        "https://a.example, http://localhost:3000",
        "[]",
    ),
    "serve.metrics": Sample("false", False, lambda s: s.serve.metrics, True, "off"),
    "serve.jwt_issuer": Sample('"me"', "me", lambda s: s.serve.jwt_issuer, None, "me"),
    "serve.jwt_audience": Sample('"you"', "you", lambda s: s.serve.jwt_audience, None, "you"),
    "serve.jwt_jwks": Sample('"/j.json"', "/j.json", lambda s: s.serve.jwt_jwks, None, "/j.json"),
    "serve.jwt_algorithms": Sample(
        '["PS256", "ES384"]',
        ("PS256", "ES384"),
        lambda s: s.serve.jwt_algorithms,
        ("RS256", "ES256", "EdDSA"),
        "PS256,ES384",
        "[]",
    ),
    "serve.jwt_tenant_claim": Sample('"tid"', "tid", lambda s: s.serve.jwt_tenant_claim, "sub", "tid"),
    "serve.jwt_roles_claim": Sample('"as"', "as", lambda s: s.serve.jwt_roles_claim, "roles", "as"),
    "serve.traces": Sample("true", True, lambda s: s.serve.traces, False, "on"),
    "roles": Sample(
        '{ critic = { tools = ["bash"] } }',
        {**DEFAULT_ROLES, "critic": ("bash",)},
        lambda s: dict(s.roles),
        dict(DEFAULT_ROLES),
    ),
}


def value_of(settings: Settings, key: Key[object]) -> SettingValue:
    """The one value that stands for a setting; of the roles, the one that the sample gives."""
    name = "roles.critic" if key.name == "roles" else key.name
    (value,) = (each for each in settings.values if each.name == name)
    return value


def test_every_setting_has_a_sample() -> None:
    assert list(SAMPLES) == [key.name for key in KEYS]


def test_names_and_variables_are_used_once() -> None:
    for used in (
        [path for key in KEYS for path in key.paths],
        [name for key in KEYS for name in key.variables],
    ):
        assert len(used) == len(set(used))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_row_is_complete_and_plain(key: Key[object]) -> None:
    assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)?", key.name)
    assert key.variable is None or key.variable.startswith("CARREL_")
    assert key.alias is None or key.variable
    assert key.meaning.endswith(".")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_value_says_whether_its_setting_is_used(key: Key[object], home: Home) -> None:
    tables = ("session", "sandbox", "python", "shell", "workspace", "files", "containers", "serve", "roles")
    assert key.is_used == (key.name.partition(".")[0] in tables)
    assert value_of(home.load(), key).is_used == key.is_used


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_setting_that_is_not_given_has_its_default(key: Key[object], home: Home) -> None:
    settings = home.load()
    default = SAMPLES[key.name].default
    if isinstance(default, Path) and default.parts[0] == HOME:
        default = home.path.joinpath(*default.parts[1:])
    assert SAMPLES[key.name].get(settings) == default
    assert value_of(settings, key).origin == Origin(source=SettingSource.DEFAULT)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_setting_comes_from_the_file_with_its_line(key: Key[object], home: Home) -> None:
    settings = home.load(f"# first\n\n{key.name} = {SAMPLES[key.name].text}\n")
    assert SAMPLES[key.name].get(settings) == SAMPLES[key.name].value
    assert value_of(settings, key).origin == Origin(source=SettingSource.FILE, name=str(home.file), line=3)


@pytest.mark.parametrize("key", [key for key in KEYS if key.file_alias], ids=lambda key: key.name)
def test_a_setting_comes_from_the_file_by_its_other_name(key: Key[object], home: Home) -> None:
    settings = home.load(f"[{key.path[0]}]\n{key.file_alias} = {SAMPLES[key.name].text}\n")
    assert SAMPLES[key.name].get(settings) == SAMPLES[key.name].value
    assert value_of(settings, key).origin == Origin(
        source=SettingSource.FILE, name=str(home.file), line=2, is_alias=True
    )


@pytest.mark.parametrize("key", [key for key in KEYS if key.file_alias], ids=lambda key: key.name)
def test_a_setting_under_both_names_in_the_file_is_refused(key: Key[object], home: Home) -> None:
    text = SAMPLES[key.name].text
    message = home.error(f"[{key.path[0]}]\n{key.path[1]} = {text}\n{key.file_alias} = {text}\n")
    assert message == (
        f"FILE:3: {key.path[0]}.{key.file_alias} is the same setting as {key.name}; give one of them"
    )


VARIABLES = [(key, name) for key in KEYS for name in key.variables]


@pytest.mark.parametrize(("key", "name"), VARIABLES, ids=[name for _, name in VARIABLES])
def test_a_setting_comes_from_a_variable_which_goes_before_the_file(
    key: Key[object], name: str, home: Home
) -> None:
    sample = SAMPLES[key.name]
    assert sample.variable is not None
    home.write(f"# not this one\n{key.name} = {_other(key)}\n")
    assert sample.get(home.load()) != sample.value
    settings = home.load(**{name: sample.variable})
    assert sample.get(settings) == sample.value
    is_alias = name == key.alias
    assert value_of(settings, key).origin == Origin(
        source=SettingSource.ENVIRONMENT, name=name, is_alias=is_alias
    )
    assert settings.notes == ()


def _other(key: Key[object]) -> str:
    """A value for the file that is not the one of the sample."""
    if (other := SAMPLES[key.name].other) is not None:
        return other
    if isinstance(key.default, bool):
        return str(SAMPLES[key.name].value is False).lower()
    return "2" if isinstance(key.default, int) else '"/else"'


@pytest.mark.parametrize("key", [key for key in KEYS if key.alias], ids=lambda key: key.name)
def test_our_own_variable_goes_before_its_alias_and_that_is_noted(key: Key[object], home: Home) -> None:
    sample = SAMPLES[key.name]
    assert sample.variable is not None
    assert key.variable is not None
    assert key.alias is not None
    both = home.load(**{key.variable: sample.variable, key.alias: "not even right"})
    assert sample.get(both) == sample.value
    assert both.notes == (f"{key.variable} and {key.alias} are both set and differ; {key.variable} is used",)
    assert home.load(**{key.variable: sample.variable, key.alias: sample.variable}).notes == ()


@pytest.mark.parametrize(("key", "name"), VARIABLES, ids=[name for _, name in VARIABLES])
def test_an_empty_variable_is_no_setting(key: Key[object], name: str, home: Home) -> None:
    assert value_of(home.load(**{name: ""}), key).origin.source is SettingSource.DEFAULT
