"""List, read, write and delete the files of a session by its id."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel import delete_session_path, list_session_files, read_session_file, write_session_file
from tests.requirements import requirement
from tests.workspace.planting import plant, snapshot

SESSION = "abc-123"
PNG = bytes.fromhex("89504E470D0A1A0A0000000D49484452")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sessions directory that is still missing."""
    return tmp_path / "sessions"


@pytest.fixture
def session(root: Path) -> Path:
    """The directory of an existing, empty session."""
    write_session_file(SESSION, "first", b"", root)
    delete_session_path(SESSION, "first", root)
    return root / SESSION


# Listing


@requirement("L-12", "L-09")
def test_all_files_of_a_session_are_listed_by_their_relative_paths(session: Path, root: Path) -> None:
    plant(session, "data.csv", "output.txt", "results/summary.json")
    assert list_session_files(SESSION, root) == ["data.csv", "output.txt", "results/summary.json"]


@requirement("L-05")
@pytest.mark.parametrize("pattern", ["*.csv", "**/*.csv", "[dr]*.csv", "*?.csv"])
def test_a_pattern_filters_the_listing(session: Path, root: Path, pattern: str) -> None:
    plant(session, "data.csv", "results.csv", "output.txt")
    assert list_session_files(SESSION, root, pattern=pattern) == ["data.csv", "results.csv"]


@requirement("L-01")
def test_an_empty_session_lists_nothing(session: Path, root: Path) -> None:
    assert session.is_dir()
    assert list_session_files(SESSION, root) == []


@requirement("L-11")
def test_another_workspace_root_is_listed_instead(session: Path, root: Path, tmp_path: Path) -> None:
    plant(session, "here")
    plant(tmp_path / "custom" / SESSION, "there")
    assert list_session_files(SESSION, workspace_root=tmp_path / "custom") == ["there"]
    assert list_session_files(SESSION, workspace_root=str(root)) == ["here"]


@requirement("L-02", "L-03", "L-04")
def test_only_files_are_listed_sorted_and_at_every_depth(session: Path, root: Path) -> None:
    plant(session, "root.txt", "subdir/nested.txt", "subdir/deep/deep.txt", "empty/")
    assert list_session_files(SESSION, root) == ["root.txt", "subdir/deep/deep.txt", "subdir/nested.txt"]


@requirement("L-06", "L-07", "L-16")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.py", ["lib/helper.py", "lib/tests/test_helper.py", "main.py"]),
        ("*.py", ["lib/helper.py", "lib/tests/test_helper.py", "main.py"]),
        ("lib/*.py", ["lib/helper.py"]),
        ("lib/**", ["lib/helper.py", "lib/tests/test_helper.py"]),
        ("lib/**/test_*.py", ["lib/tests/test_helper.py"]),
        (r"lib\*.py", ["lib/helper.py"]),
        ("./main.py", ["main.py"]),
    ],
)
def test_a_pattern_without_a_slash_matches_names_and_one_with_a_slash_paths(
    session: Path, root: Path, pattern: str, found: list[str]
) -> None:
    plant(session, "main.py", "lib/helper.py", "lib/tests/test_helper.py")
    assert list_session_files(SESSION, root, pattern) == found


@requirement("L-08")
@pytest.mark.parametrize("pattern", ["*.json", "no/*.txt", "data.txt/*"])
def test_a_pattern_that_matches_nothing_lists_nothing(session: Path, root: Path, pattern: str) -> None:
    plant(session, "data.txt")
    assert list_session_files(SESSION, root, pattern) == []


@requirement("L-10")
def test_an_unknown_session_lists_nothing_and_is_not_made(root: Path) -> None:
    assert list_session_files("unknown", root) == []
    assert not root.exists()


@requirement("P-18")
@pytest.mark.parametrize("pattern", ["../s2/*", "a/../../s2/*", r"..\s2\*", "/etc/*", "", "a\0b", "*" * 2000])
def test_a_pattern_that_could_lead_out_is_refused(session: Path, root: Path, pattern: str) -> None:
    plant(root / "s2", "secret.txt")
    with pytest.raises(ValueError, match="invalid pattern"):
        list_session_files(SESSION, root, pattern)


@requirement("P-18", "P-11")
def test_a_pattern_through_a_link_to_another_session_is_refused(session: Path, root: Path) -> None:
    plant(root / "s2", "secret.txt")
    plant(session, "out => ../s2")
    with pytest.raises(ValueError, match="escapes session workspace"):
        list_session_files(SESSION, root, "out/*")
    assert list_session_files(SESSION, root, "**/*.txt") == []


# Reading


