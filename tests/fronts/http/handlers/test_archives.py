"""Archives over HTTP."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from tests.fronts.http.front import Session, code_of


def plant(session: Session) -> None:
    session.put("/files/d/a.txt", content=b"in")
    session.put("/files/d/e/b.bin", content=b"\0" * 300_000)


@pytest.mark.parametrize("format", ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"])
def test_a_directory_goes_out_and_comes_in_again(session: Session, format: str) -> None:
    plant(session)
    packed = session.get("/archive", params={"path": "d", "format": format})
    assert packed.status_code == 200
    assert packed.headers["content-disposition"] == f'attachment; filename="workspace.{format}"'
    done = session.post("/archive?path=new", content=packed.content)
    assert done.status_code == 200
    assert done.json() == {
        "files": 2,
        "directories": 2,
        "links": 0,
        "size_bytes": 300_002,
        "skipped": [],
    }
    assert session.get("/files/new/e/b.bin").content == b"\0" * 300_000


def test_archives_are_what_other_programs_read(session: Session) -> None:
    plant(session)
    packed = session.get("/archive").content
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert "d/a.txt" in archive.getnames()
    with zipfile.ZipFile(io.BytesIO(session.get("/archive?format=zip").content)) as zipped:
        assert "d/a.txt" in zipped.namelist()


def test_an_archive_is_extracted_as_a_whole_or_not_at_all(session: Session) -> None:
    plant(session)
    packed = session.get("/archive?path=d").content
    session.put("/files/new/a.txt", content=b"mine")
    refused = session.put("/archive?path=new", content=packed)
    assert (refused.status_code, code_of(refused)) == (409, "path.exists")
    assert [each["path"] for each in session.get("/files?path=new").json()["entries"]] == ["new/a.txt"]
    assert session.put("/archive?path=new&overwrite=true", content=packed).status_code == 200
    assert session.get("/files/new/a.txt").content == b"in"


@pytest.mark.parametrize(
    ("query", "content", "status", "code"),
    [
        ("", b"no archive", 400, "archive.invalid"),
        ("", b"", 400, "archive.invalid"),
        ("?format=rar", b"", 400, "request.invalid"),
        ("?members=-1", b"", 400, "request.invalid"),
        ("?ratio=100000", b"", 400, "request.invalid"),
        ("?path=..", b"", 400, "path.escape"),
    ],
)
def test_what_cannot_be_extracted_is_told(
    session: Session, query: str, content: bytes, status: int, code: str
) -> None:
    answer = session.post(f"/archive{query}", content=content)
    assert (answer.status_code, code_of(answer)) == (status, code)


def test_a_lower_ceiling_holds(session: Session) -> None:
    plant(session)
    packed = session.get("/archive").content
    answer = session.post("/archive?path=new&extracted_bytes=10", content=packed)
    assert (answer.status_code, code_of(answer)) == (413, "limit.extracted_bytes")


def test_what_cannot_be_packed_is_told_before_anything_is_sent(session: Session) -> None:
    for path, status in (("missing", 404), ("..", 400)):
        assert session.get("/archive", params={"path": path}).status_code == status
