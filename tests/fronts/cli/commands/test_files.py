"""`carrel files`: list, read, write and remove."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from carrel.fronts.cli.commands.files.command import _long_line
from carrel.sessions.manager import WorkspaceManager
from carrel.values import FileInfo, FileKind
from tests.fronts.cli.conftest import Carrel

ESCAPES = ["../x", "../../etc/passwd", "sub/../../x", "/etc/passwd", "out", "out/x", "\\..\\x", "C:\\x"]


@pytest.fixture
def hostile(carrel: Carrel, session: str, tmp_path: Path) -> str:
    """A session in which somebody planted a link out."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "x").write_text("secret")
    (carrel.workspace(session) / "out").symlink_to(secrets)
    return session


# ls


def test_ls_prints_paths_as_the_other_commands_take_them(carrel: Carrel, session: str) -> None:
    assert carrel("files", "ls", session).lines == ["a.txt", "empty", "sub/"]
    assert carrel("files", "ls", session, "sub").lines == ["sub/b.txt"]
    assert carrel("files", "ls", session, "/workspace/sub").lines == ["sub/b.txt"]
    assert carrel("files", "ls", session, "-r").lines == ["a.txt", "empty", "sub/", "sub/b.txt"]


def test_ls_of_an_empty_directory_prints_nothing(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / "bare").mkdir()
    answer = carrel("files", "ls", session, "bare")
    assert (answer.status, answer.out) == (0, b"")
    assert carrel("files", "ls", session, "bare", "--json").json["entries"] == []


def test_ls_filters_by_a_pattern_below_the_path(carrel: Carrel, session: str) -> None:
    assert carrel("files", "ls", session, "--pattern", "*.txt").lines == ["a.txt"]
    assert carrel("files", "ls", session, "-r", "--pattern", "*.txt").lines == ["a.txt", "sub/b.txt"]
    assert carrel("files", "ls", session, "sub", "-r", "--pattern", "./*.txt").lines == ["sub/b.txt"]
    assert carrel("files", "ls", session, "-r", "--pattern", "sub/*").lines == ["sub/b.txt"]


def test_ls_with_a_pattern_that_climbs_is_invalid(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "ls", session, "--pattern", "../*", "--json")
    assert (answer.status, answer.error["code"]) == (2, "pattern.invalid")


def test_ls_long_shows_kind_size_and_time(carrel: Carrel, session: str) -> None:
    os.utime(carrel.workspace(session) / "a.txt", (0, 1_000_000_000))
    line = carrel("files", "ls", session, "-l").lines[0]
    assert line.split() == ["file", "14", "2001-09-09T01:46:40Z", "a.txt"]


def test_ls_long_shows_a_time_beyond_the_calendar_as_a_number() -> None:
    """Most file systems cannot keep such a time, so this one is in memory."""
    beyond = FileInfo(
        path="a", kind=FileKind.FILE, size_bytes=0, modified_ns=10**15 * 10**9, mode=0o644, links=1, inode=1
    )
    assert _long_line(beyond).split() == ["file", "0", "@1000000000000000", "a"]


def test_ls_as_json_is_one_document(carrel: Carrel, session: str) -> None:
    os.utime(carrel.workspace(session) / "a.txt", ns=(0, 5))
    (carrel.workspace(session) / "a.txt").chmod(0o640)
    document = carrel("files", "ls", session, "-r", "--json").json
    assert (document["path"], document["complete"]) == (".", True)
    assert document["entries"][0] == {
        "path": "a.txt",
        "kind": "file",
        "size_bytes": 14,
        "modified_ns": 5,
        "mode": "0640",
    }
    assert [entry["kind"] for entry in document["entries"]] == ["file", "file", "directory", "file"]


def test_ls_shows_a_link_and_nothing_behind_it(carrel: Carrel, hostile: str) -> None:
    entries = carrel("files", "ls", hostile, "-r", "--json").json["entries"]
    assert {entry["path"]: entry["kind"] for entry in entries}["out"] == "link"
    assert not any(entry["path"].startswith("out/") for entry in entries)


def test_ls_tells_what_it_found_when_a_limit_ends_it(carrel: Carrel, session: str) -> None:
    deep = carrel.workspace(session) / "/".join("d" * 70)
    deep.mkdir(parents=True)
    plain = carrel("files", "ls", session, "-r")
    assert (plain.status, plain.lines[0]) == (4, "a.txt")
    assert "64 levels" in plain.err
    answer = carrel("files", "ls", session, "-r", "--json")
    assert (answer.status, answer.error["code"]) == (4, "limit.depth")
    assert answer.json["complete"] is False
    assert len(answer.json["entries"]) > 64


