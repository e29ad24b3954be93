"""`file_search`: lines by text or by expression, in every file that holds text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.profiles.agent.file_search import MAX_LINE_CHARACTERS
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.agent.answers import done, hurried, output, pages, refused


def places(toolbox: Toolbox, query: str, **arguments: object) -> list[str]:
    """Which line of which file."""
    found = output(toolbox, "file_search", query=query, **arguments)
    return [f"{match['file']}:{match['line']}" for match in found]


@requirement("SE-1", "SE-17")
def test_an_empty_query_is_refused(tools: Toolbox) -> None:
    answer = refused(tools, "file_search", "tool.arguments", query="")
    assert answer.error is not None
    assert "empty" in answer.error


@requirement("SE-2", "SE-17")
def test_a_query_past_its_ceiling_is_too_long(tools: Toolbox) -> None:
    done(tools, "file_search", query="x" * 200)
    answer = refused(tools, "file_search", "tool.arguments", query="x" * 201)
    assert answer.error is not None
    assert "too long: 201 characters, the limit is 200" in answer.error


@requirement("SE-17")
@pytest.mark.parametrize(
    "wrong",
    [{"max_results": 0}, {"max_results": 1001}, {"context_lines": 6}, {"context_lines": -1}, {"include": ""}],
)
def test_every_number_has_its_bounds(tools: Toolbox, wrong: dict[str, object]) -> None:
    refused(tools, "file_search", "tool.arguments", query="x", **wrong)


@requirement("SE-3")
def test_case_is_ignored_unless_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, "greetings.txt = Hello World\nGoodbye World\nHello Again\n")
    answer = done(tools, "file_search", query="hello")
    assert answer.output == [
        {"file": "greetings.txt", "line": 1, "content": "Hello World"},
        {"file": "greetings.txt", "line": 3, "content": "Hello Again"},
    ]
    assert answer.metadata == {
        "query": "hello",
        "directory": "/workspace",
        "match_count": 2,
        "truncated": False,
        "files_searched": 1,
        "files_skipped": 0,
    }
    assert output(tools, "file_search", query="hello", case_sensitive=True) == []
    assert len(output(tools, "file_search", query="Hello", case_sensitive=True)) == 2


@pytest.mark.parametrize(
    ("query", "line"),
    [("STRASSE", "strasse"), ("k", "\u212a"), ("Ä", "ä"), ("s", "\u017f"), ("\u212a", "k"), ("世", "世")],
)
def test_case_is_ignored_beyond_ascii_too(tools: Toolbox, directory: Path, query: str, line: str) -> None:
    (directory / "f").write_text(line)
    assert places(tools, query) == ["f:1"]
    assert places(tools, query, regex=True) == ["f:1"]


@requirement("SE-4")
def test_no_more_results_come_than_requested(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_bytes(b"needle\n" * 50)
    answer = done(tools, "file_search", query="needle", max_results=5)
    assert (len(answer.output), answer.metadata["truncated"]) == (5, True)
    assert (answer.metadata["match_count"], answer.metadata["reason"]) == (5, "matches")
    assert len(output(tools, "file_search", query="needle")) == 20
    whole = done(tools, "file_search", query="needle", max_results=50)
    assert (len(whole.output), whole.metadata["truncated"]) == (50, False)


@requirement("SE-5")
def test_hidden_files_are_searched_only_when_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, ".hidden = needle", ".git/f = needle", "d/.env = needle", "f = needle")
    assert places(tools, "needle") == ["f:1"]
    assert places(tools, "needle", include_hidden=True) == [".git/f:1", ".hidden:1", "d/.env:1", "f:1"]
    assert places(tools, "needle", include=".e*") == ["d/.env:1"]
    assert places(tools, "needle", path=".git") == [".git/f:1"]


@requirement("SE-6")
def test_images_and_what_is_not_text_are_skipped(tools: Toolbox, directory: Path) -> None:
    tree(directory, "image.png = needle", "sound.MP3 = needle", "drawing.svg = needle", "data = needle\0")
    answer = done(tools, "file_search", query="needle")
    assert [match["file"] for match in answer.output] == ["drawing.svg"]
    assert (answer.metadata["files_searched"], answer.metadata["files_skipped"]) == (1, 1)


@requirement("SE-7")
@pytest.mark.parametrize("path", ["/etc", "../outside", "way", "/workspace/../outside", "out"])
def test_what_is_outside_is_not_searched(tools: Toolbox, directory: Path, outside: Path, path: str) -> None:
    tree(directory, "way => ../outside", "out => ../outside/secret")
    answer = tools.call("file_search", {"query": "secret", "path": path})
    assert answer.error == f"Reading {path} is not allowed. Use session workspace."
    assert places(tools, "secret") == []


@requirement("SE-8")
def test_a_missing_directory_is_not_found(tools: Toolbox) -> None:
    answer = refused(tools, "file_search", "path.missing", query="x", path="none")
    assert answer.error == "File not found: none. Use file_list to see what is there."


@requirement("SE-9")
@pytest.mark.parametrize("path", ["", ".", "/workspace"])
def test_a_search_goes_into_directories(tools: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "top.txt = needle", "subdir/nested.txt = needle", "subdir/deep/er = hay\nneedle")
    found = ["subdir/deep/er:2", "subdir/nested.txt:1", "top.txt:1"]
    assert places(tools, "needle", path=path) == found
    assert places(tools, "needle", path="subdir") == found[:2]
    assert places(tools, "needle", path="subdir/nested.txt") == found[1:2]


@requirement("SE-10", "SE-11")
def test_a_query_is_text_or_a_regular_expression(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f.py = def hello_world():\ndef bye_world():\nfind def \\w+_world here\n")
    assert places(tools, r"def \w+_world", regex=True) == ["f.py:1", "f.py:2"]
    assert places(tools, r"def \w+_world") == ["f.py:3"]


@requirement("SE-12")
@pytest.mark.parametrize("query", ["[invalid(", "(", r"\1", "(?=a)", "\ud800"])
def test_a_wrong_regular_expression_is_reported_as_one(tools: Toolbox, query: str) -> None:
    answer = refused(tools, "file_search", "pattern.invalid", query=query, regex=True)
    assert answer.error is not None
    assert answer.error.endswith("Correct the pattern.")


@requirement("SE-13")
def test_a_pattern_picks_the_files(tools: Toolbox, directory: Path) -> None:
    tree(directory, "code.py = needle", "notes.txt = needle", "src/a.ts = needle", "src/b/c.tsx = needle")
    assert places(tools, "needle", include="*.py") == ["code.py:1"]
    assert places(tools, "needle", include="*.{ts,tsx}") == ["src/a.ts:1", "src/b/c.tsx:1"]
    assert places(tools, "needle", include="src/*") == ["src/a.ts:1"]
    assert places(tools, "needle", include="src/**/*.tsx") == ["src/b/c.tsx:1"]
    assert places(tools, "needle", include="{src/**,*.py}") == ["code.py:1", "src/a.ts:1", "src/b/c.tsx:1"]
    assert places(tools, "needle", path="src", include="b/*") == ["src/b/c.tsx:1"]
    assert done(tools, "file_search", query="needle", include="*.py").metadata["files_searched"] == 1
    refused(tools, "file_search", "pattern.invalid", query="needle", include="../*")


@requirement("SE-14")
def test_a_match_comes_with_the_lines_around_it(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = line1\nline2\nMATCH_HERE\nline4\nline5\n")
    (match,) = output(tools, "file_search", query="match_here", context_lines=1)
    assert match["context"] == ["line2", "MATCH_HERE", "line4"]
    (match,) = output(tools, "file_search", query="match_here", context_lines=5)
    assert match["context"] == ["line1", "line2", "MATCH_HERE", "line4", "line5"]


@requirement("SE-15", "SE-16")
def test_context_ends_with_the_file_and_is_not_there_unless_requested(
    tools: Toolbox, directory: Path
) -> None:
    tree(directory, "f = first\nlast", "g = alone")
    assert "context" not in output(tools, "file_search", query="first")[0]
    assert output(tools, "file_search", query="first", context_lines=2)[0]["context"] == ["first", "last"]
    assert output(tools, "file_search", query="last", context_lines=2)[0]["context"] == ["first", "last"]
    assert output(tools, "file_search", query="alone", context_lines=2)[0]["context"] == ["alone"]


def test_a_long_line_is_cut(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_bytes(b"needle" + b"x" * 10_000)
    (match,) = output(tools, "file_search", query="needle")
    assert len(match["content"]) == MAX_LINE_CHARACTERS + len("...")


@pytest.mark.parametrize("name", ["-rf", "a\nb", "ä世界", "latin\udcff", "at@sign", "1@2"])
def test_a_file_with_an_odd_name_is_found_and_gone_on_from(
    tools: Toolbox, directory: Path, name: str
) -> None:
    (directory / name).write_bytes(b"needle\n" * 3)
    parts = list(pages(tools, "file_search", query="needle", max_results=1))
    assert [(match["file"], match["line"]) for part in parts for match in part.output] == [
        (name, 1),
        (name, 2),
        (name, 3),
    ]


@pytest.mark.parametrize("max_results", [1, 3, 7, 100])
@pytest.mark.parametrize("answer_bytes", [10, 300, 10_000])
def test_the_cursors_of_a_long_answer_give_every_match_once(
    workspace: Workspace, directory: Path, max_results: int, answer_bytes: int
) -> None:
    for path in ("a", "a-b/f", "b", "d/a", "d/e/f", "d/z", "d.txt", "z"):
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(b"needle needle\nhay\nneedle\n\nneedle")
    with Toolbox(workspace, answer_bytes=answer_bytes) as toolbox:
        parts = list(pages(toolbox, "file_search", query="needle", max_results=max_results, context_lines=1))
    whole = Toolbox(workspace).call(
        "file_search", {"query": "needle", "max_results": 1000, "context_lines": 1}
    )
    assert [match for part in parts for match in part.output] == whole.output
    assert len(whole.output) == 24
    assert all(len(part.output) == part.metadata["match_count"] <= max_results for part in parts)


def test_a_cursor_continues_although_its_file_is_gone(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a = needle", "b = needle\nneedle", "c = needle")
    cursor = done(tools, "file_search", query="needle", max_results=2).metadata["next_cursor"]
    assert cursor == "2@b"
    (directory / "b").unlink()
    assert places(tools, "needle", cursor=cursor) == ["c:1"]


@pytest.mark.parametrize("cursor", ["", "x", "-1@a", "a@1", "@"])
def test_a_cursor_that_was_never_given_is_refused(tools: Toolbox, cursor: str) -> None:
    refused(tools, "file_search", "tool.arguments", query="x", cursor=cursor)


def test_a_search_ends_with_its_time(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"f{number} = needle" for number in range(200)))
    answer = refused(hurried(workspace, 50), "file_search", "limit.time", query="needle", max_results=200)
    assert answer.error == "Operation timed out after 1s. Ask for less at once, or for more time."
    assert len(output(hurried(workspace, 1000), "file_search", query="needle", max_results=200)) == 200


def test_a_search_of_one_large_file_ends_with_its_time(workspace: Workspace, directory: Path) -> None:
    with (directory / "f").open("wb") as file:
        file.write(b"x")
        file.truncate(9 * 2**20)
    refused(hurried(workspace, 4), "file_search", "limit.time", query="needle", path="f")


def test_what_lies_too_deep_is_reported(directory: Path) -> None:
    tree(directory, "f = needle", "1/2/3/f = needle")
    with Workspace.open(directory, limits=Limits(depth=2)) as workspace, Toolbox(workspace) as toolbox:
        answer = done(toolbox, "file_search", query="needle")
    assert [match["file"] for match in answer.output] == ["f"]
    assert (answer.metadata["truncated"], answer.metadata["reason"]) == (True, "entries")
    assert "next_cursor" not in answer.metadata


def test_a_fifo_is_not_opened(tools: Toolbox, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    tree(directory, "f = needle")
    assert places(tools, "needle") == ["f:1"]
    assert done(tools, "file_search", query="x", path="pipe").metadata["files_skipped"] == 1


def test_links_are_not_followed(tools: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "f = secret", "in => f", "way => ../outside", "d/up => ..")
    assert places(tools, "secret") == ["f:1"]
    assert places(tools, "secret", path="in") == ["in:1"]


def test_a_model_reads_one_line_per_match(tools: Toolbox, directory: Path) -> None:
    (directory / "a.py").write_text('one\n\tsay("two")\nthree\n')
    assert done(tools, "file_search", query="two").text() == 'a.py:2:\tsay("two")'
    assert done(tools, "file_search", query="two", context_lines=1).text() == (
        'a.py-1-one\na.py:2:\tsay("two")\na.py-3-three'
    )
    assert done(tools, "file_search", query="none").text() == "[No matches found]"


def test_the_last_line_says_how_to_continue(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_text("needle\n" * 5)
    answer = done(tools, "file_search", query="needle", max_results=2)
    assert answer.text() == (
        "f:1:needle\nf:2:needle\n[Cut: there are more matches than max_results. Continue with cursor '3@f']"
    )
    assert done(tools, "file_search", query="needle", cursor="3@f").text().startswith("f:3:")


def test_a_model_reads_fewer_matches_than_a_program_gets(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_text("".join(f"needle {number} {'x' * 100}\n" for number in range(1000)))
    answer = done(tools, "file_search", query="needle", max_results=1000)
    assert len(answer.output) == 1000
    *lines, note = answer.text().split("\n")
    assert 100 < len(lines) < 1000
    assert note == (
        f"[Cut: more matches would be too much for one answer. Continue with cursor '{len(lines) + 1}@f']"
    )
