"""Files over HTTP."""

from __future__ import annotations

import json
import os
from urllib.parse import quote

import pytest

from tests.fronts.http.front import Front, Session, code_of
from tests.requirements import requirement

LARGE = os.urandom(2**20 + 7)


def test_what_was_stored_comes_back_to_the_byte(session: Session) -> None:
    for name, content in {"small": b"in", "empty": b"", "large": LARGE}.items():
        stored = session.put(f"/files/d/{name}", content=content)
        assert stored.status_code == 200
        assert stored.json()["size_bytes"] == len(content)
        got = session.get(f"/files/d/{name}")
        assert got.content == content
        assert got.headers["etag"] == stored.headers["etag"] == f'"{stored.json()["version"]}"'
        assert got.headers["content-length"] == str(len(content))


def test_content_of_unknown_length_is_stored(session: Session) -> None:
    stored = session.put(
        "/files/f", content=(LARGE[start : start + 9999] for start in range(0, 99_990, 9999))
    )
    assert stored.json()["size_bytes"] == 99_990
    assert session.get("/files/f").content == LARGE[:99_990]


@pytest.mark.parametrize("size", [10, len(LARGE)])
def test_the_head_of_a_file_is_that_of_its_content(session: Session, size: int) -> None:
    session.put("/files/f.txt", content=LARGE[:size])
    got, head = session.get("/files/f.txt"), session.request("HEAD", "/files/f.txt")
    assert head.status_code == 200
    assert head.content == b""
    for name in ("content-length", "etag", "content-type", "accept-ranges"):
        assert head.headers[name] == got.headers[name]


@requirement("R-20")
def test_a_file_in_json_is_text_or_base64(session: Session) -> None:
    session.put("/files/a.txt", content="grüß\n".encode())
    session.put("/files/a.bin", content=b"\xff\0")
    session.put("/files/lying.txt", content=b"\xff\0")
    wanted = {"Accept": "application/json"}
    assert session.get("/files/a.txt", headers=wanted).json() == {
        "success": True,
        "content": "grüß\n",
        "content_type": "text/plain",
        "size_bytes": 7,
        "encoding": "utf-8",
    }
    for name, kind in {"a.bin": "application/octet-stream", "lying.txt": "text/plain"}.items():
        assert session.get(f"/files/{name}", headers=wanted).json() == {
            "success": True,
            "content": "/wA=",
            "content_type": kind,
            "size_bytes": 2,
            "encoding": "base64",
        }


AXIOS = "application/json, text/plain, */*"


@pytest.mark.parametrize(
    ("accept", "is_envelope"),
    [
        (AXIOS, False),
        ("*/*", False),
        ("application/*", False),
        ("text/csv, application/json;q=0.9", False),
        ("application/json;q=0, */*", False),
        ("application/json;q=2, */*;q=0.1", False),
        ("x-application/json", False),
        ("image/png", False),
        ("application/json", True),
        ("Application/JSON ; charset=utf-8", True),
        ("application/json, */*;q=0.1", True),
        ("text/csv;q=0.5, application/json", True),
    ],
)
def test_a_file_is_an_envelope_only_for_who_prefers_that(
    session: Session, accept: str, is_envelope: bool
) -> None:
    session.put("/files/a.csv", content=b"a,b\n")
    answer = session.get("/files/a.csv", headers={"Accept": accept})
    assert (answer.content != b"a,b\n") == is_envelope
    assert answer.headers["vary"] == "Accept"


def test_a_file_that_is_json_is_an_envelope_for_who_wants_json(session: Session) -> None:
    session.put("/files/a.json", content=b"{}")
    assert session.get("/files/a.json", headers={"Accept": "application/json"}).json()["content"] == "{}"
    assert session.get("/files/a.json", headers={"Accept": AXIOS}).content == b"{}"


def test_of_two_accept_headers_both_count(session: Session) -> None:
    session.put("/files/f", content=b"in")
    headers = [("Accept", "*/*"), ("Accept", "application/json")]
    assert session.get("/files/f", headers=headers).content == b"in"


def test_a_file_in_json_has_a_tag_of_its_own_and_is_of_the_same_version(session: Session) -> None:
    tag = session.put("/files/f", content=b"old").headers["etag"]
    other = session.get("/files/f", headers={"Accept": "application/json"}).headers["etag"]
    assert other != tag
    assert session.get("/files/f", headers={"If-None-Match": other}).content == b"old"
    assert session.put("/files/f", content=b"new", headers={"If-Match": other}).status_code == 200
    assert session.put("/files/f", content=b"newer", headers={"If-Match": other}).status_code == 412