@requirement("R-01")
def test_a_text_file_is_read_as_bytes_and_left_alone(session: Path, root: Path) -> None:
    plant(session, "output.txt = Hello World")
    before = (session / "output.txt").stat()
    assert read_session_file(SESSION, "output.txt", root) == b"Hello World"
    after = (session / "output.txt").stat()
    assert (after.st_mtime_ns, after.st_ino, after.st_size) == (
        before.st_mtime_ns,
        before.st_ino,
        before.st_size,
    )


@requirement("R-02")
@pytest.mark.parametrize("content", [PNG, bytes(range(256)), b"\r\n\r\n", b"\xff\xfe\x00", b""])
def test_a_binary_file_is_read_byte_for_byte(session: Path, root: Path, content: bytes) -> None:
    (session / "data.bin").write_bytes(content)
    assert read_session_file(SESSION, "data.bin", root) == content


@requirement("R-03")
def test_a_nested_file_is_read(session: Path, root: Path) -> None:
    plant(session, "results/analysis/report.csv = a,b")
    assert read_session_file(SESSION, "results/analysis/report.csv", root) == b"a,b"


@requirement("R-04")
@pytest.mark.parametrize("known", [True, False])
def test_a_missing_file_is_named_by_its_relative_path_alone(
    session: Path, root: Path, tmp_path: Path, known: bool
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        read_session_file(SESSION if known else "unknown", "sub/missing.txt", root)
    assert "sub/missing.txt" in str(caught.value)
    assert caught.value.filename == "sub/missing.txt"
    assert str(tmp_path) not in repr(caught.value) + str(caught.value)


@requirement("P-05", "R-06")
@pytest.mark.parametrize("known", [True, False])
def test_a_read_that_climbs_out_is_refused(session: Path, root: Path, known: bool) -> None:
    with pytest.raises(ValueError, match="escapes session workspace"):
        read_session_file(SESSION if known else "unknown", "../../../etc/passwd", root)


@requirement("R-05")
def test_reading_a_directory_says_that_it_is_one(session: Path, root: Path) -> None:
    plant(session, "sub/")
    with pytest.raises(IsADirectoryError, match="'sub' is a directory"):
        read_session_file(SESSION, "sub", root)


# Writing


@requirement("W-01", "W-02", "L-10")
def test_a_new_file_is_written_into_the_session_directory(root: Path) -> None:
    write_session_file(SESSION, "config.json", b'{"setting": "value"}', root)
    assert (root / SESSION / "config.json").read_bytes() == b'{"setting": "value"}'
    write_session_file(SESSION, "image.png", PNG, root)
    assert (root / SESSION / "image.png").read_bytes() == PNG


@requirement("W-03")
def test_directories_are_made_for_a_nested_file(session: Path, root: Path) -> None:
    write_session_file(SESSION, "reports/2024/summary.txt", b"Summary", root)
    assert (session / "reports" / "2024" / "summary.txt").read_bytes() == b"Summary"


@requirement("W-04")
def test_an_existing_file_is_replaced(session: Path, root: Path) -> None:
    plant(session, "data.txt = old content which is longer")
    write_session_file(SESSION, "data.txt", b"new content", root, overwrite=True)
    assert (session / "data.txt").read_bytes() == b"new content"
    write_session_file(SESSION, "data.txt", b"newer", root)
    assert (session / "data.txt").read_bytes() == b"newer"


@requirement("W-05", "W-06", "W-07")
@pytest.mark.parametrize("content", ["existing", ""])
def test_without_overwrite_an_existing_file_is_refused_and_kept(
    session: Path, root: Path, content: str
) -> None:
    write_session_file(SESSION, "data.txt", content, root, overwrite=False)
    with pytest.raises(FileExistsError, match=r"'data.txt' already exists"):
        write_session_file(SESSION, "data.txt", b"new", root, overwrite=False)
    assert (session / "data.txt").read_text() == content


@requirement("W-09", "P-16")
@pytest.mark.parametrize("path", ["../../../tmp/evil.txt", "../evil", "a/../../evil", "..", r"..\evil"])
def test_a_write_that_climbs_out_makes_nothing(session: Path, root: Path, tmp_path: Path, path: str) -> None:
    plant(session, "a/")
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match="escapes session workspace"):
        write_session_file(SESSION, path, b"data", root)
    assert snapshot(tmp_path) == before


@requirement("W-08")
def test_text_is_written_as_utf_8(session: Path, root: Path) -> None:
    write_session_file(SESSION, "greeting.txt", "Hello 世界", root)
    assert (session / "greeting.txt").read_bytes() == "Hello 世界".encode()


