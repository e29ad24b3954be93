"""What the session file functions accept as a path, how they refuse, and their signatures."""

from __future__ import annotations

import inspect
import os
import stat
import typing
from collections.abc import Callable
from pathlib import Path

import pytest

import carrel
from carrel import delete_session_path, list_session_files, read_session_file, write_session_file
from carrel.sessions.functions import _validate_session_path
from tests.requirements import requirement
from tests.workspace.planting import plant, snapshot

SESSION = "abc-123"

Operation = Callable[[str, str, Path], object]

OPERATIONS: dict[str, Operation] = {
    "read": read_session_file,
    "write": lambda session, path, root: write_session_file(session, path, b"data", root),
    "delete": delete_session_path,
    "delete recursively": lambda session, path, root: delete_session_path(
        session, path, root, recursive=True
    ),
    "validate": _validate_session_path,
}

every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sessions directory with one session that holds a few things."""
    made = tmp_path / "sessions"
    write_session_file(SESSION, "file.txt", b"in", made)
    plant(made / SESSION, "dir/")
    return made


# Paths


@requirement("P-05", "W-14")
@every_operation
@pytest.mark.parametrize(
    "path",
    ["..", "../", "../etc/passwd", "../../etc/passwd", "dir/../../../etc/passwd", "./..", f"../{SESSION}/f"],
)
def test_a_path_that_leaves_the_workspace_is_a_value_error(
    root: Path, tmp_path: Path, operation: Operation, path: str
) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match="escapes session workspace"):
        operation(SESSION, path, root)
    assert snapshot(tmp_path) == before


@requirement("P-07")
def test_two_dots_that_stay_inside_are_fine(root: Path) -> None:
    write_session_file(SESSION, "dir/../new.txt", b"new", root)
    assert (root / SESSION / "new.txt").read_bytes() == b"new"
    assert read_session_file(SESSION, "dir/../file.txt", root) == b"in"
    delete_session_path(SESSION, "dir/../file.txt", root)
    assert list_session_files(SESSION, root) == ["new.txt"]


@requirement("P-06", "W-15", "I-12")
@every_operation
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "//etc/passwd", "/", "/workspace/file.txt", r"\etc\passwd", "C:f"]
)
@pytest.mark.parametrize("session", [SESSION, "unknown"])
def test_an_absolute_path_is_refused_as_not_allowed(
    root: Path, operation: Operation, path: str, session: str
) -> None:
    with pytest.raises(ValueError, match=r"must be relative: .* are not allowed"):
        operation(session, path, root)


def test_the_message_says_that_absolute_paths_are_not_allowed(root: Path) -> None:
    with pytest.raises(ValueError, match="absolute paths are not allowed"):
        read_session_file(SESSION, "/etc/passwd", root)


@requirement("P-25")
@every_operation
def test_the_absolute_path_of_the_workspace_itself_is_refused_too(root: Path, operation: Operation) -> None:
    with pytest.raises(ValueError, match="absolute paths are not allowed"):
        operation(SESSION, str(root / SESSION / "file.txt"), root)


@requirement("P-09")
@pytest.mark.parametrize("name", ["read", "write", "validate"])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside.txt", "/etc", "../.."])
def test_a_link_that_leads_out_is_a_value_error(root: Path, tmp_path: Path, name: str, target: str) -> None:
    plant(tmp_path, "outside.txt = secret data")
    plant(root / SESSION, f"link.txt => {target}")
    with pytest.raises(ValueError, match="escapes session workspace") as caught:
        OPERATIONS[name](SESSION, "link.txt", root)
    assert "secret data" not in str(caught.value)
    assert target not in str(caught.value)
    assert (tmp_path / "outside.txt").read_text() == "secret data"


@requirement("P-09")
@every_operation
def test_nothing_beneath_a_link_that_leads_out_is_touched(
    root: Path, tmp_path: Path, operation: Operation
) -> None:
    plant(tmp_path, "outside/secret = secret data")
    plant(root / SESSION, "link => ../../outside")
    with pytest.raises(ValueError, match="escapes session workspace"):
        operation(SESSION, "link/secret", root)
    assert (tmp_path / "outside" / "secret").read_text() == "secret data"


def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    plant(root / SESSION, "link.txt => dir/../file.txt")
    assert read_session_file(SESSION, "link.txt", root) == b"in"
    write_session_file(SESSION, "link.txt", b"new", root)
    assert (root / SESSION / "file.txt").read_bytes() == b"new"
    assert (root / SESSION / "link.txt").is_symlink()


@requirement("P-12")
def test_a_link_that_leads_out_can_be_deleted(root: Path, tmp_path: Path) -> None:
    plant(tmp_path, "outside/secret")
    plant(root / SESSION, "link => ../../outside")
    delete_session_path(SESSION, "link", root, recursive=True)
    assert not os.path.lexists(root / SESSION / "link")
    assert (tmp_path / "outside" / "secret").exists()


@requirement("P-13")
@pytest.mark.parametrize("recursive", [True, False])
def test_deleting_a_link_leaves_its_target_alone(root: Path, recursive: bool) -> None:
    plant(root / SESSION, "inlink => file.txt", "indir => dir")
    for name in ("inlink", "indir"):
        delete_session_path(SESSION, name, root, recursive=recursive)
    assert snapshot(root / SESSION) == {"file.txt": b"in", "dir": None}


@requirement("P-14")
def test_writing_through_a_dangling_link_makes_nothing_outside(root: Path) -> None:
    plant(root / "victim", "kept")
    plant(root / SESSION, "dl => ../victim/new.txt")
    for overwrite in (True, False):
        with pytest.raises((ValueError, FileExistsError)):
            write_session_file(SESSION, "dl", b"data", root, overwrite=overwrite)
    assert snapshot(root / "victim") == {"kept": b"in"}


@requirement("P-20")
def test_backslashes_separate_names(root: Path) -> None:
    write_session_file(SESSION, "data\\subdir/file.txt", b"mixed", root)
    assert (root / SESSION / "data" / "subdir" / "file.txt").read_bytes() == b"mixed"
    assert read_session_file(SESSION, "data/subdir\\file.txt", root) == b"mixed"
    assert "data/subdir/file.txt" in list_session_files(SESSION, root)
    delete_session_path(SESSION, "data\\subdir", root, recursive=True)
    assert (root / SESSION / "data").is_dir()


@requirement("P-19", "P-22")
@every_operation
@pytest.mark.parametrize("path", ["", "a\0b", "a" * 256, "\u20ac" * 86, "a/" * 2100 + "f", "\ud800"])
def test_what_no_path_may_be_is_a_value_error(root: Path, operation: Operation, path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        operation(SESSION, path, root)


@every_operation
@pytest.mark.parametrize("path", [b"file.txt", None, 1])
def test_what_is_no_text_is_a_type_error(root: Path, operation: Operation, path: object) -> None:
    with pytest.raises(TypeError):
        operation(SESSION, path, root)  # type: ignore[arg-type]  # that is the point


# Errors


@requirement("W-10")
def test_a_read_only_file_is_a_permission_error_even_for_root(root: Path, tmp_path: Path) -> None:
    file = root / SESSION / "file.txt"
    file.chmod(0o444)
    with pytest.raises(PermissionError, match="permission denied") as caught:
        write_session_file(SESSION, "file.txt", b"data", root, overwrite=True)
    assert str(tmp_path) not in str(caught.value)
    assert file.read_bytes() == b"in"
    assert stat.S_IMODE(file.stat().st_mode) == 0o444


@requirement("W-10", "R-04")
def test_permissions_of_the_host_are_permission_errors_without_its_paths(unprivileged: Path) -> None:
    root = unprivileged / "sessions"
    write_session_file(SESSION, "shut/f", b"in", root)
    write_session_file(SESSION, "readonly.txt", b"in", root)
    (root / SESSION / "readonly.txt").chmod(0o444)
    (root / SESSION / "shut").chmod(0)
    with pytest.raises(PermissionError, match=r"permission denied: 'readonly.txt'") as denied:
        write_session_file(SESSION, "readonly.txt", b"data", root)
    with pytest.raises(PermissionError, match="permission denied: 'shut/f'") as shut:
        read_session_file(SESSION, "shut/f", root)
    for caught in (denied, shut):
        assert str(root) not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert (root / SESSION / "readonly.txt").read_bytes() == b"in"


@requirement("ID-04", "ID-05", "ID-06")
@every_operation
@pytest.mark.parametrize(
    "session", ["../etc", "../invalid", "..\\etc", "foo/bar", "foo\\bar", "test" + os.sep + "x"]
)
def test_a_session_id_with_separators_is_refused_before_anything_is_touched(
    tmp_path: Path, operation: Operation, session: str
) -> None:
    with pytest.raises(ValueError, match="must not contain path separators"):
        operation(session, "file.txt", tmp_path / "sessions")
    with pytest.raises(ValueError, match="must not contain path separators"):
        list_session_files(session, tmp_path / "sessions")
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("name", ["read", "delete", "validate"])
@pytest.mark.parametrize("path", ["../x", "/x", "a\0b", "f"])
def test_asking_about_an_unknown_session_makes_nothing(tmp_path: Path, name: str, path: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError)):
        OPERATIONS[name](SESSION, path, tmp_path / "sessions")
    assert snapshot(tmp_path) == {}


@every_operation
def test_no_error_tells_a_path_of_the_host(root: Path, tmp_path: Path, operation: Operation) -> None:
    plant(root / SESSION, "loop => loop", "out => /etc", "dangling => nothing/here")
    os.mkfifo(root / SESSION / "fifo")
    for path in (
        "no",
        "no/no",
        "file.txt/x",
        "file.txt/",
        "dir",
        "loop",
        "out",
        "fifo",
        "dangling/x",
        "../x",
        "/x",
    ):
        problem = _problem(operation, path, root)
        if problem is not None:
            told = f"{problem} {problem!r} {problem.args} {getattr(problem, 'filename', '')}"
            assert str(tmp_path) not in told
            assert problem.__cause__ is None
            assert problem.__context__ is None


def _problem(operation: Operation, path: str, root: Path) -> Exception | None:
    try:
        operation(SESSION, path, root)
    except (OSError, ValueError) as error:
        return error
    return None


# Signatures


@pytest.mark.parametrize(
    ("function", "returns"),
    [
        (list_session_files, list[str]),
        (read_session_file, bytes),
        (write_session_file, type(None)),
        (delete_session_path, type(None)),
        (_validate_session_path, Path),
    ],
)
def test_a_function_has_hints_for_everything(function: Callable[..., object], returns: object) -> None:
    hints = typing.get_type_hints(function)
    assert hints["return"] == returns
    assert set(inspect.signature(function).parameters) == set(hints) - {"return"}
    assert typing.Any not in hints.values()


def test_data_to_write_is_bytes_or_text() -> None:
    assert typing.get_type_hints(write_session_file)["data"] == bytes | str


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        ("list_session_files", ["session_id", "workspace_root", "pattern", "logger"]),
        ("read_session_file", ["session_id", "relative_path", "workspace_root", "logger"]),
        (
            "write_session_file",
            ["session_id", "relative_path", "data", "workspace_root", "overwrite", "logger"],
        ),
        ("delete_session_path", ["session_id", "relative_path", "workspace_root", "recursive", "logger"]),
    ],
)
def test_the_signatures_are_the_promised_ones(function: str, signature: list[str]) -> None:
    parameters = inspect.signature(getattr(carrel, function)).parameters
    assert list(parameters) == signature
    assert all(found.kind is found.POSITIONAL_OR_KEYWORD for found in parameters.values())
    defaults = {name: found.default for name, found in parameters.items() if found.default is not found.empty}
    expected = {
        "workspace_root": None,
        "pattern": None,
        "logger": None,
        "overwrite": True,
        "recursive": False,
    }
    assert defaults == {name: expected[name] for name in defaults}


@pytest.mark.parametrize(
    "function",
    [
        list_session_files,
        read_session_file,
        write_session_file,
        delete_session_path,
        _validate_session_path,
    ],
)
def test_the_errors_are_documented(function: Callable[..., object]) -> None:
    words = inspect.getdoc(function) or ""
    assert "Raises:\n" in words
    assert "ValueError:" in words.partition("Raises:\n")[2]


def test_the_documentation_says_that_directories_are_not_listed() -> None:
    assert "directories are not listed" in (list_session_files.__doc__ or "")


@requirement("P-01", "P-02", "P-03", "P-04")
@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("data.txt", "data.txt"),
        ("dir/subdir/file.txt", "dir/subdir/file.txt"),
        ("./data.txt", "data.txt"),
        (".", ""),
        ("dir/../file.txt", "file.txt"),
        ("dir\\x", "dir/x"),
        ("link", "file.txt"),
    ],
)
def test_a_validated_path_is_absolute_and_in_the_workspace(root: Path, path: str, place: str) -> None:
    plant(root / SESSION, "link => file.txt")
    found = _validate_session_path(SESSION, path, root)
    assert isinstance(found, Path)
    assert found.is_absolute()
    assert found == (root / SESSION / place).resolve()


def test_a_path_of_an_unknown_session_cannot_be_validated(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such session: 'unknown'"):
        _validate_session_path("unknown", "f", root)
