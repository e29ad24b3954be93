"""The four options: given to a toolbox, and configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.config.table import CONFIG_VARIABLE
from carrel.errors import ConfigError
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.profiles.files.answers import data, done, refused
from tests.workspace.planting import snapshot


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file in force."""
    made = tmp_path / "config.toml"
    made.touch()
    monkeypatch.setenv(CONFIG_VARIABLE, str(made))
    return made


@pytest.fixture(params=["option", "setting", "alias"])
def configured(request: pytest.FixtureRequest, config: Path, workspace: Workspace) -> Toolbox:
    """A toolbox with all four options set, by each of the ways to do so."""
    if request.param == "option":
        return Toolbox(
            workspace,
            profile="files",
            default_encoding="latin-1",
            max_file_size=8,
            allowed_paths=["in", "/workspace/out/deep"],
            timeout_ms=60_000,
        )
    names = ("default_encoding", "max_file_size", "allowed_paths", "timeout_ms")
    if request.param == "alias":
        names = ("defaultEncoding", "maxFileSize", "allowedPaths", "timeoutMs")
    values = ("'latin-1'", "8", "['in', '/workspace/out/deep']", "60000")
    config.write_text(
        "[files]\n" + "".join(f"{name} = {value}\n" for name, value in zip(names, values, strict=True))
    )
    return Toolbox(workspace, profile="files")


def test_the_default_encoding_holds_where_none_is_requested(configured: Toolbox, directory: Path) -> None:
    tree(directory, "in/")
    done(configured, "write_file", path="in/f", content="grün")
    assert (directory / "in/f").read_bytes() == b"gr\xfcn"
    assert data(configured, "read_file", path="in/f") == {"content": "grün", "encoding": "latin-1"}
    done(configured, "write_file", path="in/f", content="grün", encoding="utf-8")
    assert (directory / "in/f").read_bytes() == "grün".encode()


def test_base64_can_be_the_default(workspace: Workspace, directory: Path) -> None:
    with Toolbox(workspace, profile="files", default_encoding="base64") as toolbox:
        done(toolbox, "write_file", path="f", content="AAE=")
        assert (directory / "f").read_bytes() == b"\0\1"
        assert data(toolbox, "read_file", path="f") == {"content": "AAE=", "encoding": "base64"}


def test_the_largest_file_holds_for_reading_and_writing(configured: Toolbox, directory: Path) -> None:
    tree(directory, "in/eight = 12345678", "in/nine = 123456789")
    assert data(configured, "read_file", path="in/eight")["content"] == "12345678"
    refused(configured, "read_file", "limit.read_bytes", path="in/nine")
    done(configured, "write_file", path="in/new", content="12345678")
    refused(configured, "write_file", "limit.file_bytes", path="in/other", content="123456789")
    assert not (directory / "in/other").exists()


ATTEMPTS: dict[str, dict[str, object]] = {
    "read_file": {},
    "write_file": {"content": "changed"},
    "list_directory": {"recursive": True},
    "create_directory": {},
    "delete": {"recursive": True, "force": True},
    "exists": {},
    "file_info": {},
}


def test_every_operation_is_attempted(files: Toolbox) -> None:
    assert set(ATTEMPTS) == set(files.names)


@pytest.mark.parametrize("name", ATTEMPTS)
def test_only_allowed_paths_can_be_used(configured: Toolbox, directory: Path, name: str) -> None:
    tree(directory, "in/f", "out/deep/f", "out/g", "secret/f", "inner/f", "top")
    before = snapshot(directory)
    for path in (".", "top", "out", "out/g", "secret/f", "secret", "inner/f", "missing", "/workspace/top"):
        refused(configured, name, "access.outside", path=path, **ATTEMPTS[name])
    assert snapshot(directory) == before