def test_a_file_is_of_the_kind_that_its_name_says_with_every_python(session: Session) -> None:
    wanted = {
        "a.js": "text/javascript; charset=utf-8",
        "a.XML": "application/xml; charset=utf-8",
        "a.rs": "text/x-rust; charset=utf-8",
        "a.tar.gz": "application/gzip",
        "a.wav": "audio/wav",
        "Makefile": "application/octet-stream",
    }
    for name, kind in wanted.items():
        session.put(f"/files/{name}", content=b"x")
        assert session.get(f"/files/{name}").headers["content-type"] == kind


@requirement("R-20")
def test_what_is_no_file_is_told_by_its_status(session: Session) -> None:
    session.put("/files/d/f", content=b"in")
    for path, status, code in (
        ("missing", 404, "path.missing"),
        ("d", 400, "path.is_directory"),
        ("d/f/g", 400, "path.not_directory"),
        ("%2e%2e/x", 400, "path.escape"),
        ("/etc/passwd", 400, "access.outside"),
        ("%2Fetc%2Fpasswd", 400, "access.outside"),
        ("a%00b", 400, "path.invalid"),
    ):
        for headers in ({}, {"Accept": "application/json"}):
            answer = session.get(f"/files/{path}", headers=headers)
            assert (answer.status_code, code_of(answer)) == (status, code)
    assert session.get("/files//workspace/d/f").content == b"in"


@requirement("R-21")
def test_a_link_to_another_session_is_not_followed(front: Front, session: Session) -> None:
    other = front.session()
    other.put("/files/secret", content=b"secret data")
    (session.directory / "link").symlink_to(other.directory / "secret")
    (session.directory / "up").symlink_to(f"../{other.id}")
    for path in ("link", "up/secret"):
        answer = session.get(f"/files/{path}")
        assert (answer.status_code, code_of(answer)) == (400, "path.escape")


# Parts


@pytest.mark.parametrize("size", [10, len(LARGE)])
@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-3", slice(0, 4)),
        ("bytes=4-", slice(4, None)),
        ("bytes=-3", slice(-3, None)),
        ("bytes=5-99999999", slice(5, None)),
        ("bytes=-99999999", slice(0, None)),
        ("BYTES=1-1", slice(1, 2)),
    ],
)
def test_a_part_is_given(session: Session, size: int, asked: str, part: slice) -> None:
    content = LARGE[:size]
    session.put("/files/f", content=content)
    answer = session.get("/files/f", headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == content[part]
    first = part.indices(size)[0]
    assert answer.headers["content-range"] == f"bytes {first}-{first + len(answer.content) - 1}/{size}"


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=-0", "bytes=99-100", f"bytes={10**19}-"])
def test_a_part_beyond_the_end_cannot_be_given(session: Session, asked: str) -> None:
    session.put("/files/f", content=b"0123456789")
    answer = session.get("/files/f", headers={"Range": asked})
    assert (answer.status_code, code_of(answer)) == (416, "request.invalid")
    assert answer.headers["content-range"] == "bytes */10"


@pytest.mark.parametrize(
    "asked", ["bytes=3-1", "bytes=0-1,3-4", "lines=0-1", "bytes=-", "bytes=a-b", "bytes=٣-"]
)
def test_a_range_that_makes_no_sense_is_ignored(session: Session, asked: str) -> None:
    session.put("/files/f", content=b"0123456789")
    answer = session.get("/files/f", headers={"Range": asked.encode()})
    assert (answer.status_code, answer.content) == (200, b"0123456789")


def test_a_part_of_another_version_is_all_of_it(session: Session) -> None:
    tag = session.put("/files/f", content=b"0123456789").headers["etag"]
    for condition, status in ((tag, 206), (f"W/{tag}", 200), ('"1-1-1"', 200)):
        headers = {"Range": "bytes=0-0", "If-Range": condition}
        assert session.get("/files/f", headers=headers).status_code == status


# Versions


def test_a_version_that_the_client_has_is_not_sent_again(session: Session) -> None:
    tag = session.put("/files/f", content=b"in").headers["etag"]
    for condition in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        answer = session.get("/files/f", headers={"If-None-Match": condition})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert session.get("/files/f", headers={"If-None-Match": '"x"'}).content == b"in"


@pytest.mark.parametrize("content", [b"new", LARGE])
def test_only_the_version_that_was_seen_is_replaced(session: Session, content: bytes) -> None:
    first = session.put("/files/f", content=b"old").headers["etag"]
    session.put("/files/f", content=b"other")
    refused = session.put("/files/f", content=content, headers={"If-Match": first})
    assert (refused.status_code, code_of(refused)) == (412, "path.changed")
    assert session.get("/files/f").content == b"other"
    now = f'"{refused.json()["error"]["version"]}"'
    assert session.put("/files/f", content=content, headers={"If-Match": now}).status_code == 200
    assert session.get("/files/f").content == content


@pytest.mark.parametrize("content", [b"new", LARGE])
def test_a_new_file_replaces_nothing(session: Session, content: bytes) -> None:
    new = {"If-None-Match": "*"}
    assert session.put("/files/f", content=content, headers=new).status_code == 201
    again = session.put("/files/f", content=b"other", headers=new)
    assert (again.status_code, code_of(again)) == (412, "path.exists")
    assert session.get("/files/f").content == content
    kept = session.put("/files/f?overwrite=false", content=b"other")
    assert (kept.status_code, code_of(kept)) == (409, "path.exists")


def test_any_version_must_at_least_be_there(session: Session) -> None:
    anything = {"If-Match": "*"}
    missing = session.put("/files/f", content=b"new", headers=anything)
    assert (missing.status_code, code_of(missing)) == (412, "path.changed")
    session.put("/files/f", content=b"old")
    assert session.put("/files/f", content=b"new", headers=anything).status_code == 200


@pytest.mark.parametrize(
    "header",
    [{"If-Match": 'W/"1-1-1"'}, {"If-Match": "x"}, {"If-Match": '"*"'}, {"If-None-Match": '"1"'}],
)
def test_a_condition_that_makes_no_sense_is_refused(session: Session, header: dict[str, str]) -> None:
    answer = session.put("/files/f", content=b"new", headers=header)
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")
    assert session.get("/files/f").status_code == 404


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("header", [{"Content-Range": "bytes 0-1/9"}, {"Content-Encoding": "gzip"}])
def test_a_part_or_a_form_of_a_file_is_not_stored_as_the_file(
    session: Session, method: str, header: dict[str, str]
) -> None:
    session.put("/files/f", content=b"whole", headers={"Content-Encoding": "identity"})
    answer = session.request(method, "/files/f", content=b"xy", headers=header)
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")
    assert session.get("/files/f").content == b"whole"


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (method, name)
        for method in ("PUT", "POST", "DELETE", "MOVE", "COPY")
        for name in ("If-None-Match", "If-Unmodified-Since", "If-Match")
        if (method, name) != ("PUT", "If-None-Match") and (method == "COPY" or name != "If-Match")
    ],
)
def test_a_condition_that_nobody_looks_at_is_refused(session: Session, method: str, name: str) -> None:
    session.put("/files/f", content=b"whole")
    answer = session.request(method, "/files/f", headers={"Destination": "g", name: "*"})
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")
    assert session.get("/files/f").content == b"whole"
    assert session.get("/files/g").status_code == 404


