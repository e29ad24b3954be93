"""`carrel session`: create, list, show, verify, extend, delete and sweep."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from carrel.audit import journal
from carrel.audit.event import Event
from carrel.errors import CarrelError
from carrel.fronts.cli.commands.session.journal import line
from carrel.fronts.cli.output import render_time
from carrel.sessions.manager import WorkspaceManager
from tests.fronts.cli.conftest import Carrel
from tests.fronts.cli.test_main import BAD_IDS

DAY_NS = 86_400 * 10**9


def state(carrel: Carrel, session_id: str) -> Path:
    return carrel.sessions / ".carrel" / "sessions" / session_id


def make_idle(
    carrel: Carrel, session_id: str, *, content: bytes = b"", ttl_seconds: float | None = 86_400
) -> WorkspaceManager:
    """Make a session that nobody has used for three days; the manager believes that it is still that time."""
    then = time.time_ns() - 3 * DAY_NS
    manager = WorkspaceManager(carrel.sessions, clock=lambda: then)
    with manager.create(session_id, ttl_seconds=ttl_seconds) as workspace:
        if content:
            workspace.write("a.txt", content)
    for name in ("lease", "ledger"):
        os.utime(state(carrel, session_id) / name, ns=(then, then))
    return manager


def everything(path: Path) -> list[tuple[str, int]]:
    """All names beneath *path*, with the times of files."""
    return sorted((str(each), each.lstat().st_mtime_ns) for each in path.rglob("*") if not each.is_dir())


# All of them


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["create", "a", "b"],
        ["create", "--ttl", "5x"],
        ["create", "--ttl", "0"],
        ["create", "--ttl", ""],
        ["create", "--max-mb", "-1"],
        ["create", "--max-mb", "1.5"],
        ["create", "--max-entries", "many"],
        ["create", "--max-file-mb", "1000000001"],
        ["create", "--role", ""],
        ["create", "--role", "a\nb"],
        ["create", "--label", "x"],
        ["create", "--label", "=x"],
        ["create", "--label", "a=1", "--label", "a=2"],
        ["create", "--label", "a=\x1b[31m"],
        ["create", "--label", b"a=\xff"],
        ["create", "--label", "a=" + "x" * 2000],
        ["create", *(word for number in range(65) for word in ("--label", f"n{number}=x"))],
        ["list", "--limit", "0"],
        ["list", "--limit", "x"],
        ["show"],
        ["show", "s1", "--since", "5"],
        ["show", "s1", "--limit", "5"],
        ["show", "s1", "--follow"],
        ["show", "s1", "--journal", "--since", "-1"],
        ["show", "s1", "--journal", "--limit", "0"],
        ["extend", "s1"],
        ["extend", "s1", "soon"],
        ["delete"],
        ["sweep", "--idle", "none"],
        ["sweep", "--idle", "0"],
    ],
)
def test_words_that_make_no_sense_change_nothing(carrel: Carrel, words: list[str | bytes]) -> None:
    answer = carrel("session", *words)
    assert answer.status == 2
    assert answer.out == b""
    assert answer.err.startswith("carrel: ")
    assert answer.err.count("\n") == 1
    assert not carrel.sessions.exists()
    if words:
        assert carrel("session", *words, "--json").error["code"] == "cli.usage"


@pytest.mark.parametrize(
    "words",
    [
        *(["create", bad] for bad in BAD_IDS),
        ["list", "--after", "../etc"],
        ["show", "../etc"],
        ["show", "../etc", "--journal"],
        ["extend", "../etc", "7d"],
        ["delete", "../etc"],
        ["delete", "s1", "../etc", "--missing-ok"],
    ],
)
def test_a_bad_id_is_refused_and_changes_nothing(carrel: Carrel, session: str, words: list[str]) -> None:
    before = everything(carrel.sessions)
    answer = carrel("session", *words, "--json")
    assert (answer.status, answer.out, answer.error["code"]) == (2, b"", "session.invalid_id")
    assert everything(carrel.sessions) == before


@pytest.mark.parametrize(
    "words",
    [["show", "s9"], ["show", "s9", "--journal"], ["verify", "s9"], ["extend", "s9", "7d"], ["delete", "s9"]],
)
@pytest.mark.parametrize("is_there", [True, False], ids=["with-others", "without-directory"])
def test_a_missing_session_is_an_error_and_nothing_is_made(
    carrel: Carrel, words: list[str], is_there: bool
) -> None:
    if is_there:
        assert carrel("session", "create", "s1").status == 0
    answer = carrel("session", *words)
    assert (answer.status, answer.out) == (1, b"")
    assert answer.err == "carrel: no such session: 's9'\n"
    assert carrel.sessions.exists() == is_there
    assert not state(carrel, "s9").exists()


@pytest.mark.parametrize(
    "words",
    [["create"], ["list"], ["show", "s1"], ["extend", "s1", "1d"], ["delete", "s1"], ["sweep"]],
    ids=lambda words: words[0],
)
def test_a_directory_that_cannot_be_used_exits_with_5(carrel: Carrel, words: list[str]) -> None:
    carrel.sessions.mkdir()
    carrel.sessions.chmod(0o777)
    answer = carrel("session", *words, "--json")
    assert (answer.status, answer.error["code"]) == (5, "sessions.unavailable")
    assert str(carrel.sessions) not in answer.err
    assert os.listdir(carrel.sessions) == []


# create


def test_create_prints_the_id(carrel: Carrel) -> None:
    answer = carrel("session", "create", "s1")
    assert (answer.status, answer.out, answer.err) == (0, b"s1\n", "")
    assert carrel.workspace("s1").is_dir()


def test_create_without_an_id_makes_one(carrel: Carrel) -> None:
    (made,) = carrel("session", "create").lines
    assert str(uuid.UUID(made, version=4)) == made
    assert carrel.workspace(made).is_dir()


def test_create_of_one_that_is_there_is_an_error(carrel: Carrel, session: str) -> None:
    answer = carrel("session", "create", session, "--json")
    assert (answer.status, answer.out, answer.error["code"]) == (1, b"", "session.exists")
    assert (carrel.workspace(session) / "a.txt").exists()


def test_create_as_json_tells_all_that_was_given(carrel: Carrel) -> None:
    words = [
        "--ttl",
        "15m",
        "--max-mb",
        "2",
        "--max-entries",
        "none",
        "--max-file-mb",
        "1",
        "--role",
        "reader",
    ]
    labels = ["--label", "project=rain", "--label", "empty=", "--label", "sum=a=b"]
    document = carrel("session", "create", "s1", *words, *labels, "--json").json
    assert document == carrel("session", "show", "s1", "--json").json
    assert document["session_id"] == "s1"
    assert (document["ttl_seconds"], document["role"]) == (900, "reader")
    assert document["labels"] == {"project": "rain", "empty": "", "sum": "a=b"}
    limits = document["limits"]
    assert (limits["disk_bytes"], limits["entries"], limits["file_bytes"]) == (2 * 2**20, None, 2**20)
    assert limits["depth"] == 64
    assert document["expires_ns"] == document["used_ns"] + 900 * 10**9


def test_create_takes_what_is_configured(carrel: Carrel) -> None:
    env = {"CARREL_TTL_SECONDS": "60", "CARREL_MAX_WORKSPACE_MB": "7", "CARREL_MAX_ENTRIES": "70"}
    document = carrel("session", "create", "--max-entries", "5", "--json", env=env).json
    assert document["ttl_seconds"] == 60
    assert (document["limits"]["disk_bytes"], document["limits"]["entries"]) == (7 * 2**20, 5)
    assert carrel("session", "create", "--ttl", "none", "--json", env=env).json["expires_ns"] is None


def test_the_limits_of_a_session_hold_for_its_files(carrel: Carrel) -> None:
    carrel("session", "create", "s1", "--max-mb", "1", "--max-entries", "2")
    answer = carrel("files", "put", "s1", "-", "big", "--json", stdin=b"x" * (2**20 + 1))
    assert (answer.status, answer.error["code"]) == (4, "quota.bytes")
    answer = carrel("files", "put", "s1", "-", "a/b/c", "--json", stdin=b"x")
    assert (answer.status, answer.error["code"]) == (4, "quota.entries")
    assert carrel("files", "put", "s1", "-", "small", stdin=b"x").status == 0


def test_one_session_too_many_exits_with_4(carrel: Carrel, session: str) -> None:
    answer = carrel("session", "create", "s2", "--json", env={"CARREL_MAX_SESSIONS": "1"})
    assert (answer.status, answer.out, answer.error["code"]) == (4, b"", "limit.sessions")
    assert not carrel.workspace("s2").exists()


# list


def test_list_of_a_missing_directory_is_empty_and_makes_nothing(carrel: Carrel) -> None:
    answer = carrel("session", "list")
    assert (answer.status, answer.out, answer.err) == (0, b"", "")
    assert carrel("session", "list", "--json").json == {"sessions": [], "next_after": None}
    assert not carrel.sessions.exists()


def test_list_of_an_empty_directory_is_empty_and_makes_nothing(carrel: Carrel) -> None:
    carrel.sessions.mkdir(mode=0o700)
    assert carrel("session", "list").out == b""
    assert carrel("session", "list", "--json").json == {"sessions": [], "next_after": None}
    assert os.listdir(carrel.sessions) == []


def test_list_shows_times_size_and_use(carrel: Carrel, session: str) -> None:
    carrel("session", "create", "s2", "--ttl", "none")
    with WorkspaceManager(carrel.sessions).open("s2"):
        head, first, second = carrel("session", "list").lines
        rows = carrel("session", "list", "--json").json["sessions"]
    assert head.split() == ["ID", "CREATED", "LAST", "USED", "EXPIRES", "SIZE", "IN", "USE"]
    assert first.split()[0] == session
    assert first.split()[4:] == ["15B", "no"]
    assert second.split()[3:] == ["never", "0B", "yes"]
    assert [list(row) for row in rows] == 2 * [
        ["session_id", "created_ns", "used_ns", "expires_ns", "size_bytes", "in_use", "problem"]
    ]
    assert [row["in_use"] for row in rows] == [False, True]
    assert rows[0]["size_bytes"] == 15
    assert rows[0]["expires_ns"] == rows[0]["used_ns"] + DAY_NS


def test_list_names_directories_without_a_record_and_leaves_them_so(carrel: Carrel, session: str) -> None:
    (carrel.sessions / "bare").mkdir()
    (carrel.sessions / "not a session").mkdir()
    (carrel.sessions / "file").touch()
    (carrel.sessions / "link").symlink_to("s1")
    for _ in range(2):
        rows = carrel("session", "list", "--json").json["sessions"]
        assert [row["session_id"] for row in rows] == ["bare", session]
        assert rows[0]["problem"] == "no_metadata"
        assert set(rows[0].values()) == {"bare", None, "no_metadata"}
    assert carrel("session", "list").lines[1].split() == ["bare", *5 * "-", "no_metadata"]
    assert not state(carrel, "bare").exists()


def test_list_goes_on_after_an_id(carrel: Carrel) -> None:
    with WorkspaceManager(carrel.sessions) as manager:
        for name in ("a", "b", "c", "d"):
            manager.create(name).close()
    page = carrel("session", "list", "--limit", "2", "--json").json
    assert [row["session_id"] for row in page["sessions"]] == ["a", "b"]
    page = carrel("session", "list", "--limit", "2", "--after", page["next_after"], "--json").json
    assert [row["session_id"] for row in page["sessions"]] == ["c", "d"]
    assert page["next_after"] is None
    answer = carrel("session", "list", "--limit", "1", "--after", "bb")
    assert [line.split()[0] for line in answer.lines] == ["ID", "c"]
    assert answer.err == "carrel: more sessions follow; use --after c\n"


def test_list_has_room_for_a_thousand(carrel: Carrel) -> None:
    with WorkspaceManager(carrel.sessions) as manager:
        for number in range(1000):
            manager.create(f"s{number:04}").close()
    rows = carrel("session", "list", "--json").json["sessions"]
    assert [row["session_id"] for row in rows] == [f"s{number:04}" for number in range(1000)]
    assert not any(row["problem"] for row in rows)
    assert len(carrel("session", "list").lines) == 1001


def test_list_is_no_use_of_a_session(carrel: Carrel) -> None:
    make_idle(carrel, "old")
    before = everything(state(carrel, "old"))
    assert carrel("session", "list", "--json").json["sessions"][0]["session_id"] == "old"
    assert everything(state(carrel, "old")) == before


def test_list_tells_of_one_that_cannot_be_used_and_goes_on(carrel: Carrel, session: str) -> None:
    carrel("session", "create", "s2")
    (state(carrel, session) / "ledger").unlink()
    (state(carrel, session) / "ledger").symlink_to("/dev/null")
    first, second = carrel("session", "list", "--json").json["sessions"]
    assert first["problem"]
    assert str(carrel.sessions) not in first["problem"]
    assert second["problem"] is None


# show


def test_show_tells_everything_known(carrel: Carrel, session: str) -> None:
    carrel("session", "extend", session, "15m")
    lines = carrel("session", "show", session).lines
    rows = dict(line.split(maxsplit=1) for line in lines if not line.startswith(("last", "in", "limit")))
    assert (rows["id"], rows["ttl"], rows["role"]) == (session, "15m", "none")
    local = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
    assert re.fullmatch(rf"{local} \((now|[0-9]+ seconds? ago)\)", rows["created"])
    assert re.fullmatch(rf"{local} \(in 1[45] minutes\)", rows["expires"])
    assert (rows["size"], rows["entries"]) == ("15 bytes of 100 MiB (0.0%)", "4 of 100,000 (0.0%)")
    assert "in use       no" in lines
    assert "limit        file_bytes   100 MiB" in lines
    assert "limit        depth        64" in lines


def test_show_tells_how_much_of_a_quota_is_used(carrel: Carrel) -> None:
    carrel("session", "create", "s1", "--max-mb", "1", "--max-entries", "3")
    carrel("files", "put", "s1", "-", "a", stdin=b"x" * 2**19)
    assert carrel("session", "show", "s1", "--json").json["usage"] == {
        "disk_bytes": 2**19,
        "disk_percent": 50.0,
        "entries": 1,
        "entries_percent": 33.3,
    }


def test_show_without_ceilings_has_no_percent(carrel: Carrel) -> None:
    carrel("session", "create", "s1", "--max-mb", "none", "--max-entries", "0", "--ttl", "none")
    usage = carrel("session", "show", "s1", "--json").json["usage"]
    assert (usage["disk_percent"], usage["entries_percent"]) == (None, 100.0)
    lines = carrel("session", "show", "s1").lines
    assert "size         0 bytes" in lines
    assert "expires      never" in lines
    assert "limit        disk_bytes   none" in lines


def test_show_says_what_is_not_counted_yet(carrel: Carrel) -> None:
    carrel.sessions.mkdir(mode=0o700)
    carrel.workspace("s1").mkdir(mode=0o700)
    assert carrel("session", "show", "s1", "--json").json["usage"] is None
    assert "size         not counted yet" in carrel("session", "show", "s1").lines


def test_show_is_no_use_of_a_session(carrel: Carrel) -> None:
    make_idle(carrel, "old", content=b"x")
    before = everything(state(carrel, "old"))
    document = carrel("session", "show", "old", "--json").json
    assert (document["in_use"], document["expired"]) == (False, True)
    assert carrel("session", "show", "old").lines[3].endswith(" (2 days ago), expired")
    assert len(carrel("session", "show", "old", "--journal").lines) == 1
    assert everything(state(carrel, "old")) == before
    assert carrel("session", "sweep").lines == ["Pruned 1 session, reclaimed 1 B"]


def test_show_tells_that_others_use_the_session(carrel: Carrel, session: str) -> None:
    with WorkspaceManager(carrel.sessions).open(session):
        assert carrel("session", "show", session, "--json").json["in_use"] is True


# The journal


@pytest.fixture
def recorded(carrel: Carrel) -> str:
    """A session with some records."""
    with WorkspaceManager(carrel.sessions).create("s1") as workspace:
        workspace.write("a.txt", b"one")
        workspace.write("new\nline \x1b[31m", b"1")
        workspace.move("a.txt", "b.txt")
        with pytest.raises(CarrelError):
            workspace.read("../secret")
        workspace.remove("b.txt")
    return "s1"


def test_the_journal_is_one_line_a_record_whatever_a_name_holds(carrel: Carrel, recorded: str) -> None:
    lines = carrel("session", "show", recorded, "--journal").lines
    words = [line.split(maxsplit=4)[2:] for line in lines]
    assert [each[:2] for each in words] == [
        ["host", "write"],
        ["host", "write"],
        ["host", "move"],
        ["host", "read"],
        ["host", "remove"],
    ]
    assert words[0][2] == "a.txt  created 3 bytes"
    assert words[1][2] == r"'new\nline \x1b[31m'  created 1 byte"
    assert words[2][2] == "a.txt -> b.txt  moved 3 bytes"
    assert words[3][2] == "../secret  refused: path.escape"
    assert words[4][2] == "b.txt  removed 3 bytes"


@pytest.mark.parametrize(
    ("operation", "before_bytes", "after_bytes", "said"),
    [
        ("write", None, 117, "a  created 117 bytes"),
        ("write", 0, 33_591, "a  0 => 33,591 bytes"),
        ("append", 5, 1, "a  5 => 1 byte"),
        ("remove", 2048, None, "a  removed 2,048 bytes"),
        ("remove", None, None, "a  removed"),
        ("mkdir", None, None, "a  created"),
        ("touch", None, None, "a"),
    ],
)
def test_the_journal_says_what_became_of_a_file(
    operation: str, before_bytes: int | None, after_bytes: int | None, said: str
) -> None:
    event = Event(
        time_ns=0,
        session_id="s1",
        actor="host",
        operation=operation,
        path="a",
        before_bytes=before_bytes,
        after_bytes=after_bytes,
    )
    assert line(event, "=>").split(maxsplit=4)[4] == said


def test_a_hostile_actor_and_error_cannot_disturb_the_terminal() -> None:
    event = Event(
        time_ns=0, session_id="s1", actor="a\nb", operation="read", path="\x1b[2J", error="x\x1b", sequence=7
    )
    assert line(event) == r"     7  1970-01-01T00:00:00Z  a\nb     read    '\x1b[2J'  refused: x\x1b"
    assert line(replace(event, repeats=3)).endswith(r"  refused: x\x1b, 3 more")


def test_a_record_that_was_taken_back_says_so() -> None:
    event = Event(
        time_ns=0, session_id="s1", actor="host", operation="write", path="a", error="change.undone"
    )
    assert line(event).endswith(" a  undone")


def records(out: bytes) -> list[dict[str, Any]]:  # Any: whatever JSON can say
    return [json.loads(each) for each in out.splitlines()]


def test_the_journal_as_json_is_a_document_a_line(carrel: Carrel, recorded: str) -> None:
    found = records(carrel("session", "show", recorded, "--journal", "--json").out)
    assert [each["operation"] for each in found] == ["write", "write", "move", "read", "remove"]
    assert {key: found[0][key] for key in ("session_id", "actor", "path", "other_path", "after_bytes")} == {
        "session_id": recorded,
        "actor": "host",
        "path": "a.txt",
        "other_path": None,
        "after_bytes": 3,
    }


def test_the_journal_is_read_on_from_a_sequence_number(carrel: Carrel, recorded: str) -> None:
    words = ("session", "show", recorded, "--journal", "--json", "--limit", "2")
    first = records(carrel(*words).out)
    second = records(carrel(*words, "--since", str(first[-1]["sequence"])).out)
    third = records(carrel(*words, "--since", str(second[-1]["sequence"])).out)
    operations = [each["operation"] for each in (*first, *second, *third)]
    assert operations == ["write", "write", "move", "read", "remove"]
    assert carrel(*words, "--since", str(third[-1]["sequence"])).out == b""


def test_what_the_journal_no_longer_keeps_is_an_error(
    carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("file_bytes", "refusal_file_bytes"):
        monkeypatch.setitem(journal.FileJournal.__init__.__kwdefaults__ or {}, name, 200)
    with WorkspaceManager(carrel.sessions).create("s1") as workspace:
        workspace.write("a", b"")
        (first,) = workspace.changes()
        for _ in range(20):
            workspace.write("a", b"")
    answer = carrel("session", "show", "s1", "--journal", "--since", str(first.sequence), "--json")
    assert (answer.status, answer.out, answer.error["code"]) == (1, b"", "journal.rotated")
    assert carrel("session", "show", "s1", "--journal").lines


def started(carrel: Carrel, *words: str) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    child = carrel.start("session", "show", *words)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    return child, child.stdout


def ended(child: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """How the child ended, and what it still said."""
    assert child.stdout is not None
    assert child.stderr is not None
    with child.stdout as out, child.stderr as err:
        return child.wait(timeout=60), out.read(), err.read()


def test_a_follower_sees_records_as_they_come_and_ends_with_the_session(
    carrel: Carrel, recorded: str
) -> None:
    with WorkspaceManager(carrel.sessions) as manager:
        child, out = started(carrel, recorded, "--journal", "--follow", "--json")
        assert [json.loads(out.readline())["operation"] for _ in range(5)][-1] == "remove"
        assert manager.status(recorded).in_use is False
        with manager.open(recorded) as workspace:
            workspace.mkdir("later")
        assert json.loads(out.readline())["path"] == "later"
        manager.delete_workspace(recorded)
        manager.create(recorded).close()
        assert ended(child) == (0, b"", b"")


def test_a_follower_ends_after_the_records_that_it_was_to_wait_for(carrel: Carrel, recorded: str) -> None:
    child, _ = started(carrel, recorded, "--journal", "--follow", "--limit", "6")
    with WorkspaceManager(carrel.sessions).open(recorded) as workspace:
        workspace.mkdir("later")
    status, out, err = ended(child)
    assert (status, len(out.splitlines()), err) == (0, 6, b"")


def test_control_c_ends_a_follower_quietly(carrel: Carrel, recorded: str) -> None:
    child, out = started(carrel, recorded, "--journal", "--follow")
    for _ in range(5):
        out.readline()
    child.send_signal(signal.SIGINT)
    assert ended(child) == (130, b"", b"")


# verify


def test_verify_prints_the_heads_or_the_first_broken_record(carrel: Carrel, session: str) -> None:
    with WorkspaceManager(carrel.sessions) as manager, manager.open(session) as workspace:
        for name in ("one", "two", "three"):
            workspace.write(name, b"x")
        with pytest.raises(CarrelError):
            workspace.read("../x")
        latest = workspace.gate.position()
    whole = carrel("session", "verify", session)
    assert whole.status == 0
    first, changes, refusals = whole.lines
    assert re.fullmatch(r"whole: [0-9]+ records", first)
    assert re.fullmatch(rf"head of changes: {latest - 1} [A-Za-z0-9_-]{{32}}", changes)
    assert re.fullmatch(rf"head of refusals: {latest} [A-Za-z0-9_-]{{32}}", refusals)
    document = carrel("session", "verify", session, "--json").json
    assert document["is_whole"] is True
    assert f"head of changes: {latest - 1} {document['changes']['digest']}" == changes
    journal = state(carrel, session) / "journal.0"
    journal.write_bytes(journal.read_bytes().replace(b'"two"', b'"TWO"'))
    broken = carrel("session", "verify", session)
    assert (broken.status, broken.lines) == (1, [f"broken: record {latest - 2}: it was edited"])
    document = carrel("session", "verify", session, "--json")
    assert (document.status, document.json["is_whole"]) == (1, False)
    assert (document.json["broken"], document.json["problem"]) == (latest - 2, "it was edited")


def test_verify_says_what_it_cannot_check(carrel: Carrel, session: str) -> None:
    old = b'\n[1,1,"s","host","write","old",null,null,1,null]'
    (state(carrel, session) / "journal.0").write_bytes(old)
    (state(carrel, session) / "head").unlink(missing_ok=True)
    answer = carrel("session", "verify", session)
    assert answer.status == 0
    assert "not checked: 1 older records, from before records were chained" in answer.lines


# extend


def test_extend_prints_when_the_session_expires(carrel: Carrel, session: str) -> None:
    answer = carrel("session", "extend", session, "7d")
    document = carrel("session", "show", session, "--json").json
    assert document["ttl_seconds"] == 7 * 86_400
    assert answer.lines == [render_time(document["expires_ns"])]
    assert carrel("session", "extend", session, "none").lines == ["never"]
    assert carrel("session", "extend", session, "90", "--json").json["ttl_seconds"] == 90


def test_extend_revives_one_that_has_expired(carrel: Carrel) -> None:
    make_idle(carrel, "old", content=b"x")
    assert carrel("files", "cat", "old", "a.txt").status == 1
    assert carrel("session", "extend", "old", "1h").status == 0
    assert carrel("files", "cat", "old", "a.txt").out == b"x"


# delete


def test_delete_removes_files_and_journals(carrel: Carrel, session: str) -> None:
    carrel("session", "create", "s2")
    answer = carrel("session", "delete", session)
    assert (answer.status, answer.out, answer.err) == (0, b"", "")
    assert not carrel.workspace(session).exists()
    assert not state(carrel, session).exists()
    assert [row["session_id"] for row in carrel("session", "list", "--json").json["sessions"]] == ["s2"]


def test_delete_goes_on_after_a_missing_one(carrel: Carrel, session: str) -> None:
    carrel("session", "create", "s2")
    answer = carrel("session", "delete", session, "gone", "s2", "s2", "--json")
    assert answer.status == 1
    assert answer.json == {"deleted": [session, "s2"], "missing": ["gone"]}
    assert answer.error["code"] == "session.missing"


def test_delete_of_a_missing_one_may_be_fine(carrel: Carrel) -> None:
    answer = carrel("session", "delete", "gone", "--missing-ok", "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json == {"deleted": [], "missing": ["gone"]}
    assert not carrel.sessions.exists()


def test_delete_tells_the_worst_problem_by_its_exit_status(carrel: Carrel, session: str) -> None:
    (carrel.sessions / "link").symlink_to(carrel.here)
    answer = carrel("session", "delete", "gone", "link", session)
    assert answer.status == 5
    assert answer.err.count("\n") == 2
    assert not carrel.workspace(session).exists()
    assert carrel.here.exists()
    assert carrel("session", "delete", "link", "--missing-ok").status == 5


def test_delete_removes_a_session_that_is_used(carrel: Carrel, session: str) -> None:
    with WorkspaceManager(carrel.sessions).open(session) as workspace:
        assert carrel("session", "delete", session).status == 0
        with pytest.raises(FileNotFoundError):
            workspace.write("late", b"")


# sweep


def test_sweep_of_a_missing_directory_makes_nothing(carrel: Carrel) -> None:
    assert carrel("session", "sweep").lines == ["Pruned 0 sessions, reclaimed 0 B"]
    assert carrel("session", "sweep", "--dry-run", "--json").json == {
        "dry_run": True,
        "deleted": [],
        "skipped": [],
        "errors": [],
        "reclaimed_bytes": 0,
        "containers": 0,
    }
    assert not carrel.sessions.exists()


def test_sweep_removes_what_has_expired_and_tells_of_the_rest(carrel: Carrel, session: str) -> None:
    make_idle(carrel, "old", content=b"x" * 2048)
    used = make_idle(carrel, "used")
    (carrel.sessions / "bare").mkdir()
    with used.open("used"):
        dry = carrel("session", "sweep", "--dry-run", "-v")
        assert carrel.workspace("old").exists()
        swept = carrel("session", "sweep", "--json")
    assert dry.lines == [
        "Would prune 1 session (2 skipped), reclaimed 2.0 KB",
        "would delete old",
        "skipped used: in_use",
        "skipped bare: no_metadata",
    ]
    assert (dry.status, swept.status) == (0, 0)
    assert swept.json == {
        "dry_run": False,
        "deleted": ["old"],
        "skipped": [
            {"session_id": "used", "reason": "in_use"},
            {"session_id": "bare", "reason": "no_metadata"},
        ],
        "errors": [],
        "reclaimed_bytes": 2048,
        "containers": 0,
    }
    assert sorted(os.listdir(carrel.sessions)) == [".carrel", "bare", session, "used"]


def test_sweep_of_what_was_idle_does_not_ask_for_a_lifetime(carrel: Carrel, session: str) -> None:
    make_idle(carrel, "old", ttl_seconds=None)
    assert carrel("session", "sweep").lines == ["Pruned 0 sessions, reclaimed 0 B"]
    assert carrel("session", "sweep", "--idle", "4d").lines == ["Pruned 0 sessions, reclaimed 0 B"]
    assert carrel("session", "sweep", "--idle", "2d", "-v").lines[1:] == ["deleted old"]
    assert carrel.workspace(session).exists()


def test_verbose_before_the_command_tells_the_sessions_too(carrel: Carrel) -> None:
    make_idle(carrel, "old")
    answer = carrel("-v", "session", "sweep")
    assert answer.lines == ["Pruned 1 session, reclaimed 0 B", "deleted old"]
    assert "session.prune.deleted session_id=old" in answer.err


def test_sweep_exits_with_1_if_a_session_could_not_be_removed(carrel: Carrel) -> None:
    for name in ("old", "stuck"):
        make_idle(carrel, name)
    carrel.workspace("stuck").rmdir()
    carrel.workspace("stuck").symlink_to(carrel.here)
    answer = carrel("session", "sweep", "--json")
    assert (answer.status, answer.json["deleted"]) == (1, ["old"])
    ((error),) = answer.json["errors"]
    assert error["session_id"] == "stuck"
    plain = carrel("session", "sweep")
    assert plain.status == 1
    assert plain.err == f"carrel: stuck: {error['problem']}\n"
    assert plain.lines == ["Pruned 0 sessions (1 error), reclaimed 0 B"]