@pytest.mark.parametrize("name", ATTEMPTS)
def test_no_way_leads_from_an_allowed_path_to_another_part(
    configured: Toolbox, directory: Path, outside: Path, name: str
) -> None:
    tree(
        directory,
        "in/up => ..",
        "in/file => ../secret/f",
        "in/directory => ../secret",
        "in/absolute => /workspace/secret",
        f"in/host => {directory}/secret",
        f"in/out => {outside}",
        "secret/f = hidden",
    )
    before = snapshot(directory)
    ways = ("up/secret/f", "directory/f", "absolute/f", "host/f", "out/secret", "../secret/f", "../in/../top")
    for way in ways:
        result = configured.call(name, {"path": f"in/{way}", **ATTEMPTS[name]})
        assert not result.success
        assert result.code in ("path.escape", "access.outside", "path.not_directory")
        assert "hidden" not in result.to_json()
    assert snapshot(directory) == before
    assert (outside / "secret").read_bytes() == b"secret data"


@pytest.mark.parametrize("name", ["read_file", "write_file", "list_directory", "exists"])
def test_a_link_itself_does_not_lead_there_either(configured: Toolbox, directory: Path, name: str) -> None:
    tree(directory, "in/link => ../secret", "secret/f = hidden")
    result = configured.call(name, {"path": "in/link", **ATTEMPTS[name]})
    if name == "write_file":
        # A link is replaced, never followed out.
        assert (directory / "secret/f").read_text() == "hidden"
    else:
        assert not result.success
    assert snapshot(directory / "secret") == {"f": b"hidden"}
    assert "hidden" not in result.to_json()


def test_what_is_allowed_works_as_ever(configured: Toolbox, directory: Path) -> None:
    tree(directory, "in/f = one", "in/link => f", "out/deep/g")
    assert data(configured, "read_file", path="in/link")["content"] == "one"
    assert (
        data(configured, "write_file", path="out/deep/a/b", content="x")["path"] == "/workspace/out/deep/a/b"
    )
    listed = data(configured, "list_directory", path="out/deep", recursive=True)
    assert [entry["path"] for entry in listed["entries"]] == [
        "/workspace/out/deep/a",
        "/workspace/out/deep/g",
        "/workspace/out/deep/a/b",
    ]
    done(configured, "delete", path="out/deep/a", recursive=True)
    assert not (directory / "out/deep/a").exists()
    refused(configured, "delete", "path.invalid", path="in", recursive=True)


def test_a_listing_does_not_show_what_is_not_allowed(configured: Toolbox, directory: Path) -> None:
    tree(directory, "in/f", "out/secret", "out/deep/")
    answers = [
        configured.call("list_directory", {"path": path, "recursive": True}).to_json()
        for path in ("in", "out/deep", "in/..", "out")
    ]
    assert not any("secret" in answer for answer in answers)


def test_an_allowed_path_that_is_not_there_is_missing(workspace: Workspace, directory: Path) -> None:
    with Toolbox(workspace, profile="files", allowed_paths=["later"]) as toolbox:
        refused(toolbox, "read_file", "path.missing", path="later/f")
        answer = refused(toolbox, "write_file", "path.missing", path="later/f", content="x")
        assert answer.error == "File not found: later/f. Use list_directory to see what is there."
        assert snapshot(directory) == {}
        tree(directory, "later/")
        done(toolbox, "write_file", path="later/f", content="x")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../out", "without '..'"),
        ("/etc", "not in the workspace"),
        ("", "empty"),
        ("a/../b", "without '..'"),
    ],
)
def test_an_allowed_path_that_makes_no_sense_is_refused_at_once(
    workspace: Workspace, path: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Toolbox(workspace, profile="files", allowed_paths=[path])


def test_an_option_goes_before_the_configuration(workspace: Workspace, config: Path) -> None:
    config.write_text("[files]\nmax_file_size = 1\n")
    with Toolbox(workspace, profile="files", max_file_size=2) as toolbox:
        done(toolbox, "write_file", path="f", content="12")


def test_a_configuration_that_cannot_be_used_is_refused(workspace: Workspace, config: Path) -> None:
    config.write_text("[files]\ntimeout_ms = 'soon'\n")
    with pytest.raises(ConfigError, match="timeout_ms"):
        Toolbox(workspace, profile="files")
