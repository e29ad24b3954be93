"""Files, trees, archives and changes in pieces; what breaks in the middle leaves nothing behind."""

from __future__ import annotations

import gc
import io
import json
import logging
import queue
import tarfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import grpc
import pytest

from carrel.errors import (
    ArchiveError,
    ChangedError,
    ExistsError,
    IsDirectoryError,
    LimitError,
    MissingError,
    RequestError,
    RoleDeniedError,
    SessionMissingError,
)
from carrel.fronts.grpc import dispatcher, streams
from carrel.remote.json_codec import parse
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB, FileInfo
from tests.fronts.grpc.serving import SECONDS, Served, serving
from tests.requirements import requirement

CRITIC = messages.Context(role="critic")


def read(served: Served, session: str, path: str, **more: Any) -> tuple[FileInfo, list[bytes]]:
    request = messages.FileReadStreamRequest(session_id=session, path=path, **more)
    first, *rest = served.call("FileReadStream", request)
    assert all(each.WhichOneof("part") == "data" for each in rest)
    return parse(json.loads(first.info_json), FileInfo), [each.data for each in rest]


def written(
    session: str, path: str, data: Iterable[bytes], *, end: bool = True, **more: Any
) -> Iterator[messages.FileWriteStreamRequest]:
    start = messages.FileWriteStart(session_id=session, path=path, **more)
    yield messages.FileWriteStreamRequest(start=start)
    for each in data:
        yield messages.FileWriteStreamRequest(data=each)
    if end:
        yield messages.FileWriteStreamRequest(end=True)


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does; the time limit of a test is the only one."""
    while not holds():
        time.sleep(0.001)


# Reading


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**16 + 1, 3 * 2**20])
@pytest.mark.parametrize("any_size", [False, True])
def test_a_file_comes_with_what_it_is_and_in_pieces(
    served: Served, session: str, size: int, any_size: bool
) -> None:
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    served.path(session, "big").write_bytes(content)
    info, pieces = read(served, session, "big", any_size=any_size)
    assert b"".join(pieces) == content
    assert all(0 < len(each) <= 2**16 for each in pieces)
    with WorkspaceManager(served.sessions).open(session) as workspace:
        assert info.version == workspace.stat("big").version


def test_a_part_of_a_file_can_be_read(served: Served, session: str) -> None:
    assert b"".join(read(served, session, "a.txt", offset=4, length=3)[1]) == b"two"
    assert b"".join(read(served, session, "a.txt", offset=8)[1]) == b"three\n"
    assert b"".join(read(served, session, "a.txt", length=3)[1]) == b"one"
    assert read(served, session, "a.txt", offset=99)[1] == []


def test_a_file_beyond_the_ceiling_of_one_read_comes_only_where_that_is_said(served: Served) -> None:
    request = messages.CreateSessionRequest(session_id="ceiling", limits_json='{"read_bytes": 2000000}')
    served.call("CreateSession", request)
    served.path("ceiling", "big").write_bytes(b"x" * 2_000_001)
    with pytest.raises(LimitError) as caught:
        read(served, "ceiling", "big")
    assert caught.value.code == "limit.read_bytes"
    assert sum(map(len, read(served, "ceiling", "big", any_size=True)[1])) == 2_000_001


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"path": "nope"}, MissingError),
        ({"path": "nope", "any_size": True}, MissingError),
        ({"path": "sub"}, IsDirectoryError),
        ({"path": "sub", "any_size": True}, IsDirectoryError),
        ({"path": "a.txt", "offset": -1}, RequestError),
        ({"path": "a.txt", "length": -1}, RequestError),
        ({"path": "a.txt", "offset": 1, "any_size": True}, RequestError),
        ({"path": "a.txt", "session_id": "none"}, SessionMissingError),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    served: Served, session: str, fields: dict[str, Any], kind: type[Exception]
) -> None:
    request = messages.FileReadStreamRequest(**{"session_id": session, **fields})
    assert type(served.refusal("FileReadStream", request)[1]) is kind


# Writing


def test_a_file_is_written_in_pieces(served: Served, session: str) -> None:
    content = [b"a" * 70_000, b"", b"b" * 3]
    answer = served.call("FileWriteStream", written(session, "new/big", content))
    assert served.path(session, "new/big").read_bytes() == b"".join(content)
    info = parse(json.loads(answer.info_json), FileInfo)
    assert info.size_bytes == 70_003
    again = written(session, "new/big", [b"c"], if_version=info.version)
    served.call("FileWriteStream", again)
    with pytest.raises(ChangedError):
        served.call("FileWriteStream", written(session, "new/big", [b"d"], if_version=info.version))
    with pytest.raises(ExistsError):
        served.call("FileWriteStream", written(session, "new/big", [b"d"], overwrite=False))
    with pytest.raises(MissingError):
        served.call("FileWriteStream", written(session, "no/dir/f", [b"d"], parents=False))
    with pytest.raises(RoleDeniedError):
        served.call("FileWriteStream", written(session, "new/big", [b"d"], context=CRITIC))
    assert served.path(session, "new/big").read_bytes() == b"c"


@pytest.mark.parametrize(
    "requests",
    [
        [],
        [messages.FileWriteStreamRequest()],
        [messages.FileWriteStreamRequest(data=b"x")],
        [messages.FileWriteStreamRequest(end=True)],
    ],
)
def test_a_stream_without_a_start_is_refused(
    served: Served, requests: list[messages.FileWriteStreamRequest]
) -> None:
    assert type(served.refusal("FileWriteStream", iter(requests))[1]) is RequestError


@pytest.mark.parametrize("last", [None, messages.FileWriteStreamRequest(), "start", "no end"])
def test_a_stream_that_does_not_say_its_end_leaves_nothing(
    served: Served, session: str, last: messages.FileWriteStreamRequest | str | None
) -> None:
    requests = list(written(session, "half", [b"x" * 100_000], end=False))
    if last == "start":
        requests.append(requests[0])
    elif last == "no end":
        requests.append(messages.FileWriteStreamRequest(end=False))
    elif isinstance(last, messages.FileWriteStreamRequest):
        requests.append(last)
    status, error = served.refusal("FileWriteStream", iter(requests))
    assert (status, type(error)) == (grpc.StatusCode.INVALID_ARGUMENT, RequestError)
    assert not served.path(session, "half").exists()
    assert served.drafts() == []


def test_a_stream_that_is_broken_off_leaves_nothing(
    served: Served, session: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent: queue.Queue[Any] = queue.Queue()
    for request in written(session, "broken", [b"x" * 2**20], end=False):
        sent.put(request)
    call = served.stub("FileWriteStream").future(iter(sent.get, None), timeout=SECONDS)
    until(lambda: served.drafts() != [])
    call.cancel()
    sent.put(None)
    until(lambda: served.drafts() == [])
    assert not served.path(session, "broken").exists()
    gc.collect()
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []
    assert read(served, session, "a.txt")[1] == [b"one\ntwo\nthree\n"]


def test_many_who_send_nothing_more_hold_up_nobody(served: Served, session: str) -> None:
    sent: queue.Queue[Any] = queue.Queue()
    uploads = [
        served.stub("FileWriteStream").future(
            chain(written(session, f"slow-{number}", [b"x"], end=False), iter(sent.get, None)),
            timeout=SECONDS,
        )
        for number in range(80)
    ]
    until(lambda: len(served.drafts()) == len(uploads))
    request = messages.CallRequest(session_id=session, operation="list")
    assert len(json.loads(served.call("Call", request).result_json)) == 2
    for each in uploads:
        each.cancel()
        sent.put(None)
    until(lambda: served.drafts() == [])


def test_a_client_that_sends_nothing_more_is_given_up(
    served: Served, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STALLED_SECONDS", 0.2)
    sent: queue.Queue[Any] = queue.Queue()
    for request in written(session, "stalled", [b"x"], end=False):
        sent.put(request)
    status, error = served.refusal("FileWriteStream", iter(sent.get, None))
    sent.put(None)
    assert (status, error.code) == (grpc.StatusCode.DEADLINE_EXCEEDED, "limit.time")
    assert not served.path(session, "stalled").exists()


def test_a_client_that_takes_nothing_more_is_given_up(
    served: Served, session: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with served.path(session, "big").open("wb") as file:
        file.truncate(64 * 2**20)
    monkeypatch.setattr(dispatcher, "STALLED_SECONDS", 0.2)
    request = messages.FileReadStreamRequest(session_id=session, path="big")
    with caplog.at_level(logging.INFO, "carrel.access"):
        call = served.stub("FileReadStream")(request, timeout=SECONDS)
        next(call)
        until(lambda: '"DEADLINE_EXCEEDED", "code": "limit.time"' in caplog.text)
    with pytest.raises(grpc.RpcError):
        list(call)
    assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("FileReadStream", lambda session: messages.FileReadStreamRequest(session_id=session, path="a.txt")),
        ("FileWriteStream", lambda session: written(session, "new", [b"x"])),
        ("Walk", lambda session: messages.WalkRequest(session_id=session)),
        ("Archive", lambda session: messages.ArchiveRequest(session_id=session)),
        ("Extract", lambda session: unpacked(session, b"")),
        ("Changes", lambda session: messages.ChangesRequest(session_id=session)),
        (
            "ExecuteCommandStream",
            lambda session: messages.ExecuteCommandStreamRequest(session_id=session, command="ls"),
        ),
    ],
)
def test_a_role_without_tools_gets_nothing_through_any_stream(
    served: Served, session: str, method: str, request_: Callable[[str], Any]
) -> None:
    status, error = served.by(role="nobody").refusal(method, request_(session))
    assert (status, error.code) == (grpc.StatusCode.PERMISSION_DENIED, "access.role")
    assert not served.path(session, "new").exists()


# Trees and archives


def test_a_tree_is_walked_in_order(served: Served, session: str) -> None:
    for number in range(300):
        served.path(session, f"sub/{number:03}").write_bytes(b"")
    pages = served.call("Walk", messages.WalkRequest(session_id=session))
    assert len(pages) == 2
    found = [parse(entry, FileInfo) for page in pages for entry in json.loads(page.entries_json)]
    with WorkspaceManager(served.sessions).open(session) as workspace:
        assert [each.path for each in found] == [each.path for each in workspace.walk()]
    with pytest.raises(MissingError):
        served.call("Walk", messages.WalkRequest(session_id=session, path="nope"))


def packed(served: Served, session: str, format: str = "") -> tuple[bytes, list[Any]]:
    parts = served.call("Archive", messages.ArchiveRequest(session_id=session, format=format))
    missed = [json.loads(each.left_out_json) for each in parts if each.WhichOneof("part") != "data"]
    return b"".join(each.data for each in parts), missed


def unpacked(
    session: str, archive: bytes, *, end: bool = True, **more: Any
) -> Iterator[messages.ExtractRequest]:
    yield messages.ExtractRequest(start=messages.ExtractStart(session_id=session, **more))
    for start in range(0, len(archive), 2**16):
        yield messages.ExtractRequest(data=archive[start : start + 2**16])
    if end:
        yield messages.ExtractRequest(end=True)


@pytest.mark.parametrize("format", ["", "tar.gz", "zip"])
def test_an_archive_holds_the_tree_and_makes_it_again(served: Served, session: str, format: str) -> None:
    served.path(session, "out").symlink_to("/etc")
    archive, missed = packed(served, session, format=format)
    assert [each["path"] for each in missed] == ["out"]
    answer = served.call("Extract", unpacked(session, archive, path="copy", format=format))
    assert json.loads(answer.result_json)["files"] == 2
    assert served.path(session, "copy/sub/b.txt").read_bytes() == b"b"
    with pytest.raises(ExistsError):
        served.call("Extract", unpacked(session, archive, path="copy"))
    served.call("Extract", unpacked(session, archive, path="copy", overwrite=True))


def test_an_archive_that_is_cut_makes_nothing(served: Served, session: str) -> None:
    archive, _ = packed(served, session)
    for requests in (
        unpacked(session, archive, path="copy", end=False),
        unpacked(session, archive[:600], path="copy"),
        unpacked(session, b"no archive", path="copy"),
    ):
        assert isinstance(served.refusal("Extract", requests)[1], RequestError | ArchiveError)
    assert not served.path(session, "copy").exists()


def test_an_archive_cannot_be_of_a_kind_that_is_not_there(served: Served, session: str) -> None:
    request = messages.ArchiveRequest(session_id=session, format="rar")
    assert type(served.refusal("Archive", request)[1]) is RequestError
    archive, _ = packed(served, session)
    requests = unpacked(session, archive, format="rar")
    assert type(served.refusal("Extract", requests)[1]) is RequestError


def test_ceilings_of_an_archive_can_be_lower_and_only_the_operator_raises_them(served: Served) -> None:
    own = served.by(served.key("unpacker"))
    own.call("EnsureSession", messages.SessionRequest(session_id="s"))
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in ("a", "b"):
            archive.addfile(tarfile.TarInfo(name))
    few = unpacked("s", data.getvalue(), limits_json='{"members": 1}')
    assert own.refusal("Extract", few)[1].code == "limit.archive_members"
    for text in ('{"members": null}', '{"members": 100001}', '{"more": 1}', '{"members": -1}', "["):
        assert type(own.refusal("Extract", unpacked("s", b"", limits_json=text))[1]) is RequestError
    own.call("Extract", unpacked("s", data.getvalue(), limits_json='{"members": 2}'))


@requirement("Q-15")
def test_no_archive_is_larger_than_what_a_session_may_take_in_at_one_time(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions", CARREL_SERVE_UPLOADS_MB="2") as served:
        own = served.by(served.key("sender"))
        own.call("EnsureSession", messages.SessionRequest(session_id="s1"))
        error = own.refusal("Extract", unpacked("s1", b"x" * (MIB + 1)))[1]
    assert (error.code, getattr(error, "limit", None)) == ("limit.archive_bytes", MIB)


@requirement("Q-15")
def test_archives_that_come_in_at_one_time_are_bounded(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions", CARREL_SERVE_UPLOADS_MB="2") as served:
        own = served.by(served.key("sender"))
        for name in ("s1", "s2"):
            own.call("EnsureSession", messages.SessionRequest(session_id=name))
        held = served.service._uploads._per_session
        go_on = threading.Event()

        def slow() -> Iterator[messages.ExtractRequest]:
            yield from unpacked("s1", bytes(MIB), end=False)
            go_on.wait(SECONDS)
            yield messages.ExtractRequest(end=True)

        running = own.stub("Extract").future(slow(), metadata=own.metadata, timeout=SECONDS)
        until(lambda: held.total() == MIB)
        status, error = own.refusal("Extract", unpacked("s1", bytes(1024)))
        assert (status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "limit.uploads")
        assert isinstance(error, LimitError)
        assert error.retry_after_seconds == 1
        own.call("Extract", unpacked("s2", bytes(1024), format="tar"))
        go_on.set()
        running.result()
        own.call("Extract", unpacked("s1", bytes(1024), format="tar"))
        assert not held


# Changes


def changed(served: Served, session: str, since: int = 0) -> tuple[list[Any], int]:
    pages = served.call("Changes", messages.ChangesRequest(session_id=session, since=since))
    events = [event for page in pages for event in json.loads(page.events_json)]
    return events, pages[-1].next if pages else since


def test_changes_come_since_a_record_and_as_they_happen(served: Served, session: str) -> None:
    def write(name: str) -> None:
        served.call("FileWriteStream", written(session, name, [b"x"]))

    write("one")
    events, last = changed(served, session)
    assert [(each["operation"], each["path"], each["actor"]) for each in events] == [
        ("write", "one", "local")
    ]
    assert changed(served, session, last) == ([], last)
    request = messages.ChangesRequest(session_id=session, since=last, follow=True)
    following = served.stub("Changes")(request, timeout=SECONDS)
    write("two")
    page = next(following)
    assert [each["path"] for each in json.loads(page.events_json)] == ["two"]
    assert page.next > last
    served.call("DeleteSession", messages.SessionRequest(session_id=session))
    assert list(following)[1:] == []


def test_a_role_is_told_only_of_the_paths_that_it_may_use(tmp_path: Path) -> None:
    config = tmp_path / "carrel.toml"
    config.write_text("[files]\nallowed_paths = ['pub']\n")
    with serving(tmp_path / "sessions", CARREL_CONFIG=str(config)) as served:
        served.call("CreateSession", messages.CreateSessionRequest(session_id="s"))
        for name in ("private/a", "pub/b", "private/c"):
            served.call("FileWriteStream", written("s", name, [b"x"]))
        everything, last = changed(served, "s")
        role = served.by(role="developer")
        assert len(everything) == 5
        events, next_ = changed(role, "s")
        assert [each["path"] for each in events] == ["pub", "pub/b"]
        assert next_ == last
        request = messages.ChangesRequest(session_id="s", since=next_, follow=True)
        following = served.stub("Changes")(request, metadata=role.metadata, timeout=SECONDS)
        for name in ("private/d", "pub/e"):
            served.call("FileWriteStream", written("s", name, [b"x"]))
        page = next(page for page in following if page.events_json != "[]")
        assert [each["path"] for each in json.loads(page.events_json)] == ["pub/e"]
        assert page.next == last + 2
        following.cancel()


def test_changes_of_what_is_not_there_are_an_error(served: Served, session: str) -> None:
    missing = messages.ChangesRequest(session_id="none", follow=True)
    assert type(served.refusal("Changes", missing)[1]) is SessionMissingError
    negative = messages.ChangesRequest(session_id=session, since=-1)
    assert type(served.refusal("Changes", negative)[1]) is RequestError