def test_parents_are_made_unless_the_request_says_no(session: Session) -> None:
    answer = session.put("/files/a/b/c?parents=false", content=b"in")
    assert (answer.status_code, code_of(answer)) == (404, "path.missing")
    assert session.put("/files/a/b/c", content=b"in").status_code == 200


# Other changes


def test_content_is_appended(session: Session) -> None:
    tag = session.post("/files/f", content=b"one ").headers["etag"]
    more = session.post("/files/f", content=LARGE, headers={"If-Match": tag})
    assert more.json()["size_bytes"] == 4 + len(LARGE)
    assert session.get("/files/f").content == b"one " + LARGE
    refused = session.post("/files/f", content=b"x", headers={"If-Match": tag})
    assert (refused.status_code, code_of(refused)) == (412, "path.changed")


def test_a_file_and_a_tree_are_removed(session: Session) -> None:
    tag = session.put("/files/d/f", content=b"in").headers["etag"]
    full = session.delete("/files/d")
    assert (full.status_code, code_of(full)) == (409, "path.not_empty")
    stale = session.delete("/files/d/f", headers={"If-Match": '"1-1-1"'})
    assert (stale.status_code, code_of(stale)) == (412, "path.changed")
    assert session.delete("/files/d/f", headers={"If-Match": tag}).status_code == 204
    session.put("/files/d/e/f", content=b"in")
    assert session.delete("/files/d?recursive=true").status_code == 204
    assert session.delete("/files/d").status_code == 404
    assert session.delete("/files/d?force=true").status_code == 204


