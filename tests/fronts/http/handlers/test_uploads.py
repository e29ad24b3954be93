"""Archives that are sent: what cannot fit is not taken in, and what is held at one time is bounded."""

from __future__ import annotations

import io
import json
import socket
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path

import httpx2
import pytest

from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.values import MIB
from tests.fronts.http.front import Front, code_of, served
from tests.fronts.http.test_disconnect import eventually
from tests.requirements import requirement
from tests.workspace.traces import drafts_in


def packed(size_bytes: int = 0) -> bytes:
    """An archive of one file."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        member = tarfile.TarInfo("f")
        member.size = size_bytes
        archive.addfile(member, io.BytesIO(bytes(size_bytes)))
    return data.getvalue()


# Before any of it is sent


@pytest.mark.parametrize(
    ("query", "length", "status", "code"),
    [
        ("", 18 * MIB, 507, "quota.bytes"),
        ("?archive_bytes=1000", 1001, 413, "limit.archive_bytes"),
        ("?overwrite=true", 18 * MIB, 507, "quota.bytes"),
    ],
)
@requirement("Q-14")
def test_an_archive_that_is_announced_as_too_large_is_refused_before_it_is_sent(
    tmp_path: Path, query: str, length: int, status: int, code: str
) -> None:
    config = tmp_path / "carrel.toml"
    config.write_text("[session]\nmax_workspace_mb = 1\n")
    with served(tmp_path / "sessions", config=str(config), shutdown_seconds="2") as front:
        session = front.session()
        head = (
            f"POST {session.path}/archive{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n"
        )
        # Nothing of the body is ever sent, and the answer comes all the same.
        with front.raw(f"{head}\r\n".encode()) as connection:
            answer = HTTPResponse(connection, method="POST")
            answer.begin()
            assert (answer.status, json.loads(answer.read())["error"]["code"]) == (status, code)
        assert drafts_in(front.root) == []
        assert session.post("/archive", content=packed(100)).status_code == 200


# At one time


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant of a service, which sends archives."""

    front: Front
    key: str

    def make(self, *sessions: str) -> None:
        for each in sessions:
            made = self.front.client.put(f"/api/v1/sessions/{each}", headers=self._headers)
            assert made.status_code == 200

    def send(self, session: str, content: bytes | Iterator[bytes]) -> httpx2.Response:
        url = f"/api/v1/sessions/{session}/archive?overwrite=true"
        return self.front.client.post(url, content=content, headers=self._headers)

    def begin(self, session: str, length: int, sent: int) -> socket.socket:
        """Announce an archive of *length* bytes, and send so many of them."""
        head = (
            f"POST /api/v1/sessions/{session}/archive HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self.key}\r\nContent-Length: {length}\r\n\r\n"
        )
        held = self.front.service._uploads._per_session
        before = sum(held.values())
        connection = self.front.raw(head.encode() + bytes(sent))
        eventually(lambda: sum(held.values()) == before + length)
        return connection

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Front]:
    """A service that holds 2 MiB of a tenant, and 1 MiB of one session."""
    with served(tmp_path / "sessions", require_key="1", uploads_mb="2", shutdown_seconds="2") as front:
        yield front
        assert not front.service._uploads._per_session
        assert not front.service._uploads._per_tenant


@pytest.fixture
def ann(narrow: Front) -> Tenant:
    return tenant(narrow, "ann")


def tenant(front: Front, name: str) -> Tenant:
    with closing(KeyStore(front.root)) as keys:
        found = Tenant(front, keys.create(NewKey(name=name, role="developer"))[1])
    found.make("s1", "s2", "s3")
    return found


def require_put_off(answer: httpx2.Response, limit: int) -> None:
    assert (answer.status_code, code_of(answer)) == (429, "limit.uploads")
    error = answer.json()["error"]
    assert (error["retry"], error["limit"]) == (True, limit)
    assert "serve.uploads_mb" in error["message"]
    assert answer.headers["retry-after"] == "1"


@requirement("Q-15")
def test_what_one_session_takes_in_at_one_time_is_bounded(ann: Tenant) -> None:
    with ann.begin("s1", MIB, sent=1000):
        require_put_off(ann.send("s1", packed()), MIB)
        assert ann.send("s2", packed()).status_code == 200
    eventually(lambda: ann.send("s1", packed()).status_code == 200)


@requirement("Q-15")
def test_what_all_sessions_of_a_tenant_take_in_at_one_time_is_bounded(ann: Tenant) -> None:
    bob = tenant(ann.front, "bob")
    with ann.begin("s1", MIB, sent=0), ann.begin("s2", MIB, sent=1000):
        require_put_off(ann.send("s3", packed()), 2 * MIB)
        assert bob.send("s3", packed()).status_code == 200
    eventually(lambda: ann.send("s3", packed()).status_code == 200)


@requirement("Q-15")
def test_what_is_not_announced_is_counted_as_it_comes(ann: Tenant) -> None:
    with ann.begin("s1", MIB // 2, sent=0):
        require_put_off(ann.send("s1", (bytes(65_536) for _ in range(10))), MIB)
    assert drafts_in(ann.front.root) == []
    content = packed(1000)
    eventually(lambda: ann.send("s1", iter([content[:100], content[100:]])).status_code == 200)


@requirement("Q-15")
@pytest.mark.parametrize("is_announced", [True, False])
def test_an_archive_that_is_too_large_on_its_own_is_not_to_be_tried_again(
    ann: Tenant, is_announced: bool
) -> None:
    content = bytes(MIB + 1)
    answer = ann.send("s1", content if is_announced else iter([content]))
    assert (answer.status_code, code_of(answer)) == (413, "limit.archive_bytes")
    assert answer.json()["error"]["retry"] is False
    assert answer.json()["error"]["limit"] == MIB


@requirement("Q-15")
def test_an_archive_counts_until_all_of_it_is_made(ann: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has come in whole takes room on the disk until it was extracted."""
    from carrel.workspace.archive import extract

    held: list[int] = []
    really = extract._Extraction.run

    def run(extraction: extract._Extraction, members: extract.Members) -> extract.Extracted:
        held.append(sum(ann.front.service._uploads._per_session.values()))
        return really(extraction, members)

    monkeypatch.setattr(extract._Extraction, "run", run)
    content = packed(1000)
    assert ann.send("s1", content).status_code == 200
    assert held == [len(content)]


def test_an_archive_that_cannot_be_read_is_not_counted_any_longer(ann: Tenant) -> None:
    for _ in range(5):
        answer = ann.send("s1", bytes(b"x" * (MIB // 2)))
        assert (answer.status_code, code_of(answer)) == (400, "archive.invalid")


def test_the_operator_is_not_bounded(tmp_path: Path) -> None:
    with served(tmp_path / "sessions", uploads_mb="1", shutdown_seconds="2") as front:
        assert front.session().post("/archive", content=packed(2 * MIB)).status_code == 200