def test_ls_of_a_file_says_that_it_is_no_directory(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "ls", session, "a.txt", "--json")
    assert (answer.status, answer.error["code"]) == (1, "path.not_directory")


# Names


STRANGE = {
    b"new\nline": r"'new\nline'",
    b"\x1b[31mred": r"'\x1b[31mred'",
    b"bad\xff": r"'bad\udcff'",
    "\u202etxt.exe".encode(): r"'\u202etxt.exe'",
    b"'quoted'": "\"'quoted'\"",
    b"-rf": "-rf",
    b"--json": "--json",
    "naïve 文".encode(): "naïve 文",
    b" ": " ",
}


def test_strange_names_are_listed_one_a_line_read_and_removed(carrel: Carrel) -> None:
    with WorkspaceManager(carrel.sessions).create("s1"):
        directory = os.fsencode(carrel.workspace("s1"))
    for name in STRANGE:
        with open(os.path.join(directory, name), "wb") as file:
            file.write(b"content of " + name)
    assert sorted(carrel("files", "ls", "s1").lines) == sorted(STRANGE.values())
    entries = carrel("files", "ls", "s1", "--json").json["entries"]
    assert {entry["path"] for entry in entries} == {os.fsdecode(name) for name in STRANGE}
    for name in STRANGE:
        assert carrel("files", "cat", "s1", "--", name).out == b"content of " + name
        assert carrel("files", "rm", "s1", "--", name).status == 0
    assert os.listdir(directory) == []


def test_an_error_about_a_strange_name_is_one_line(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "cat", session, b"no\nsuch\x1b[2J\xff")
    assert answer.status == 1
    assert answer.err == "carrel: no such file or directory: 'no\\nsuch\\x1b[2J\\udcff'\n"


# cat


def test_cat_prints_the_bytes_as_they_are(carrel: Carrel, session: str) -> None:
    data = bytes(range(256)) * 10
    carrel("files", "put", session, "-", "data.bin", stdin=data)
    assert carrel("files", "cat", session, "data.bin").out == data


def test_cat_of_an_empty_file_prints_nothing(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "cat", session, "empty")
    assert (answer.status, answer.out, answer.err) == (0, b"", "")


@pytest.mark.parametrize(
    ("lines", "out"),
    [
        ("1:1", b"one\n"),
        ("2:2", b"two\nthree\n"),
        ("2", b"two\nthree\n"),
        ("3:100", b"three\n"),
        ("9:1", b""),
        ("1:0", b""),
    ],
)
def test_cat_prints_a_window_of_lines(carrel: Carrel, session: str, lines: str, out: bytes) -> None:
    answer = carrel("files", "cat", session, "a.txt", "--lines", lines)
    assert (answer.status, answer.out) == (0, out)


def test_cat_prints_lines_that_are_no_text_as_they_are(carrel: Carrel, session: str) -> None:
    carrel("files", "put", session, "-", "raw", stdin=b"\xff\r\n\xfe\x00\n")
    assert carrel("files", "cat", session, "raw", "--lines", "2:1").out == b"\xfe\x00\n"


def test_cat_decodes_text(carrel: Carrel, session: str) -> None:
    carrel("files", "put", session, "-", "latin", stdin=b"caf\xe9\n")
    assert carrel("files", "cat", session, "latin", "--encoding", "latin-1").out == "café\n".encode()
    assert carrel("files", "cat", session, "latin", "--encoding", "base64").out == b"Y2Fm6Qo="
    assert (
        carrel("files", "cat", session, "latin", "--encoding", "latin-1", "--lines", "1").out
        == "café\n".encode()
    )
    assert carrel("files", "cat", session, "latin", "--encoding", "utf-8").status == 2
    assert carrel("files", "cat", session, "latin", "--encoding", "klingon").status == 2


def test_cat_of_a_fifo_fails_at_once(carrel: Carrel, session: str) -> None:
    os.mkfifo(carrel.workspace(session) / "fifo")
    answer = carrel("files", "cat", session, "fifo")
    assert (answer.status, answer.err) == (1, "carrel: 'fifo' is not a regular file\n")


@pytest.mark.parametrize("path", ESCAPES)
def test_what_leads_out_is_refused_with_3(carrel: Carrel, hostile: str, tmp_path: Path, path: str) -> None:
    answer = carrel("files", "cat", hostile, path)
    assert (answer.status, answer.out) == (3, b"")
    assert str(tmp_path) not in answer.err