@pytest.mark.parametrize("method", ["MOVE", "COPY"])
def test_a_file_gets_another_name(session: Session, method: str) -> None:
    for target in (
        "new/g%20h",
        f"{session.path}/files/new/g%20h",
        f"{session.front.url}{session.path}/files/new/g%20h",
    ):
        session.put("/files/f", content=b"in")
        session.delete("/files/new?recursive=true&force=true")
        session.put("/files/new/other", content=b"in")
        done = session.request(method, "/files/f", headers={"Destination": target})
        assert done.status_code == 204, done.text
        assert session.get("/files/new/g h").content == b"in"
        assert session.get("/files/f").status_code == (404 if method == "MOVE" else 200)


@pytest.mark.parametrize("method", ["MOVE", "COPY"])
def test_another_name_is_taken_only_if_the_request_says_so(session: Session, method: str) -> None:
    session.put("/files/f", content=b"new")
    session.put("/files/g", content=b"old")
    refused = session.request(method, "/files/f", headers={"Destination": "g"})
    assert (refused.status_code, code_of(refused)) == (409, "path.exists")
    done = session.request(method, "/files/f", headers={"Destination": "g", "Overwrite": "T"})
    assert done.status_code == 204
    assert session.get("/files/g").content == b"new"


@pytest.mark.parametrize("method", ["MOVE", "COPY"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"Destination": "/elsewhere"}, 400),
        ({"Destination": "/api/v1/sessions/other/files/f"}, 400),
        ({"Destination": "%2e%2e/f"}, 400),
        ({"Destination": "g", "Overwrite": "maybe"}, 400),
    ],
)
def test_a_destination_that_makes_no_sense_is_refused(
    session: Session, method: str, headers: dict[str, str], status: int
) -> None:
    session.put("/files/f", content=b"in")
    assert session.request(method, "/files/f", headers=headers).status_code == status
    assert session.get("/files/f").content == b"in"


# Names


@pytest.mark.parametrize("name", ["a b", "ä/ö.txt", "100%", "%2e", "a+b", "a;b?c#d", "a\\b", "日本"])
def test_a_name_is_decoded_once(session: Session, name: str) -> None:
    stored = session.put(f"/files/{quote(name)}", content=b"in")
    assert stored.status_code == 200
    assert stored.json()["path"] == name.replace("\\", "/")
    assert session.get(f"/files/{quote(name, safe='')}").content == b"in"
    info = session.get(f"/files/{quote(name)}?info=true").headers["carrel-info"]
    assert json.loads(info)["path"] == stored.json()["path"]


def test_a_name_that_is_not_utf_8_can_be_used(session: Session) -> None:
    (session.directory / os.fsdecode(b"a\xff")).write_bytes(b"in")
    assert session.get("/files/a%FF").content == b"in"
    assert session.get("/files").json()["entries"][0]["path"] == "a\udcff"


@pytest.mark.parametrize("path", ["%252e%252e/x", "%25%32%65%25%32%65/x"])
def test_what_was_encoded_twice_is_only_a_name(session: Session, path: str) -> None:
    answer = session.get(f"/files/{path}")
    assert (answer.status_code, code_of(answer)) == (404, "path.missing")


def test_no_file_runs_in_a_browser(session: Session) -> None:
    session.put("/files/page.html", content=b"<script>alert(1)</script>")
    headers = session.get("/files/page.html").headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''page.html"
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]


# Listing


def test_a_directory_is_listed(session: Session) -> None:
    for path in ("a.txt", "d/b.txt", "d/.hidden/c.txt"):
        session.put(f"/files/{path}", content=b"in")

    def listed(query: str) -> list[str]:
        answer = session.get(f"/files?{query}")
        assert answer.status_code == 200
        return [entry["path"] for entry in answer.json()["entries"]]

    assert listed("") == ["a.txt", "d"]
    assert listed("path=d") == ["d/.hidden", "d/b.txt"]
    assert listed("path=d&hidden=false") == ["d/b.txt"]
    assert listed("recursive=true&pattern=*.txt") == ["a.txt", "d/.hidden/c.txt", "d/b.txt"]
    assert listed("recursive=true&hidden=false") == ["a.txt", "d", "d/b.txt"]
    assert listed("path=d&recursive=true&pattern=.hidden/*") == ["d/.hidden/c.txt"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("path=..", 400, "path.escape"),
        ("path=%2Fetc", 400, "access.outside"),
        ("path=missing", 404, "path.missing"),
        ("path=f", 400, "path.not_directory"),
        ("pattern=", 400, "pattern.invalid"),
        ("recursive=maybe", 400, "request.invalid"),
        ("path=a&path=b", 400, "request.invalid"),
    ],
)
def test_what_cannot_be_listed_is_told(session: Session, query: str, status: int, code: str) -> None:
    session.put("/files/f", content=b"in")
    answer = session.get(f"/files?{query}")
    assert (answer.status_code, code_of(answer)) == (status, code)
