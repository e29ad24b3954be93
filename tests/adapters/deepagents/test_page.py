"""Parts of files: lines of a text, or the bytes of anything else."""

from __future__ import annotations

import base64

import pytest
from deepagents.backends import utils

from carrel.adapters.deepagents import CarrelBackend, page
from tests.adapters.deepagents.results import content


def test_pages_follow_one_another_to_the_end(backend: CarrelBackend) -> None:
    backend.write("/f", "1\n2\n3\n4\n5\n")
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        result = backend.read("/f", offset, 2)
        assert result.file_data is not None
        assert result.total_lines == 5
        assert result.start_line == offset + 1
        parts.append(result.file_data["content"])
        offset = result.next_offset
    assert parts == ["1\n2", "3\n4", "5\n"]


def test_windows_that_make_no_sense_are_tolerated(backend: CarrelBackend) -> None:
    backend.write("/f", "1\n2\n")
    backend.write("/empty", "")
    assert content(backend, "/empty") == ""
    assert backend.read("/f", -3, 1).start_line == 1
    assert backend.read("/f", 0, -1).no_lines_requested
    assert not backend.read("/empty", 0, 0).no_lines_requested
    assert backend.read("/f", 2).error == "Line offset 2 exceeds file length (2 lines)"


def test_a_page_ends_between_lines_or_makes_progress(
    backend: CarrelBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "TEXT_BYTES", 10)
    backend.write("/f", "four\nfour\nfour\nmore than ten\nend")
    first = backend.read("/f")
    assert first.file_data is not None
    assert (first.file_data["content"], first.next_offset) == ("four\nfour", 2)
    long = backend.read("/f", 3)
    assert long.file_data is not None
    assert long.file_data["content"].startswith("more than \n[This line is cut")
    assert long.next_offset == 4
    assert content(backend, "/f").endswith("four")
    assert backend.read("/f", 4).next_offset is None


def test_lines_end_in_a_newline_alone(backend: CarrelBackend) -> None:
    backend.upload_files([("/f", b"1\r\n2\r\n")])
    assert content(backend, "/f") == "1\n2\n"
    assert backend.edit("/f", "1\n2", "3").occurrences == 1
    assert backend.download_files(["/f"])[0].content == b"3\r\n"


@pytest.mark.parametrize("name", ["/f.bin", "/f.png", "/f.pdf"])
def test_what_is_no_text_comes_as_base64(backend: CarrelBackend, name: str) -> None:
    data = b"\xff\xfe" if name == "/f.bin" else b"text, but not by its name"
    backend.upload_files([(name, data)])
    result = backend.read(name)
    assert result.file_data is not None
    assert result.file_data["encoding"] == "base64"
    assert base64.b64decode(result.file_data["content"]) == data
    assert result.start_line is None


def test_what_is_no_text_by_its_name_is_what_deepagents_takes_for_such() -> None:
    """Its own table has no public name; it is looked at here only, to be told when it changes."""
    assert {*utils._EXTENSION_TO_FILE_TYPE, *utils._VIDEO_EXTRA_EXTENSIONS} == page._MEDIA