@pytest.mark.parametrize("command", ["ls", "get", "put", "rm"])
def test_every_command_refuses_what_leads_out(
    carrel: Carrel, hostile: str, tmp_path: Path, command: str
) -> None:
    for path in ("../x", "/etc/passwd", "out/x"):
        words = [hostile, "-", path] if command == "put" else [hostile, path]
        answer = carrel("files", command, *words, stdin=b"x")
        assert (answer.status, answer.out) == (3, b"")
        assert str(tmp_path) not in answer.err
    assert os.listdir(tmp_path / "secrets") == ["x"]
    assert (tmp_path / "secrets" / "x").read_text() == "secret"
    assert os.listdir(carrel.here) == []


# put


def test_put_makes_the_session_and_directories(carrel: Carrel) -> None:
    (carrel.here / "report.csv").write_bytes(b"1,2\n")
    answer = carrel("files", "put", "fresh", "report.csv", "data/2024/report.csv")
    assert (answer.status, answer.out, answer.err) == (0, b"", "")
    assert (carrel.workspace("fresh") / "data/2024/report.csv").read_bytes() == b"1,2\n"


def test_put_without_a_path_keeps_the_name(carrel: Carrel) -> None:
    (carrel.here / "sub").mkdir()
    (carrel.here / "sub" / "report.csv").write_bytes(b"1,2\n")
    document = carrel("files", "put", "fresh", "sub/report.csv", "--json").json
    assert (document["path"], document["kind"], document["size_bytes"]) == ("report.csv", "file", 4)
    assert sorted(document) == ["kind", "mode", "modified_ns", "path", "size_bytes"]


def test_put_replaces_unless_told_otherwise(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "put", session, "-", "a.txt", "--no-overwrite", "--json", stdin=b"new")
    assert (answer.status, answer.error["code"], answer.error["path"]) == (1, "path.exists", "a.txt")
    assert carrel("files", "cat", session, "a.txt").out == b"one\ntwo\nthree\n"
    assert carrel("files", "put", session, "-", "a.txt", stdin=b"new").status == 0
    assert carrel("files", "cat", session, "a.txt").out == b"new"


def test_put_of_an_empty_input_makes_an_empty_file(carrel: Carrel) -> None:
    (carrel.here / "nothing").touch()
    assert carrel("files", "put", "s1", "nothing").status == 0
    assert carrel("files", "ls", "s1", "--json").json["entries"][0]["size_bytes"] == 0


def test_put_of_a_missing_file_makes_no_session(carrel: Carrel) -> None:
    missing = carrel("files", "put", "s1", "nope")
    assert (missing.status, missing.err) == (1, "carrel: cannot read 'nope': No such file or directory\n")
    assert not carrel.sessions.exists()


def test_put_of_a_file_called_like_an_option(carrel: Carrel) -> None:
    (carrel.here / "-rf").write_bytes(b"x")
    assert carrel("files", "put", "s1", "--", "-rf").status == 0
    assert carrel("files", "ls", "s1").lines == ["-rf"]


def test_put_can_name_a_file_dash(carrel: Carrel) -> None:
    assert carrel("files", "put", "s1", "-", "-", stdin=b"dash").status == 0
    assert carrel("files", "cat", "s1", "-").out == b"dash"
    assert carrel("files", "get", "s1", "-", "-").out == b"dash"


@pytest.mark.parametrize(
    ("option", "code"), [("--max-file-mb", "limit.file_bytes"), ("--max-mb", "quota.bytes")]
)
def test_put_beyond_a_size_exits_with_4_and_stores_nothing(carrel: Carrel, option: str, code: str) -> None:
    carrel("session", "create", "s1", option, "2")
    with open(carrel.here / "huge", "wb") as file:
        file.truncate(2 * 2**20 + 1)
    answer = carrel("files", "put", "s1", "huge", "--json")
    assert (answer.status, answer.error["code"]) == (4, code)
    assert "2097152" in answer.error["message"]
    assert carrel("files", "ls", "s1").lines == []
    assert carrel.drafts == []


def test_put_too_deep_exits_with_4(carrel: Carrel) -> None:
    answer = carrel("files", "put", "s1", "-", "/".join("d" * 65))
    assert answer.status == 4
    assert "65 levels, the limit is 64" in answer.err


# get


def test_get_keeps_the_name_and_writes_here(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "get", session, "sub/b.txt")
    assert (answer.status, answer.out, answer.err) == (0, b"", "")
    assert os.listdir(carrel.here) == ["b.txt"]
    assert (carrel.here / "b.txt").read_bytes() == b"b"


def test_get_to_standard_output(carrel: Carrel, session: str) -> None:
    assert carrel("files", "get", session, "a.txt", "-").out == b"one\ntwo\nthree\n"