@requirement("W-28", "W-29")
@pytest.mark.parametrize("name", ["-rf", "it's", "a b", "$HOME", "`id`", "a\nb", "~", "%2e%2e", "世界", "*"])
def test_odd_names_and_contents_are_stored_as_they_are(session: Path, root: Path, name: str) -> None:
    content = "quotes \" ' $HOME `id` $(id)\n\\n\n"
    write_session_file(SESSION, name, content, root)
    assert os.listdir(session) == [name]
    assert read_session_file(SESSION, name, root) == content.encode()
    assert list_session_files(SESSION, root) == [name]
    delete_session_path(SESSION, name, root)
    assert os.listdir(session) == []


# Deleting


@requirement("D-01")
def test_a_deleted_file_is_gone(session: Path, root: Path) -> None:
    plant(session, "temp.txt")
    delete_session_path(SESSION, "temp.txt", root)
    assert not (session / "temp.txt").exists()
    with pytest.raises(FileNotFoundError):
        read_session_file(SESSION, "temp.txt", root)


@requirement("D-02")
def test_deleting_a_nested_file_leaves_its_directory(session: Path, root: Path) -> None:
    plant(session, "data/temp.txt")
    delete_session_path(SESSION, "data/temp.txt", root)
    assert snapshot(session) == {"data": None}


@requirement("D-05", "D-10")
@pytest.mark.parametrize("path", ["empty_folder/", "empty_folder"])
def test_an_empty_directory_is_deleted(session: Path, root: Path, path: str) -> None:
    plant(session, "empty_folder/")
    delete_session_path(SESSION, path, root)
    assert snapshot(session) == {}


@requirement("D-04")
def test_a_directory_is_deleted_with_its_content_when_asked(session: Path, root: Path) -> None:
    plant(session, "data/file1.txt", "data/deep/er/file2.txt", "kept")
    delete_session_path(SESSION, "data/", root, recursive=True)
    assert snapshot(session) == {"kept": b"in"}


@requirement("D-03", "D-10")
def test_a_directory_with_content_is_kept_unless_asked(session: Path, root: Path) -> None:
    plant(session, "data/file1.txt")
    with pytest.raises(OSError, match="'data/' is not empty"):
        delete_session_path(SESSION, "data/", root, recursive=False)
    assert snapshot(session) == {"data": None, "data/file1.txt": b"in"}


@requirement("D-07", "D-17")
@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize("path", ["../../../tmp/target", "../../../etc/passwd", "../other/important.txt"])
@pytest.mark.parametrize("known", [True, False])
def test_a_deletion_that_climbs_out_deletes_nothing(
    session: Path, root: Path, path: str, recursive: bool, known: bool
) -> None:
    plant(root / "other", "important.txt")
    before = snapshot(root)
    with pytest.raises(ValueError, match="escapes session workspace"):
        delete_session_path(SESSION if known else "unknown", path, root, recursive=recursive)
    assert snapshot(root) == before


@requirement("D-06")
@pytest.mark.parametrize("recursive", [True, False])
def test_deleting_what_is_not_there_is_an_error(session: Path, root: Path, recursive: bool) -> None:
    with pytest.raises(FileNotFoundError, match=r"'nonexistent.txt'"):
        delete_session_path(SESSION, "nonexistent.txt", root, recursive=recursive)


@requirement("D-08")
@pytest.mark.parametrize("path", [".", "./", "a/..", "./."])
@pytest.mark.parametrize("recursive", [True, False])
def test_the_workspace_itself_is_not_deleted(session: Path, root: Path, path: str, recursive: bool) -> None:
    plant(session, "a/", "f")
    with pytest.raises(ValueError, match="does not end in a name"):
        delete_session_path(SESSION, path, root, recursive=recursive)
    assert snapshot(session) == {"a": None, "f": b"in"}


# Where sessions are


@requirement("ID-15")
def test_the_sessions_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    write_session_file(SESSION, "f", b"in", tmp_path / "deep" / "nested" / "workspace")
    assert (tmp_path / "deep" / "nested" / "workspace" / SESSION / "f").read_bytes() == b"in"


def test_without_a_workspace_root_the_configured_directory_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_SESSIONS_DIR", str(tmp_path / "configured"))
    write_session_file(SESSION, "f", b"in")
    assert (tmp_path / "configured" / SESSION / "f").read_bytes() == b"in"
    assert list_session_files(SESSION) == ["f"]
    assert read_session_file(SESSION, "f") == b"in"
    delete_session_path(SESSION, "f")
    assert list_session_files(SESSION) == []


def test_without_any_setting_sessions_are_in_workspace_of_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARREL_SESSIONS_DIR", raising=False)
    monkeypatch.delenv("SHANNON_SESSION_WORKSPACES_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    write_session_file(SESSION, "config.json", b"{}")
    assert (tmp_path / "workspace" / SESSION / "config.json").read_bytes() == b"{}"
