"""Settings from the environment, the file and the defaults."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.config.load import load, operator_settings, sessions_dir
from carrel.config.settings import SettingSource, session_rules
from carrel.config.table import KEYS
from carrel.errors import ConfigError
from tests.config.conftest import Home
from tests.requirements import requirement

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "settings.md"

# The sessions directory


def test_the_sessions_directory_is_workspace_in_the_current_one_by_default() -> None:
    assert sessions_dir({}) == Path("workspace")


def test_a_variable_names_the_sessions_directory(home: Home) -> None:
    home.write("session.directory = '/file'")
    assert sessions_dir(home.environ()) == Path("/file")
    assert sessions_dir(home.environ(SHANNON_SESSION_WORKSPACES_DIR="/alias")) == Path("/alias")
    assert sessions_dir(
        home.environ(SHANNON_SESSION_WORKSPACES_DIR="/alias", CARREL_SESSIONS_DIR="/own")
    ) == Path("/own")


def test_a_tilde_stands_for_the_home_of_the_given_environment(home: Home) -> None:
    assert sessions_dir(home.environ(CARREL_SESSIONS_DIR="~/sessions")) == home.path / "sessions"
    with pytest.raises(ConfigError, match=r"^CARREL_SESSIONS_DIR begins with ~, but HOME"):
        sessions_dir({"CARREL_SESSIONS_DIR": "~/sessions"})


def test_the_sessions_directory_does_not_ask_about_other_variables(home: Home) -> None:
    assert sessions_dir(home.environ(CARREL_MAX_ENTRIES="many")) == Path("workspace")


@pytest.mark.parametrize("text", ["x =", "nope = 1", "session.entries = 'many'"])
def test_a_file_that_is_wrong_gives_no_sessions_directory(home: Home, text: str) -> None:
    home.write(text)
    with pytest.raises(ConfigError, match=re.escape(f"{home.file}:1: ")):
        sessions_dir(home.environ(CARREL_SESSIONS_DIR="/own"))


# Variables

BAD = {
    "CARREL_SESSIONS_DIR": "~other",
    "SHANNON_SESSION_WORKSPACES_DIR": "a\0b",
    "CARREL_MAX_WORKSPACE_MB": "-1",
    "SHANNON_MAX_WORKSPACE_SIZE_MB": "1.5",
    "CARREL_MAX_ENTRIES": "many",
    "CARREL_MIN_FREE_MB": "nan",
    "CARREL_DURABILITY": "memory",
    "CARREL_TTL_SECONDS": "0",
    "CARREL_MAX_SESSIONS": "9" * 30,
    "CARREL_SHARED_WORKSPACE": "relative",
    "SHANNON_WORKSPACE": "~other/x",
    "CARREL_DEV_ALLOW_CWD": "2",
    "SHANNON_DEV_ALLOW_CWD": "maybe",
    "CARREL_ALLOW_GLOBAL_TMP": "-",
    "SHANNON_ALLOW_GLOBAL_TMP": "x",
    "CARREL_SANDBOX": "wasi",
    "SHANNON_USE_WASI_SANDBOX": "3",
    "CARREL_SANDBOX_ADDR": "http://box:1",
    "CARREL_SANDBOX_KEY": "two words",
    "CARREL_SANDBOX_CA": "relative.pem",
    "CARREL_CONTAINER_IMAGE": "-v /:/host",
    "CARREL_CONTAINER_ENGINE": "ssh://somewhere",
    "CARREL_CONTAINER_PULL": "maybe",
    "CARREL_CONTAINER_USER": "root",
    "CARREL_CONTAINER_MEMORY_MB": "0",
    "CARREL_CONTAINER_CPUS": "nan",
    "CARREL_CONTAINER_PIDS": "-1",
    "CARREL_CONTAINER_TMP_MB": "0",
    "CARREL_CONTAINER_NETWORK": "container:other",
    "CARREL_CONTAINER_READ_ONLY": "maybe",
    "CARREL_CONTAINER_CAPABILITIES": "CHOWN,ALL",
    "CARREL_CONTAINER_SECCOMP": "relative.json",
    "CARREL_CONTAINER_NEW_PRIVILEGES": "x",
    "CARREL_CONTAINER_TIMEOUT_SECONDS": "0",
    "CARREL_CONTAINER_TOOLS": "bash",
    "CARREL_SERVE_HOST": "a b",
    "CARREL_SERVE_PORT": "65536",
    "CARREL_SERVE_GRPC": "maybe",
    "CARREL_SERVE_GRPC_PORT": "-1",
    "CARREL_SERVE_TLS_CERT": "relative.pem",
    "CARREL_SERVE_TLS_KEY": "~other/key.pem",
    "CARREL_SERVE_REQUIRE_KEY": "2",
    "CARREL_SERVE_ISOLATE_SESSIONS": "2",
    "CARREL_SERVE_RATE_PER_MINUTE": "0",
    "CARREL_SERVE_MAX_BODY_MB": "0",
    "CARREL_SERVE_UPLOADS_MB": "0",
    "CARREL_SERVE_MAX_REQUESTS": "none",
    "CARREL_SERVE_EXECUTIONS": "0",
    "CARREL_SERVE_EXECUTIONS_PER_CALLER": "0",
    "CARREL_SERVE_TIMEOUT_SECONDS": "none",
    "CARREL_SERVE_SHUTDOWN_SECONDS": "3601",
    "CARREL_SERVE_IDLE_SECONDS": "0",
    "CARREL_SERVE_OPEN_SESSIONS": "0",
    "CARREL_SERVE_SWEEP_SECONDS": "0",
    "CARREL_SERVE_RESUME_SECONDS": "x",
    "CARREL_SERVE_CORS_ORIGINS": "https://a.example,https://b.example/path",
    "CARREL_SERVE_METRICS": "x",
    "CARREL_SERVE_JWT_ISSUER": "\0",
    "CARREL_SERVE_JWT_AUDIENCE": "\0",
    "CARREL_SERVE_JWT_JWKS": "http://issuer.example/keys",
    "CARREL_SERVE_JWT_ALGORITHMS": "RS256,none",
    "CARREL_SERVE_JWT_TENANT_CLAIM": "\0",
    "CARREL_SERVE_JWT_ROLES_CLAIM": "\0",
    "CARREL_SERVE_TRACES": "x",
    "CARREL_PYTHON_WORKERS": "65",
    "CARREL_PYTHON_READY": "none",
    "CARREL_PYTHON_MEMORY_MB": "-1",
    "CARREL_PYTHON_STATEFUL": "0",
    "CARREL_PYTHON_IDLE_SECONDS": "0",
    "CARREL_CACHE": "relative",
    "CARREL_SHELL_PIPELINES": "maybe",
    "CARREL_SHELL_TIMEOUT_SECONDS": "0",
    "CARREL_SHELL_OUTPUT_MB": "-1",
    "CARREL_SHELL_WORKERS": "-1",
    "CARREL_SHELL_WORKER_MB": "1",
    "CARREL_WORKSPACE": "~~",
    "SWEBASH_WORKSPACE": "\0",
}


def test_every_variable_can_be_wrong() -> None:
    assert set(BAD) == {name for key in KEYS for name in key.variables}


@pytest.mark.parametrize("name", BAD)
def test_a_variable_that_is_wrong_is_named(home: Home, name: str) -> None:
    message = home.error(**{name: BAD[name]})
    assert re.match(rf"{name} (must be|begins with) ", message)
    assert len(message) < 200


@pytest.mark.parametrize("text", ["two words", "caf\u00e9", "x" * 5_000, "a\0b"])
def test_a_secret_that_is_wrong_is_not_told(home: Home, text: str) -> None:
    words = "must be a text of printable ASCII without spaces"
    assert home.error(CARREL_SANDBOX_KEY=text) == f"CARREL_SANDBOX_KEY {words}"
    assert home.error(f"sandbox.key = {json.dumps(text)}") == f"FILE:1: sandbox.key {words}"


def test_a_secret_is_not_in_what_settings_look_like(home: Home) -> None:
    settings = home.load(CARREL_SANDBOX_KEY="hush")
    assert settings.sandbox_key == "hush"
    assert "hush" not in repr(settings)
    assert "SettingValue(name='sandbox.key', value=..., " in repr(settings)


@given(st.dictionaries(st.sampled_from(sorted(BAD)), st.text()))
def test_any_environment_is_read_or_refused_by_name(environ: dict[str, str]) -> None:
    refused = None
    try:
        load({"HOME": "/nonexistent", **environ})
    except ConfigError as error:
        refused = error.message
    assert refused is None or refused.startswith(tuple(environ))


def test_a_variable_with_a_slip_in_its_name_is_noted(home: Home) -> None:
    notes = home.load(CARREL_MAX_ENTRY="5", CARREL_QQQ="1", CARREL_CONFIG="/dev/null").notes
    assert notes == (
        "CARREL_MAX_ENTRY is set, but no setting has that name; did you mean CARREL_MAX_ENTRIES?",
        "CARREL_QQQ is set, but no setting has that name",
    )


# The same configuration, loaded again


def test_an_unchanged_configuration_gives_the_same_settings(home: Home) -> None:
    settings = home.load("session.entries = 5", CARREL_MAX_SESSIONS="6", EDITOR="vi")
    assert home.load(CARREL_MAX_SESSIONS="6", EDITOR="ed") is settings


def test_a_change_of_a_variable_or_of_the_file_is_seen_at_once(home: Home) -> None:
    assert home.load("session.entries = 5", CARREL_MAX_SESSIONS="6").session.max_sessions == 6
    assert home.load(CARREL_MAX_SESSIONS="7").session.max_sessions == 7
    assert home.load("session.entries = 8").session.entries == 8
    home.file.unlink()
    assert home.load().session.entries == 100_000


def test_a_change_of_the_seccomp_profile_is_seen_at_once(home: Home) -> None:
    profile = home.path / "filter.json"
    profile.write_text("{}")
    first = home.load(CARREL_CONTAINER_SECCOMP=str(profile))
    assert home.load(CARREL_CONTAINER_SECCOMP=str(profile)) is first
    profile.write_text('{"a": 1}')
    assert home.load(CARREL_CONTAINER_SECCOMP=str(profile)).containers.seccomp == '{"a": 1}'


# The operator's shell


@requirement("AP-01")
def test_the_operator_begins_with_a_read_only_workspace_in_the_home_directory(home: Home) -> None:
    operator = home.load().operator
    assert operator.root == home.path / ".local" / "share" / "carrel" / "workspace"
    assert (operator.mode, operator.enabled, operator.allow) == ("ro", True, ())


@requirement("AP-02")
@pytest.mark.parametrize("name", ["CARREL_WORKSPACE", "SWEBASH_WORKSPACE"])
def test_a_variable_replaces_the_workspace_and_makes_it_read_write(home: Home, name: str) -> None:
    settings = home.load("[workspace]\nroot = '/file'\nmode = 'ro'", **{name: "/custom"})
    assert (settings.operator.root, settings.operator.mode) == (Path("/custom"), "rw")
    (mode,) = (value for value in settings.values if value.name == "workspace.mode")
    assert (mode.value, mode.origin.source, mode.origin.name) == ("rw", SettingSource.ENVIRONMENT, name)


def test_without_the_variable_the_mode_of_the_file_holds(home: Home) -> None:
    assert home.load("workspace.root = '/w'").operator.mode == "ro"
    assert home.load("workspace.mode = 'rw'").operator.mode == "rw"


@requirement("AP-04")
def test_a_file_with_only_the_old_settings_of_the_operator_is_read(home: Home) -> None:
    operator = home.load(
        """
        [workspace]
        root = "~/.local/share/swebash/workspace"
        mode = "ro"
        enabled = true

        [[workspace.allow]]
        path = "~/projects"
        mode = "rw"

        [[workspace.allow]]
        path = "/tmp"
        mode = "rw"
        """
    ).operator
    assert operator.root == home.path / ".local" / "share" / "swebash" / "workspace"
    assert operator.allow == ((home.path / "projects", "rw"), (Path("/tmp"), "rw"))


def test_the_operators_shell_uses_what_is_right_without_a_word(home: Home) -> None:
    home.write("workspace.mode = 'rw'")
    said: list[str] = []
    assert operator_settings(home.environ(), said.append).operator.mode == "rw"
    assert said == []


def test_the_operators_shell_warns_about_the_file_and_leaves_it_out(home: Home) -> None:
    home.write("[workspace]\nmode = 'rw'\nenabled = false\nnope = 1")
    said: list[str] = []
    settings = operator_settings(home.environ(), said.append)
    assert settings.operator == home.load("").operator
    assert said == [f"{home.file}:4: workspace.nope is not a known key; the file is not used"]


def test_a_variable_still_names_the_workspace_when_the_file_is_wrong(home: Home) -> None:
    home.write("x =")
    settings = operator_settings(home.environ(CARREL_WORKSPACE="/custom"), lambda said: None)
    assert (settings.operator.root, settings.operator.mode) == (Path("/custom"), "rw")


def test_the_operators_shell_warns_about_a_variable_and_uses_only_defaults(home: Home) -> None:
    home.write("workspace.mode = 'rw'")
    said: list[str] = []
    environ = home.environ(CARREL_SANDBOX="x", CARREL_WORKSPACE="/custom")
    settings = operator_settings(environ, said.append)
    assert {value.origin.source for value in settings.values} == {SettingSource.DEFAULT}
    assert settings.operator == home.load("").operator
    assert said == ["CARREL_SANDBOX must be true or false, not 'x'; only the defaults are used"]


# The cache


def test_the_cache_is_in_the_usual_place_of_caches(home: Home) -> None:
    assert home.load(XDG_CACHE_HOME="/caches").python.cache == Path("/caches/carrel")
    assert home.load(XDG_CACHE_HOME="relative").python.cache == home.path / ".cache" / "carrel"
    assert home.load(XDG_CACHE_HOME="/caches", CARREL_CACHE="/own").python.cache == Path("/own")
    assert home.load("python.cache = '~/c'", XDG_CACHE_HOME="/caches").python.cache == home.path / "c"
    assert load({}).python.cache is None


# What is made of them


def test_sessions_have_no_other_paths_by_default(home: Home) -> None:
    assert session_rules(home.load(), "/here") == ()


def test_sessions_may_use_the_shared_workspace_the_current_directory_and_tmp_in_this_order(
    home: Home,
) -> None:
    settings = home.load(SHANNON_WORKSPACE="/shared", SHANNON_DEV_ALLOW_CWD="1", SHANNON_ALLOW_GLOBAL_TMP="1")
    rules = session_rules(settings, "/here")
    assert rules == ((Path("/shared"), "rw"), (Path("/here"), "rw"), (Path("/tmp"), "rw"))
    assert session_rules(home.load(CARREL_ALLOW_GLOBAL_TMP="1"), "/here") == ((Path("/tmp"), "rw"),)


def test_a_quota_from_the_alias_is_in_mebibytes(home: Home) -> None:
    assert home.load(SHANNON_MAX_WORKSPACE_SIZE_MB="1").session.disk_bytes == 2**20


def test_roles_that_are_given_replace_their_defaults_and_join_the_others(home: Home) -> None:
    settings = home.load("\n[roles.critic]\ntools = []\n[roles.reader]\ntools = ['file_read']")
    assert list(settings.roles) == ["developer", "generalist", "critic", "reader"]
    assert (settings.roles["critic"], settings.roles["reader"]) == ((), ("file_read",))
    lines = {value.name: value.origin.line for value in settings.values if value.name.startswith("roles.")}
    assert lines == {
        "roles.developer": None,
        "roles.generalist": None,
        "roles.critic": 2,
        "roles.reader": 4,
    }


def test_settings_cannot_be_changed(home: Home) -> None:
    settings = home.load()
    for value in (settings, settings.session, settings.operator, settings.files, settings.values[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)
    with pytest.raises(TypeError):
        settings.roles["developer"] = ()  # type: ignore[index]  # that is the point


def test_the_file_shown_in_the_reference_is_read(home: Home) -> None:
    example = re.search(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert example is not None
    settings = home.load(example[1])
    assert settings.sessions_dir == home.path / "sessions"
    assert [rule.mode for rule in settings.operator.allow] == ["rw", "ro"]