def test_get_tells_a_program_what_it_wrote(carrel: Carrel, session: str) -> None:
    (carrel.workspace(session) / "sub" / "out").symlink_to("/etc")
    assert carrel("files", "get", session, "a.txt", "--json").json == {
        "path": "a.txt",
        "local": "a.txt",
        "left_out": [],
    }
    answer = carrel("files", "get", session, "sub", "--archive", "tar", "--json")
    assert answer.err == ""
    assert answer.json["local"] == "sub.tar"
    assert [row["path"] for row in answer.json["left_out"]] == ["out"]
    answer = carrel("files", "get", session, "a.txt", "-", "--json")
    assert (answer.status, answer.out, answer.error["code"]) == (2, b"", "cli.usage")


def test_get_refuses_to_overwrite_unless_forced(carrel: Carrel, session: str) -> None:
    mine = carrel.here / "mine"
    mine.write_bytes(b"mine")
    answer = carrel("files", "get", session, "a.txt", "mine")
    assert (answer.status, answer.err) == (1, "carrel: 'mine' already exists; use --force to replace it\n")
    assert mine.read_bytes() == b"mine"
    assert carrel("files", "get", session, "a.txt", "mine", "--force").status == 0
    assert mine.read_bytes() == b"one\ntwo\nthree\n"
    assert os.listdir(carrel.here) == ["mine"]


def test_get_refuses_a_dangling_link_and_forced_writes_where_it_leads(carrel: Carrel, session: str) -> None:
    (carrel.here / "link").symlink_to("target")
    assert carrel("files", "get", session, "sub/b.txt", "link").status == 1
    assert carrel("files", "get", session, "sub/b.txt", "link", "--force").status == 0
    assert (carrel.here / "target").read_bytes() == b"b"
    assert (carrel.here / "link").is_symlink()


def test_get_never_replaces_what_is_no_file(carrel: Carrel, session: str) -> None:
    os.mkfifo(carrel.here / "fifo")
    (carrel.here / "folder").mkdir()
    for name in ("fifo", "folder"):
        for force in ([], ["--force"]):
            assert carrel("files", "get", session, "a.txt", name, *force).status == 1
    assert sorted(os.listdir(carrel.here)) == ["fifo", "folder"]


def test_get_of_nothing_writes_nothing(carrel: Carrel, session: str) -> None:
    assert carrel("files", "get", session, "nope").status == 1
    assert carrel("files", "get", session, "a.txt", "no/such/place").status == 1
    assert os.listdir(carrel.here) == []


def test_a_large_file_goes_in_and_out_by_pieces(carrel: Carrel) -> None:
    data = os.urandom(2**20) * 30
    (carrel.here / "large").write_bytes(data)
    assert carrel("files", "put", "s1", "large").status == 0
    assert carrel("files", "get", "s1", "large", "back").status == 0
    assert (carrel.here / "back").read_bytes() == data
    assert carrel("files", "cat", "s1", "large").out == data


def test_a_file_larger_than_the_memory_there_is_goes_in_and_out(carrel: Carrel) -> None:
    size = 95 * 2**20
    with open(carrel.here / "large", "wb") as file:
        file.truncate(size)
    little = ["/bin/sh", "-c", 'ulimit -v 100000 && exec "$@"', "sh"]
    for words in (["put", "s1", "large"], ["get", "s1", "large", "back"]):
        done = subprocess.run(
            [*little, *carrel.argv("files", *words)], capture_output=True, cwd=carrel.here, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert (carrel.here / "back").stat().st_size == size


# rm


def test_rm_removes_a_file_a_tree_and_a_link(carrel: Carrel, hostile: str, tmp_path: Path) -> None:
    assert carrel("files", "rm", hostile, "a.txt", "--json").json == {"path": "a.txt", "removed": True}
    assert carrel("files", "rm", hostile, "sub").status == 1
    assert carrel("files", "rm", hostile, "sub", "-r").status == 0
    assert carrel("files", "rm", hostile, "out", "-r").status == 0
    assert carrel("files", "ls", hostile).lines == ["empty"]
    assert (tmp_path / "secrets" / "x").exists()


def test_rm_of_nothing_fails_unless_forced(carrel: Carrel, session: str) -> None:
    assert carrel("files", "rm", session, "nope", "--json").error["code"] == "path.missing"
    answer = carrel("files", "rm", session, "nope", "-f", "--json")
    assert (answer.status, answer.json) == (0, {"path": "nope", "removed": False})


def test_rm_of_the_workspace_itself_is_refused(carrel: Carrel, session: str) -> None:
    for path in (".", "sub/..", "/workspace"):
        assert carrel("files", "rm", session, path, "-r", "-f").status == 2
    assert carrel("files", "ls", session).lines == ["a.txt", "empty", "sub/"]
