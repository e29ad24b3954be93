"""`file_read`: text, lines, data, bytes and pictures, and never too much at once."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.core.options import ANSWER_BYTES
from carrel.tools.toolbox import Toolbox
from carrel.values import MIB, ToolResult
from tests.requirements import requirement
from tests.tools.profiles.agent.answers import done, holds, hurried, output, pages, refused

PROMISED = """
{
  "success": true,
  "output": {"key": "value"},
  "metadata": {
    "path": "/tmp/shannon-sessions/my-session/data/config.json",
    "size_bytes": 42,
    "encoding": "utf-8",
    "file_type": ".json"
  }
}
"""
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 640, 480, 8, 6, 0, 0, 0)
IMAGES = {
    "image/png": PNG,
    "image/gif": b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0",
    "image/bmp": b"BM" + struct.pack("<IHHIIii", 70, 0, 0, 54, 40, 640, -480) + b"\0" * 16,
    "image/jpeg": b"\xff\xd8\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640) + b"\3" * 10,
    "image/webp": b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0",
}


def test_the_answer_is_the_promised_one(tools: Toolbox, directory: Path) -> None:
    tree(directory, 'data/config.json = {"key":                          "value"}\n')
    assert (directory / "data/config.json").stat().st_size == 42
    holds(done(tools, "file_read", path="data/config.json"), PROMISED)


# Text


@requirement("R-01", "R-14", "R-18")
@pytest.mark.parametrize(
    "text", ["Hello\nWorld\n", "  hello \n\n", "", "ohne Ende", "ä世界\U0001f600\r\n", "\ufeffx"]
)
def test_text_comes_back_as_it_is(tools: Toolbox, directory: Path, text: str) -> None:
    (directory / "f.txt").write_bytes(text.encode())
    answer = done(tools, "file_read", path="f.txt")
    assert answer.output == text
    assert answer.metadata.keys() - {"note"} == {
        "path", "size_bytes", "encoding", "file_type", "media_type", "version"
    }  # fmt: skip
    assert answer.text() == (text or "[The file is empty]")
    assert (answer.metadata["media_type"], answer.metadata["file_type"]) == ("text/plain", ".txt")


@requirement("R-04")
def test_a_missing_file_is_reported_with_advice(tools: Toolbox, directory: Path) -> None:
    answer = refused(tools, "file_read", "path.missing", path="data.txt")
    assert answer.error == "File not found: data.txt. Use file_list to see what is there."
    assert str(directory) not in answer.to_json()


@requirement("R-05")
def test_a_directory_is_no_file(tools: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    for more in ({}, {"offset": 1}):
        answer = refused(tools, "file_read", "path.is_directory", path="d", **more)
        assert answer.error == "Path is a directory, not a file: d. Use file_list to see what is in it."


@requirement("R-06", "P-05", "P-06", "P-09")
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../outside/secret", "out", "way/secret", "/workspace/../outside/secret"]
)
@pytest.mark.parametrize("more", [{}, {"offset": 1}, {"encoding": "base64"}])
def test_what_is_outside_is_not_read(
    tools: Toolbox, directory: Path, outside: Path, path: str, more: dict[str, object]
) -> None:
    tree(directory, "out => ../outside/secret", "way => ../outside")
    answer = tools.call("file_read", {"path": path, **more})
    assert answer.error == f"Reading {path} is not allowed. Use session workspace."
    assert "secret data" not in answer.to_json()


def test_a_hidden_and_a_missing_outside_file_get_the_same_answer(tools: Toolbox) -> None:
    there, missing = (tools.call("file_read", {"path": path}) for path in ("/etc/passwd", "/etc/nothing"))
    assert there.to_json().replace("passwd", "nothing") == missing.to_json()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_is_read_when_requested(tools: Toolbox, directory: Path, encoding: str) -> None:
    (directory / "f").write_bytes(b"caf" if encoding == "ascii" else b"caf\xe9")
    answer = done(tools, "file_read", path="f", encoding=encoding)
    assert answer.output == ("caf" if encoding == "ascii" else "café")
    assert answer.metadata["encoding"] == encoding


@requirement("R-17")
def test_text_in_another_encoding_than_requested_says_so(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_bytes(b"caf\xe9")
    for encoding in ("utf-8", "ascii"):
        answer = refused(tools, "file_read", "text.encoding", path="f", encoding=encoding)
        assert answer.error is not None
        assert answer.error.startswith("Unable to decode")
        assert answer.error.endswith("Use encoding base64.")


@pytest.mark.parametrize("name", ["-rf", "a b", "quote'\"$`", "ä世界", "new\nline", "latin\udcff", "[x]*?"])
def test_a_file_with_an_odd_name_is_read(tools: Toolbox, directory: Path, name: str) -> None:
    (directory / name).write_bytes(b"odd")
    answer = done(tools, "file_read", path=name)
    assert (answer.output, answer.metadata["path"]) == ("odd", f"/workspace/{name}")


def test_a_fifo_is_refused_at_once(tools: Toolbox, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    refused(tools, "file_read", "path.not_regular", path="pipe")


# Lines


@requirement("R-10")
def test_lines_from_an_offset_come_numbered(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_text("".join(f"Line {number}\n" for number in range(1, 11)))
    answer = done(tools, "file_read", path="f", offset=8)
    assert answer.output == "     8\tLine 8\n     9\tLine 9\n    10\tLine 10"
    assert answer.metadata["offset"] == 8
    assert "limit" not in answer.metadata
    assert "next_offset" not in answer.metadata


@requirement("R-11")
def test_the_first_lines_come_numbered(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_text("".join(f"Line {number}\n" for number in range(1, 11)))
    answer = done(tools, "file_read", path="f", limit=3)
    assert answer.output == "     1\tLine 1\n     2\tLine 2\n     3\tLine 3"
    assert (answer.metadata["limit"], answer.metadata["next_offset"]) == (3, 4)


@requirement("R-12", "R-15")
def test_a_window_holds_its_lines_and_says_how_many_there_are(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_text("".join(f"Line {number}\n" for number in range(1, 21)))
    answer = done(tools, "file_read", path="f", offset=4, limit=3)
    assert [line.split("\t")[1] for line in answer.output.split("\n")] == ["Line 4", "Line 5", "Line 6"]
    assert (answer.metadata["total_lines"], answer.metadata["next_offset"]) == (20, 7)
    assert answer.metadata["version"]


@requirement("R-13")
def test_a_window_beyond_the_end_is_empty(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = 1\n2\n3\n4\n5\n")
    answer = done(tools, "file_read", path="f", offset=100)
    assert (answer.output, answer.metadata["total_lines"]) == ("", 5)
    assert "next_offset" not in answer.metadata


def test_windows_one_after_the_other_give_every_line_once(workspace: Workspace, directory: Path) -> None:
    (directory / "f.json").write_text("".join(f'"line {number}"\n' for number in range(500)))
    lines: list[str] = []
    offset: int | None = 1
    with Toolbox(workspace, answer_bytes=1000) as toolbox:
        while offset is not None:
            answer = done(toolbox, "file_read", path="f.json", offset=offset)
            assert len(answer.output.encode()) <= 1000
            lines += answer.output.split("\n")
            offset = answer.metadata.get("next_offset")
    assert [line.split("\t")[1] for line in lines] == [f'"line {number}"' for number in range(500)]


def test_one_endless_line_is_cut_and_says_so(workspace: Workspace, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * 5000 + b"\nshort\n")
    with Toolbox(workspace, answer_bytes=1000) as toolbox:
        answer = done(toolbox, "file_read", path="f", offset=1)
        assert len(answer.output) == 1000
        assert (answer.metadata["truncated"], answer.metadata["next_offset"]) == (True, 2)
        assert output(toolbox, "file_read", path="f", offset=2) == "     2\tshort"


@pytest.mark.parametrize("more", [{"encoding": "base64"}, {"cursor": "3"}])
def test_what_has_no_lines_is_not_read_by_lines(
    tools: Toolbox, directory: Path, more: dict[str, object]
) -> None:
    tree(directory, "f = text")
    refused(tools, "file_read", "tool.arguments", path="f", offset=1, **more)


@pytest.mark.parametrize(
    "wrong", [{"offset": 0}, {"limit": 0}, {"offset": -1}, {"offset": "1"}, {"limit": 1.5}]
)
def test_a_window_is_made_of_whole_numbers_from_one(
    tools: Toolbox, directory: Path, wrong: dict[str, object]
) -> None:
    tree(directory, "f = text")
    refused(tools, "file_read", "tool.arguments", path="f", **wrong)


# Data


@requirement("R-09")
@pytest.mark.parametrize(
    ("name", "text", "data"),
    [
        ("data.json", '{"name":"test","value":42}', {"name": "test", "value": 42}),
        ("data.JSON", "[1, 2.5, null, true]", [1, 2.5, None, True]),
        ("data.json", '"text"', "text"),
        ("data.json", "null", None),
        ("data.yaml", "name: test\nvalue: 42\n", {"name": "test", "value": 42}),
        ("data.yml", "- a\n- b: 2024-01-02\n", ["a", {"b": "2024-01-02"}]),
        ("data.yaml", "2: one\ntrue: two\n", {"2": "one", "true": "two"}),
    ],
)
def test_json_and_yaml_come_parsed(tools: Toolbox, directory: Path, name: str, text: str, data: Any) -> None:
    (directory / name).write_text(text)
    assert done(tools, "file_read", path=name).output == data


@requirement("R-09")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{invalid"),
        ("a.json", "[NaN]"),
        ("a.json", "[Infinity, -Infinity]"),
        ("a.json", "[1e999]"),
        ("a.json", "[" * 100_000),
        ("a.json", "[" * 500 + "]" * 500),
        ("a.json", "[" + "9" * 10_000 + "]"),
        ("a.json", "{} {}"),
        ("a.yaml", "a: &a [x]\nb: *a\n"),
        ("a.yaml", "a: .nan\n"),
        ("a.yaml", "a: !!python/object/apply:os.system [ls]\n"),
        ("a.yaml", "[" * 100_000),
        ("a.yaml", "- " * 5000 + "x\n"),
        ("a.yaml", "a: b: c\n"),
        ("a.yaml", "one: 1\n---\ntwo: 2\n"),
        ("a.txt", '{"key": "value"}'),
    ],
)
def test_what_is_not_safe_data_stays_text(tools: Toolbox, directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(text)
    assert done(tools, "file_read", path=name).output == text


def test_a_bomb_of_aliases_stays_text(tools: Toolbox, directory: Path) -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    (directory / "bomb.yaml").write_text(bomb)
    assert done(tools, "file_read", path="bomb.yaml").output == bomb


def test_data_that_is_too_long_for_one_answer_comes_as_text_in_parts(
    workspace: Workspace, directory: Path
) -> None:
    text = "[" + ",\n".join(str(number) for number in range(1000)) + "]"
    (directory / "f.json").write_text(text)
    with Toolbox(workspace, answer_bytes=1000) as toolbox:
        assert "".join(part.output for part in pages(toolbox, "file_read", path="f.json")) == text


WORKFLOW = """\
# Runs on every push
on: push
version: 1.10
yes: no
path: "C:\\\\temp"
"""


@requirement("R-22")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ci.yaml", WORKFLOW),
        ("ci.yaml", WORKFLOW.replace("\n", "\r\n")),
        ("a.json", '{\n    "b": 1.10,\n    "a": "\\u00e9"\n}'),
        ("a.json", "null"),
        ("a.json", '"text"\n'),
    ],
)
def test_a_model_reads_a_file_of_data_as_it_is(tools: Toolbox, directory: Path, name: str, text: str) -> None:
    (directory / name).write_bytes(text.encode())
    answer = done(tools, "file_read", path=name)
    assert answer.output != text
    assert answer.text() == text
    last = text.splitlines()[-1]
    assert output(tools, "file_edit", path=name, old_text=last, new_text="new") is not None


def test_a_model_reads_the_beginning_of_data_that_is_long_and_how_to_continue(
    tools: Toolbox, directory: Path
) -> None:
    text = "[\n" + ",\n".join(str(number) for number in range(20_000)) + "\n]\n"
    (directory / "f.json").write_text(text)
    answer = done(tools, "file_read", path="f.json")
    assert answer.output == list(range(20_000))
    assert "next_cursor" not in answer.metadata
    assert joined(tools, answer, path="f.json") == text


# What a model reads of a long file


def joined(tools: Toolbox, answer: ToolResult, **arguments: object) -> str:
    """What a model reads if it continues as the last line of each answer says."""
    texts = []
    while note := answer.metadata.get("note"):
        text, _, last = answer.text().rpartition("\n")
        assert last == note
        assert len(text) <= ANSWER_BYTES
        texts.append(f"{text}\n")
        answer = done(tools, "file_read", **arguments, cursor=note.split("'")[-2])
    return "".join([*texts, answer.text()])


@requirement("R-23")
def test_a_model_reads_less_of_a_text_than_a_program_gets(tools: Toolbox, directory: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(15_000))
    (directory / "f.txt").write_text(text)
    answer = done(tools, "file_read", path="f.txt")
    assert answer.output == text
    assert "truncated" not in answer.metadata
    shown, _, last = answer.text().rpartition("\n")
    assert len(shown) <= ANSWER_BYTES
    count = shown.count("\n") + 1
    assert last.startswith(
        f"[Cut: {len(text) - len(shown) - 1} bytes of the file follow."
        f" Continue with offset {count + 1} or cursor '"
    )
    assert joined(tools, answer, path="f.txt") == text
    assert (
        output(tools, "file_read", path="f.txt", offset=count + 1, limit=1).split("\t")[1] == f"line {count}"
    )


def test_lines_say_which_ones_they_are(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_text("a\nb\nc\n")

    def note(**lines: int) -> str:
        return done(tools, "file_read", path="f", **lines).text().rpartition("\n")[2]

    assert note(offset=1, limit=2) == "[These are lines 1 to 2 of 3. Continue with offset 3]"
    assert note(offset=2) == "     3\tc"
    assert note(offset=9) == "[The file has only 3 lines]"
    (directory / "f").write_text("")
    assert note(offset=1) == "[The file is empty]"


def test_a_line_that_is_cut_says_so(workspace: Workspace, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * 5000 + b"\nshort\n")
    with Toolbox(workspace, answer_bytes=1000) as toolbox:
        answer = done(toolbox, "file_read", path="f", offset=1)
    assert answer.text().endswith(
        "x\n[Line 1 is cut, since it is too long for one answer: without offset, it can be read by cursor."
        " Continue with offset 2]"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            b"\0\1\2",
            "[File /workspace/f.zip: application/zip, 3 bytes."
            " It is not text: use encoding base64 to read it anyway]",
        ),
        (
            b"gr\xfcn",
            "[File /workspace/f.zip: application/zip, 4 bytes."
            " It is not text: use encoding latin-1 or base64 to read it anyway]",
        ),
    ],
)
def test_a_model_does_not_read_base64_that_it_did_not_request(
    tools: Toolbox, directory: Path, content: bytes, text: str
) -> None:
    (directory / "f.zip").write_bytes(content)
    assert done(tools, "file_read", path="f.zip").text() == text
    requested = done(tools, "file_read", path="f.zip", encoding="base64")
    assert base64.b64decode(requested.text()) == content


def test_base64_that_a_model_requested_is_cut_and_says_how_to_continue(
    tools: Toolbox, directory: Path
) -> None:
    content = bytes(range(256)) * 500
    (directory / "f.bin").write_bytes(content)
    answer = done(tools, "file_read", path="f.bin", encoding="base64")
    assert base64.b64decode(answer.output) == content
    whole = joined(tools, answer, path="f.bin", encoding="base64")
    assert base64.b64decode(whole) == content


# Bytes


@requirement("R-02", "R-17")
@pytest.mark.parametrize("content", [b"\0\1\2", b"text\0text", b"\xff\xfe", bytes(range(256))])
def test_what_is_not_text_comes_as_base64(tools: Toolbox, directory: Path, content: bytes) -> None:
    (directory / "f.bin").write_bytes(content)
    answer = done(tools, "file_read", path="f.bin")
    assert base64.b64decode(answer.output) == content
    assert answer.metadata["encoding"] == "base64"
    assert answer.metadata["media_type"] == "application/octet-stream"


@pytest.mark.parametrize("content", [b"", b"plain text", b"\0\xff"])
def test_any_file_comes_as_base64_when_requested(tools: Toolbox, directory: Path, content: bytes) -> None:
    (directory / "f.json").write_bytes(content)
    answer = done(tools, "file_read", path="f.json", encoding="base64")
    assert base64.b64decode(answer.output) == content


@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_reports_its_kind_and_size(tools: Toolbox, directory: Path, kind: str) -> None:
    (directory / "picture").write_bytes(IMAGES[kind])
    answer = done(tools, "file_read", path="picture")
    assert base64.b64decode(answer.output) == IMAGES[kind]
    told = answer.metadata
    assert (told["media_type"], told["width"], told["height"]) == (kind, 640, 480)


def test_bytes_that_are_too_long_come_in_parts(workspace: Workspace, directory: Path) -> None:
    content = PNG + bytes(range(256)) * 40
    (directory / "f.png").write_bytes(content)
    with Toolbox(workspace, answer_bytes=1001) as toolbox:
        parts = list(pages(toolbox, "file_read", path="f.png"))
    assert len(parts) > 10
    assert base64.b64decode("".join(part.output for part in parts)) == content
    assert all(len(part.output) <= 1001 and part.metadata["width"] == 640 for part in parts)


# Too much


@requirement("R-16")
def test_a_read_over_its_cap_is_cut_and_says_so(workspace: Workspace, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * 10_000)
    with Toolbox(workspace, answer_bytes=100) as toolbox:
        answer = done(toolbox, "file_read", path="f")
        assert (len(answer.output), answer.metadata["truncated"]) == (100, True)
        parts = list(pages(toolbox, "file_read", path="f"))
    assert "".join(part.output for part in parts) == "x" * 10_000


@pytest.mark.parametrize("answer_bytes", [1, 2, 5, 64, 1000])
def test_the_parts_of_a_text_make_the_whole_one(
    workspace: Workspace, directory: Path, answer_bytes: int
) -> None:
    text = "äö世界\U0001f600 and a line\n" * 5 + "\n\n" + "世" * 50
    (directory / "f").write_text(text)
    with Toolbox(workspace, answer_bytes=answer_bytes) as toolbox:
        assert "".join(part.output for part in pages(toolbox, "file_read", path="f")) == text


def test_the_first_part_says_at_which_line_to_continue(workspace: Workspace, directory: Path) -> None:
    (directory / "f").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    with Toolbox(workspace, answer_bytes=100) as toolbox:
        first = done(toolbox, "file_read", path="f")
        rest = done(toolbox, "file_read", path="f", offset=first.metadata["next_offset"], limit=1)
    assert rest.output.split("\t")[1] == f"line {first.output.count(chr(10)) + 1}"


def test_a_cursor_does_not_go_on_in_another_version(workspace: Workspace, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * 500)
    with Toolbox(workspace, answer_bytes=100) as toolbox:
        cursor = done(toolbox, "file_read", path="f").metadata["next_cursor"]
        done(toolbox, "file_write", path="f", content="y" * 500)
        refused(toolbox, "file_read", "path.changed", path="f", cursor=cursor)


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "²", "9" * 30, "@v"])
def test_a_cursor_that_was_never_given_is_refused(tools: Toolbox, directory: Path, cursor: str) -> None:
    tree(directory, "f")
    refused(tools, "file_read", "tool.arguments", path="f", cursor=cursor)


def test_a_cursor_beyond_the_end_gives_nothing(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f", "g.bin = \0")
    assert output(tools, "file_read", path="f", cursor="100") == ""
    assert output(tools, "file_read", path="g.bin", cursor="100") == ""


@requirement("R-08")
def test_a_read_is_limited_to_the_lower_of_requested_and_allowed(directory: Path) -> None:
    with (directory / "f").open("wb") as file:
        file.truncate(2 * MIB)
    limits = Limits(read_bytes=3 * MIB)
    with Workspace.open(directory, limits=limits) as workspace, Toolbox(workspace) as toolbox:
        answer = refused(toolbox, "file_read", "limit.read_bytes", path="f", max_size_mb=1)
        assert answer.error == (
            f"File too large: {2 * MIB} bytes (max {MIB}). Read it in parts, by offset and limit."
        )
        done(toolbox, "file_read", path="f")
        os.truncate(directory / "f", 4 * MIB)
        answer = refused(toolbox, "file_read", "limit.read_bytes", path="f", max_size_mb=100)
        assert (answer.metadata["limit"], answer.metadata["asked"]) == (3 * MIB, 4 * MIB)


@requirement("R-08")
@pytest.mark.parametrize("size", [0, 101, 1.5, "10", True])
def test_the_requested_size_has_bounds(tools: Toolbox, size: object) -> None:
    refused(tools, "file_read", "tool.arguments", path="f", max_size_mb=size)


@requirement("R-08")
def test_ten_mebibytes_are_read_without_asking_for_more(tools: Toolbox, directory: Path) -> None:
    with (directory / "f").open("wb") as file:
        file.truncate(10 * MIB)
    assert done(tools, "file_read", path="f").metadata["size_bytes"] == 10 * MIB
    os.truncate(directory / "f", 10 * MIB + 1)
    refused(tools, "file_read", "limit.read_bytes", path="f")
    done(tools, "file_read", path="f", max_size_mb=11)


def test_a_read_that_is_out_of_time_says_so(workspace: Workspace, directory: Path) -> None:
    tree(directory, "f")
    refused(hurried(workspace, 1), "file_read", "limit.time", path="f")


@pytest.mark.parametrize("path", ["small.txt", "large.txt", "small.yaml", "none"])
def test_awaited_reads_give_the_same(tools: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "small.txt", "small.yaml = a: 1")
    (directory / "large.txt").write_bytes(b"x" * 100_000)
    assert asyncio.run(tools.acall("file_read", {"path": path})) == tools.call("file_read", {"path": path})


def test_more_lines_than_fit_are_not_taken_from_a_file(workspace: Workspace) -> None:
    workspace.write("f", b"\n" * 500_000)
    tools = Toolbox(workspace, answer_bytes=1000)
    tracemalloc.start()
    try:
        answer = tools.call("file_read", {"path": "f", "limit": 500_000})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.output == "\n".join(f"{number:>6}\t" for number in range(1, 126))
    assert (answer.metadata["next_offset"], answer.metadata["total_lines"]) == (126, 500_000)
    assert answer.metadata["truncated"]
    assert peak < 1_500_000


def test_a_page_of_a_long_text_takes_no_memory_for_the_rest(workspace: Workspace) -> None:
    size = 2 * MIB
    workspace.write("f", b"x" * size)
    tools = Toolbox(workspace, answer_bytes=1000)
    cursor = done(tools, "file_read", path="f").metadata["next_cursor"]
    tracemalloc.start()
    try:
        assert output(tools, "file_read", path="f", cursor=cursor) == "x" * 1000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * size, "the content and its text are there, and no copies of them"
