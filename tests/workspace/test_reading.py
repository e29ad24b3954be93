"""Read bytes, text and pieces."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel import FileInfo, Limits, Workspace
from carrel.errors import CarrelError, LimitError, NotRegularError, TextError
from carrel.values import FileKind
from carrel.workspace import text as texts
from tests.requirements import requirement
from tests.workspace.planting import plant

READERS: dict[str, Callable[[Workspace, str], object]] = {
    "read": lambda workspace, path: workspace.read(path),
    "read_with_info": lambda workspace, path: workspace.read_with_info(path),
    "read_text": lambda workspace, path: workspace.read_text(path),
    "read_lines": lambda workspace, path: workspace.read_lines(path),
    "read_chunks": lambda workspace, path: list(workspace.read_chunks(path)),
    "reader": lambda workspace, path: list(workspace.reader(path).chunks(2**16)),
}
every_reader = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


# Bytes


@pytest.mark.parametrize(
    ("offset", "length", "found"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 4, b"3456"),
        (0, 0, b""),
        (8, 100, b"89"),
        (10, None, b""),
        (11, 5, b""),
        (2**40, 1, b""),
    ],
)
def test_a_window_of_bytes_is_read(
    workspace: Workspace, offset: int, length: int | None, found: bytes
) -> None:
    workspace.write("digits", b"0123456789")
    assert workspace.read("digits", offset=offset, length=length) == found


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (0, -1), (-5, -5)])
def test_a_negative_window_is_a_value_error(workspace: Workspace, offset: int, length: int) -> None:
    workspace.write("f", b"in")
    with pytest.raises(ValueError, match="cannot be negative"):
        workspace.read("f", offset=offset, length=length)


@requirement("R-19", "W-26")
def test_ten_megabytes_go_in_and_come_out_whole(workspace: Workspace) -> None:
    content = os.urandom(2**16) * 160
    workspace.write("large.bin", content)
    assert workspace.read("large.bin") == content
    assert workspace.stat("large.bin").size_bytes == 10 * 2**20


@requirement("R-18")
@pytest.mark.parametrize(
    "content", ["  hello \n\n", "\t\n", "\ufeffbom", "a\r\nb\rc\n", "世界" * 50_000, "\0"]
)
def test_what_was_written_comes_back_to_the_byte(workspace: Workspace, content: str) -> None:
    workspace.write("f", content)
    assert workspace.read("f") == content.encode()
    assert workspace.read_text("f") == content
    assert b"".join(workspace.read_chunks("f", chunk_bytes=7)) == content.encode()


@requirement("P-08")
@pytest.mark.parametrize("path", ["/workspace/sub/f", "/workspace//sub/./f", "/workspace/sub/../sub/f"])
def test_the_workspace_has_a_name_of_its_own(workspace: Workspace, path: str) -> None:
    workspace.mkdir("/workspace/sub")
    workspace.write(path, b"in")
    assert workspace.read("sub/f") == b"in"
    assert workspace.read(path) == b"in"
    assert [info.path for info in workspace.list("/workspace")] == ["sub"]
    assert workspace.stat("/workspace").is_directory


@requirement("P-08", "P-25")
@pytest.mark.parametrize(
    "path", ["/workspace/../etc/passwd", "/workspace-evil/f", "/workspacef", "/workspaces"]
)
def test_the_name_of_the_workspace_is_no_way_out(workspace: Workspace, path: str) -> None:
    with pytest.raises(ValueError, match="workspace"):
        workspace.read(path)


def test_another_mount_name_replaces_the_usual_one(directory: Path) -> None:
    plant(directory, "f")
    with Workspace.open(directory, mount="/app") as workspace:
        assert workspace.read("/app/f") == b"in"
        with pytest.raises(PermissionError, match="outside workspace"):
            workspace.read("/workspace/f")


@requirement("R-04", "W-17")
@every_reader
def test_a_missing_file_is_told_by_its_path_as_asked(
    workspace: Workspace, directory: Path, reader: Callable[[Workspace, str], object]
) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file or directory: 'sub/missing.txt'") as caught:
        reader(workspace, "sub/missing.txt")
    assert str(directory) not in str(caught.value)


@requirement("R-05")
@every_reader
@pytest.mark.parametrize("path", ["sub", "sub/", ".", "sub/.", "/workspace"])
def test_a_directory_is_no_file(
    workspace: Workspace, directory: Path, reader: Callable[[Workspace, str], object], path: str
) -> None:
    plant(directory, "sub/")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        reader(workspace, path)


@requirement("P-23")
@every_reader
def test_what_is_no_regular_file_gives_an_error_at_once(
    workspace: Workspace, directory: Path, reader: Callable[[Workspace, str], object]
) -> None:
    os.mkfifo(directory / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(directory / "sock"))
    for name in ("fifo", "sock"):
        with pytest.raises(NotRegularError, match=f"'{name}' is not a regular file"):
            reader(workspace, name)


@requirement("P-09")
@every_reader
def test_a_link_out_gives_nothing_away(
    workspace: Workspace, directory: Path, outside: Path, reader: Callable[[Workspace, str], object]
) -> None:
    plant(directory, f"absolute => {outside}/secret", "relative => ../outside/secret", "dir => ../outside")
    for path in ("absolute", "relative", "dir/secret", "dir/missing", "dir"):
        with pytest.raises(ValueError, match="escapes session workspace") as caught:
            reader(workspace, path)
        assert "secret data" not in str(caught.value)


@requirement("P-24")
def test_a_hard_link_made_by_the_host_is_read_like_any_file_and_not_written_through(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    os.link(outside / "secret", directory / "hard")
    assert workspace.read("hard") == b"secret data"
    with pytest.raises(PermissionError, match="hard links"):
        workspace.append("hard", b"more")
    workspace.write("hard", b"replaced")
    assert workspace.read("hard") == b"replaced"
    assert (outside / "secret").read_bytes() == b"secret data"


# Text


@requirement("R-17")
@pytest.mark.parametrize(
    ("encoding", "content", "text"),
    [
        ("utf-8", "Grüße".encode(), "Grüße"),
        ("UTF-8", "Grüße".encode(), "Grüße"),
        ("utf8", b"", ""),
        ("ascii", b"plain", "plain"),
        ("latin-1", b"Gr\xfc\xdfe", "Grüße"),
        ("latin1", b"\x80\xff", "\x80\xff"),
        ("iso-8859-1", b"\xe9", "é"),
        ("base64", b"\x00\xff\xfe", "AP/+"),
        ("base64", b"", ""),
    ],
)
def test_text_is_read_and_written_in_its_encoding(
    workspace: Workspace, encoding: str, content: bytes, text: str
) -> None:
    workspace.write("text", text, encoding=encoding)
    assert workspace.read("text") == content
    assert workspace.read_text("text", encoding=encoding) == text


@requirement("R-17")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_bytes_that_are_no_text_say_so_and_what_to_do(workspace: Workspace, encoding: str) -> None:
    workspace.write("latin.txt", b"Gr\xfc\xdfe")
    with pytest.raises(TextError, match=f"unable to decode 'latin.txt' with encoding '{encoding}'") as caught:
        workspace.read_text("latin.txt", encoding=encoding)
    assert "byte 2 is 0xfc" in str(caught.value)
    assert "base64" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert workspace.read_text("latin.txt", encoding="base64") == base64.b64encode(b"Gr\xfc\xdfe").decode()


@pytest.mark.parametrize(
    ("encoding", "text", "problem"),
    [
        ("ascii", "Grüße", "character 2"),
        ("latin-1", "世", "character 0"),
        ("utf-8", "\ud800", "character 0"),
        ("base64", "not base64!", "not base64"),
        ("base64", "QQ=", "not base64"),
    ],
)
def test_text_that_does_not_fit_its_encoding_changes_nothing(
    workspace: Workspace, encoding: str, text: str, problem: str
) -> None:
    workspace.write("f", b"old")
    with pytest.raises(TextError, match=problem):
        workspace.write("f", text, encoding=encoding)
    with pytest.raises(TextError, match=problem):
        workspace.append("f", text, encoding=encoding)
    assert workspace.read("f") == b"old"


@pytest.mark.parametrize("encoding", ["utf-16", "rot13", "", "idna", "utf-8-sig"])
def test_an_encoding_that_is_not_offered_says_which_are(workspace: Workspace, encoding: str) -> None:
    workspace.write("f", b"in")
    for call in (
        lambda: workspace.read_text("f", encoding=encoding),
        lambda: workspace.read_lines("f", encoding=encoding),
        lambda: workspace.write("f", "text", encoding=encoding),
        lambda: workspace.append("f", "text", encoding=encoding),
    ):
        with pytest.raises(TextError, match="use one of utf-8, ascii, latin-1, base64"):
            call()
    assert workspace.read("f") == b"in"


@given(st.binary())
def test_any_bytes_survive_base64_and_latin_1(content: bytes) -> None:
    for encoding in ("base64", "latin-1"):
        assert texts.encode(texts.decode(content, encoding, "f"), encoding, "f") == content


@given(st.text())
def test_any_text_that_can_be_written_survives_utf_8(text: str) -> None:
    try:
        content = texts.encode(text, "utf-8", "f")
    except TextError:
        return
    assert texts.decode(content, "utf-8", "f") == text


# Pieces


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 30, 95])
def test_chunks_are_never_larger_than_asked_and_make_up_the_file(workspace: Workspace, size: int) -> None:
    content = os.urandom(size)
    workspace.write("f", content)
    chunks = list(workspace.read_chunks("f", chunk_bytes=10))
    assert b"".join(chunks) == content
    assert all(0 < len(chunk) <= 10 for chunk in chunks)
    assert len(chunks) == -(-size // 10)


def test_chunks_of_the_usual_size_read_a_file_beyond_the_limit_of_a_read(directory: Path) -> None:
    content = os.urandom(2**20 + 1) * 3
    (directory / "large").write_bytes(content)
    with Workspace.open(directory, limits=Limits(read_bytes=100)) as workspace:
        with pytest.raises(LimitError):
            workspace.read("large")
        chunks = list(workspace.read_chunks("large"))
    assert b"".join(chunks) == content
    assert len(chunks) == 4


@pytest.mark.parametrize("size", [0, -1])
def test_chunks_have_at_least_one_byte(workspace: Workspace, size: int) -> None:
    workspace.write("f", b"in")
    with pytest.raises(ValueError, match="at least 1"):
        workspace.read_chunks("f", chunk_bytes=size)


def test_chunks_come_from_the_file_that_was_opened_also_when_it_is_replaced(workspace: Workspace) -> None:
    workspace.write("f", b"old " * 10)
    chunks = workspace.read_chunks("f", chunk_bytes=4)
    assert next(chunks) == b"old "
    workspace.write("f", b"new " * 10)
    assert set(chunks) == {b"old "}


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11, 2**70])
def test_a_reader_knows_its_file_and_begins_where_it_is_asked_to(workspace: Workspace, offset: int) -> None:
    info = workspace.write("f", b"0123456789")
    reader = workspace.reader("f")
    workspace.write("f", b"another")
    assert reader.info == info
    assert b"".join(reader.chunks(4, offset)) == b"0123456789"[offset:]


def test_a_missing_file_is_told_when_chunks_are_asked_for_not_later(workspace: Workspace) -> None:
    with pytest.raises(FileNotFoundError):
        workspace.read_chunks("missing")


def test_chunks_left_unread_leave_nothing_open(workspace: Workspace) -> None:
    workspace.write("f", b"in")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        chunks = workspace.read_chunks("f", chunk_bytes=1)
        next(chunks)
        del chunks
        del _
    assert len(os.listdir("/proc/self/fd")) == before


# What is there


@requirement("L-22")
def test_an_entry_tells_what_it_is(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/data.txt = 12345", "sub/link => data.txt")
    (directory / "sub" / "data.txt").chmod(0o640)
    os.utime(directory / "sub" / "data.txt", ns=(1, 1_700_000_000_123_456_789))
    found = workspace.stat("sub/data.txt")
    assert isinstance(found, FileInfo)
    assert (found.name, found.path, found.kind) == ("data.txt", "sub/data.txt", FileKind.FILE)
    assert (found.is_file, found.is_directory) == (True, False)
    assert (found.size_bytes, found.mode, found.links) == (5, 0o640, 1)
    assert found.modified_ns == 1_700_000_000_123_456_789
    assert found.target is None


def test_a_directory_has_no_size_and_no_more_than_permission_bits(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "sub/")
    (directory / "sub").chmod(0o1755)
    found = workspace.stat("sub/")
    assert (found.kind, found.size_bytes, found.mode) == (FileKind.DIRECTORY, 0, 0o755)
    assert workspace.stat(".").path == "."


def test_a_link_is_followed_or_shown_as_asked(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f = 12345", "link => f", "out => /etc/passwd", "dangling => nothing")
    assert workspace.stat("link").kind is FileKind.FILE
    shown = workspace.stat("link", follow_symlinks=False)
    assert (shown.kind, shown.target, shown.path) == (FileKind.LINK, "f", "link")
    assert workspace.stat("out", follow_symlinks=False).target == "/etc/passwd"
    assert workspace.stat("dangling", follow_symlinks=False).kind is FileKind.LINK


def test_a_version_differs_when_the_content_was_replaced_or_changed(workspace: Workspace) -> None:
    first = workspace.write("f", b"one")
    assert workspace.stat("f").version == first.version
    second = workspace.write("f", b"two")
    third = workspace.append("f", b"!")
    assert len({first.version, second.version, third.version}) == 3


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("f", True),
        ("sub", True),
        ("sub/", True),
        (".", True),
        ("link", True),
        ("no", False),
        ("no/no", False),
        ("f/x", False),
        ("f/", False),
        ("dangling", False),
        ("loop", False),
        ("loop/x", False),
    ],
)
def test_existence_is_asked_without_an_error(
    workspace: Workspace, directory: Path, path: str, there: bool
) -> None:
    plant(directory, "f", "sub/", "link => f", "dangling => nothing", "loop => loop")
    assert workspace.exists(path) is there


def test_existence_outside_is_refused_whether_there_is_anything_or_not(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "out => /etc/passwd", "gone => /no/such/place")
    for path in ("out", "gone", "../ws", "../missing", "/etc/passwd", "/no/such/place"):
        with pytest.raises(ValueError, match="workspace"):
            workspace.exists(path)


def test_a_path_object_is_as_good_as_text(workspace: Workspace) -> None:
    workspace.write(Path("sub") / "f", b"in")
    assert workspace.read(Path("sub/f")) == b"in"
    assert workspace.stat(Path("sub")).path == "sub"


def test_every_error_of_a_read_is_ours(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f", "sub/", "loop => loop", "out => /etc")
    for path in ("no", "f/x", "f/", "sub", "loop", "out", "..", "/etc", "", "a\0", "x" * 300):
        with pytest.raises(CarrelError) as caught:
            workspace.read(path)
        assert caught.value.path == path
