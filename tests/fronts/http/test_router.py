"""From a path to its route."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.fronts.http.router import Router
from carrel.fronts.http.routes import ROUTES

ROUTER = Router(ROUTES)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1)


@given(NAMES, NAMES)
def test_names_come_out_as_they_went_in(session_id: str, path: str) -> None:
    raw = f"/api/v1/sessions/{quote(session_id, safe='')}/files/{quote(path, safe='')}".encode()
    methods, values = ROUTER.find(raw)
    assert methods["GET"].name == "read_file"
    assert values == [session_id, path]


@given(st.binary())
def test_any_path_is_found_or_not(raw: bytes) -> None:
    methods, values = ROUTER.find(raw)
    assert isinstance(methods, dict)
    assert isinstance(values, list)


@pytest.mark.parametrize(
    ("path", "name", "values"),
    [
        ("/api/v1/sessions", "list_sessions", []),
        ("/api/v1/sessions/", "get_session", [""]),
        ("/api/v1/sessions/a%2Fb", "get_session", ["a/b"]),
        ("/api/v1/sessions/a/files", "list_files", ["a"]),
        ("/api/v1/sessions/a/files/", "read_file", ["a", ""]),
        ("/api/v1/sessions/a/files/b//c/", "read_file", ["a", "b//c/"]),
        ("/api/v1/sessions/a/files/../b", "read_file", ["a", "../b"]),
        ("/api/v1/sessions/a/files/%2e%2e%2fb", "read_file", ["a", "../b"]),
        ("/api/v1/sessions/a/files/%252e", "read_file", ["a", "%2e"]),
        ("/api/v1/sessions/a/files/%zz%", "read_file", ["a", "%zz%"]),
        ("/api/v1/sessions/a/files/%ff", "read_file", ["a", "\udcff"]),
        ("/%61pi/v1/sessions", "list_sessions", []),
    ],
)
def test_each_part_is_decoded_once(path: str, name: str, values: list[str]) -> None:
    methods, found = ROUTER.find(path.encode())
    assert (methods["GET"].name, found) == (name, values)


@pytest.mark.parametrize(
    "path", ["", "/", "//api/v1/sessions", "/api/v1", "/api/v1/sessions/a/b", "/healthz/"]
)
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert ROUTER.find(path.encode())[0] == {}
