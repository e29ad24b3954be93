"""Find lines by pattern or plain text, within a budget."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel import Limits, PathRule, SandboxPolicy, Workspace
from carrel.errors import LimitError, OutsideError, PatternError
from carrel.fs.api import Content
from carrel.fs.memory.files import MemoryFiles
from carrel.values import Match, Position, SearchResult
from carrel.workspace.search import Query, Search, SearchBudget
from tests.requirements import requirement
from tests.workspace.planting import plant


def places(found: SearchResult) -> list[tuple[str, int]]:
    """Which line of which file."""
    return [(match.path, match.line) for match in found.matches]


# Queries


@requirement("SE-1")
@pytest.mark.parametrize("regex", [True, False])
def test_an_empty_query_is_refused(workspace: Workspace, regex: bool) -> None:
    with pytest.raises(PatternError, match="empty"):
        workspace.search("", regex=regex)


@requirement("SE-2")
@pytest.mark.parametrize("regex", [True, False])
def test_a_query_past_its_ceiling_is_too_long(workspace: Workspace, regex: bool) -> None:
    assert workspace.search("x" * 1000, regex=regex).matches == ()
    with pytest.raises(PatternError, match="too long: 1001 characters, the limit is 1000"):
        workspace.search("x" * 1001, regex=regex)


@requirement("SE-3")
def test_case_can_be_ignored_and_a_match_tells_file_line_and_text(workspace: Workspace) -> None:
    workspace.write("greetings.txt", "Hello World\nGoodbye World\nHello Again\n")
    assert workspace.search("hello").matches == ()
    assert workspace.search("hello", ignore_case=True).matches == (
        Match(path="greetings.txt", line=1, column=1, text="Hello World"),
        Match(path="greetings.txt", line=3, column=1, text="Hello Again"),
    )
    assert len(workspace.search("HELLO w", ignore_case=True, regex=False).matches) == 1


@requirement("SE-10", "SE-11")
def test_a_query_is_a_regular_expression_or_plain_text(workspace: Workspace) -> None:
    workspace.write("f.py", "def hello_world():\ndef bye_world():\nfind def \\w+_world here\n")
    pattern = r"def \w+_world"
    assert places(workspace.search(pattern)) == [("f.py", 1), ("f.py", 2)]
    assert places(workspace.search(pattern, regex=False)) == [("f.py", 3)]


@requirement("SE-12")
@pytest.mark.parametrize(
    "query", ["[invalid(", "(", "a**", "*a", "(?P<x", r"\1", "(?=a)", "a{1001}", "[z-a]"]
)
def test_a_wrong_regular_expression_is_refused_as_one(workspace: Workspace, query: str) -> None:
    with pytest.raises(PatternError, match="invalid regular expression") as caught:
        workspace.search(query)
    assert repr(query) in str(caught.value)
    assert "(?m)" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == "pattern.invalid"
    workspace.write("f", f"x {query} y\n")
    assert places(workspace.search(query, regex=False)) == [("f", 1)]


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("^b", [2, 3]),
        ("c$", [3]),
        ("^$", [4]),
        ("^", [1, 2, 3, 4, 5]),
        (r"\bc", [2, 3]),
        ("a|e", [1, 5]),
        ("^a.*c", []),
    ],
)
def test_anchors_and_dots_mean_one_line(workspace: Workspace, query: str, lines: list[int]) -> None:
    workspace.write("f", "a\nb c.\nb c\n\ne")
    assert [match.line for match in workspace.search(query).matches] == lines


@pytest.mark.parametrize("query", [r"a\s+b", "a[^x]b", "(?s)a.b", r"a\nb", "a\n"])
def test_no_match_goes_beyond_its_line(workspace: Workspace, query: str) -> None:
    workspace.write("f", "a\nb\n")
    assert workspace.search(query).matches == ()


@pytest.mark.parametrize(("content", "lines"), [("a\nb\n", [1, 2]), ("a\n\n", [1, 2]), ("\n", [1]), ("", [])])
@pytest.mark.parametrize("query", ["^", "$", "x*"])
def test_there_is_no_line_after_the_last_newline(
    workspace: Workspace, content: str, lines: list[int], query: str
) -> None:
    workspace.write("f", content)
    assert [match.line for match in workspace.search(query).matches] == lines


def test_a_line_is_found_once_whatever_it_holds(workspace: Workspace) -> None:
    workspace.write("f", "aaaa\nb\naa\n")
    assert places(workspace.search("a")) == [("f", 1), ("f", 3)]


def test_a_column_counts_characters_from_one(workspace: Workspace) -> None:
    workspace.write("f", "世界 grüße x\n")
    assert workspace.search("x").matches[0].column == 10
    assert workspace.search("世").matches[0].column == 1


def test_the_text_of_a_line_comes_without_its_end(workspace: Workspace) -> None:
    workspace.write("f", b"one\r\ntwo\r\n")
    assert [match.text for match in workspace.search("o").matches] == ["one", "two"]


def test_bytes_that_are_no_text_are_shown_as_well_as_can_be(workspace: Workspace) -> None:
    workspace.write("f", b"caf\xe9 needle\n")
    match = workspace.search("needle").matches[0]
    assert match.text == "caf\ufffd needle"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("query", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*)*x"])
def test_a_pattern_that_explodes_elsewhere_takes_linear_time(workspace: Workspace, query: str) -> None:
    workspace.write("f", "a" * 100_000 + "!\n")
    assert workspace.search(query).matches == ()


@given(st.text(max_size=8))
@settings(max_examples=50)
def test_any_query_compiles_or_is_a_pattern_error(text: str) -> None:
    try:
        find = Query(text=text).compile()
    except PatternError:
        return
    assert all(0 <= offset <= 9 for offset in find(b"some text", 0))


@given(text=st.text("ab.*[\\ ", min_size=1, max_size=4), content=st.text("ab.*[\\ \n", max_size=40))
def test_plain_text_is_found_where_it_stands(text: str, content: str) -> None:
    find = Query(text=text, regex=False).compile()
    expected = [at for at in range(len(content)) if content.startswith(text, at)]
    found = list(find(content.encode(), 0))
    assert set(found) <= set(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("query", ["a", "x*", "^", "(?i)A"])
def test_a_line_that_matches_at_every_byte_is_found_once(query: str) -> None:
    assert list(Query(text=query).compile()(b"a" * 1000 + b"\n" + b"a" * 1000, 0)) == [0, 1001]


@given(st.integers(1, 40), st.integers(0, 3))
def test_a_search_may_begin_at_any_line(first: int, context: int) -> None:
    lines = [f"{number} n" for number in range(1, 31)]
    search = Search(Query(text="n", context=context), SearchBudget())
    found = search.run([Content("f", ("\n".join(lines).encode(),))], Position("f", first))
    assert [match.line for match in found.matches] == list(range(first, 31))
    for match in found.matches:
        at = match.line - 1
        assert match.text == lines[at]
        assert match.before == tuple(lines[max(0, at - context) : at])
        assert match.after == tuple(lines[at + 1 : at + 1 + context])


def test_a_search_begins_behind_many_lines() -> None:
    content = b"n\n" * 100_000
    found = Search(Query(text="n"), SearchBudget()).run([Content("f", (content,))], Position("f", 99_999))
    assert [match.line for match in found.matches] == [99_999, 100_000]


# Files


@requirement("SE-9")
def test_a_search_goes_into_directories(workspace: Workspace, directory: Path) -> None:
    plant(directory, "top.txt = needle", "subdir/nested.txt = needle", "subdir/other = hay")
    found = workspace.search("needle")
    assert sorted(places(found)) == [("subdir/nested.txt", 1), ("top.txt", 1)]
    assert (found.files_searched, found.files_skipped) == (3, 0)
    assert (found.truncated, found.reason) == (False, None)


def test_a_search_begins_where_it_is_told(workspace: Workspace, directory: Path) -> None:
    plant(directory, "a/f = needle", "b/f = needle", "b/c/g = needle")
    assert sorted(places(workspace.search("needle", "b"))) == [("b/c/g", 1), ("b/f", 1)]
    assert places(workspace.search("needle", "a/f")) == [("a/f", 1)]
    assert places(workspace.search("needle", "/workspace/a")) == [("a/f", 1)]


@requirement("SE-5")
def test_hidden_files_are_searched_only_when_asked(workspace: Workspace, directory: Path) -> None:
    plant(directory, ".hidden = needle", ".git/config = needle", "sub/.env = needle", "shown = needle")
    assert places(workspace.search("needle")) == [("shown", 1)]
    assert len(workspace.search("needle", hidden=True).matches) == 4
    assert places(workspace.search("needle", ".git")) == [(".git/config", 1)]


@requirement("SE-6")
def test_binary_files_are_skipped_and_counted(workspace: Workspace) -> None:
    workspace.write("image.png", bytes.fromhex("89504E470D0A1A0A0000000D") + b"needle")
    workspace.write("text", "needle")
    found = workspace.search("needle")
    assert places(found) == [("text", 1)]
    assert found.files_skipped == 1


@requirement("SE-13")
@pytest.mark.parametrize(
    ("include", "found"),
    [
        ("*.py", ["code.py", "sub/more.py"]),
        ("sub/*", ["sub/more.py"]),
        ("**/more.*", ["sub/more.py"]),
        ("*.rs", []),
    ],
)
def test_a_pattern_picks_the_files(
    workspace: Workspace, directory: Path, include: str, found: list[str]
) -> None:
    plant(directory, "code.py = needle", "notes.md = needle", "sub/more.py = needle")
    assert sorted(path for path, _ in places(workspace.search("needle", include=include))) == found


def test_a_pattern_is_seen_from_where_the_search_begins(workspace: Workspace, directory: Path) -> None:
    plant(directory, "a/sub/f = needle", "a/f = needle")
    assert places(workspace.search("needle", "a", include="sub/*")) == [("a/sub/f", 1)]


@pytest.mark.parametrize("include", ["", "../*", "/etc/*"])
def test_a_wrong_pattern_for_files_is_refused(workspace: Workspace, include: str) -> None:
    with pytest.raises(PatternError, match="invalid pattern"):
        workspace.search("needle", include=include)


def test_links_are_not_searched_so_that_nothing_is_found_twice(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    (outside / "secret").write_text("needle")
    plant(
        directory, "f = needle", "link => f", "dir => .", f"out => {outside}", f"secret => {outside}/secret"
    )
    assert places(workspace.search("needle")) == [("f", 1)]


def test_files_with_odd_names_are_searched_as_themselves(workspace: Workspace, directory: Path) -> None:
    plant(directory, "a\\b = needle here", "a/b = other needle", "c:d = needle", "new\nline = needle")
    found = {match.path: match.text for match in workspace.search("needle").matches}
    assert found == {"a\\b": "needle here", "a/b": "other needle", "c:d": "needle", "new\nline": "needle"}


@requirement("SE-7")
@pytest.mark.parametrize("path", ["/etc", "..", "out", "out/sub"])
def test_searching_outside_is_refused(workspace: Workspace, directory: Path, path: str) -> None:
    plant(directory, "out => /etc")
    with pytest.raises(ValueError, match="workspace"):
        workspace.search("root", path)


@requirement("SE-8")
def test_searching_a_missing_directory_says_so(workspace: Workspace) -> None:
    with pytest.raises(FileNotFoundError, match="no such file or directory: 'missing'"):
        workspace.search("needle", "missing")


def test_an_allowed_path_is_searched_at_its_own_place(directory: Path, outside: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(outside))])
    with Workspace.open(directory, policy=policy) as workspace:
        assert places(workspace.search("secret", str(outside))) == [(f"{outside}/secret", 1)]
        assert places(workspace.search("secret", str(outside), include="secret")) == [
            (f"{outside}/secret", 1)
        ]
        assert workspace.search("secret").matches == ()
    with Workspace.open(directory) as workspace, pytest.raises(OutsideError):
        workspace.search("secret", str(outside))


# Context


@requirement("SE-14", "SE-16")
@pytest.mark.parametrize(
    ("line", "context", "before", "after"),
    [
        (3, 1, ("line2",), ("line4",)),
        (1, 2, (), ("line2", "line3")),
        (5, 2, ("line3", "line4"), ()),
        (3, 20, ("line1", "line2"), ("line4", "line5")),
    ],
)
def test_a_match_comes_with_the_lines_around_it(
    workspace: Workspace, line: int, context: int, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    lines = [f"line{number}" if number != line else "MATCH_HERE" for number in range(1, 6)]
    workspace.write("f", "\n".join(lines) + "\n")
    (match,) = workspace.search("MATCH_HERE", context=context).matches
    assert (match.before, match.text, match.after) == (before, "MATCH_HERE", after)


@requirement("SE-15")
def test_without_context_there_is_none(workspace: Workspace) -> None:
    workspace.write("f", "one\ntwo\nthree\n")
    (match,) = workspace.search("two").matches
    assert (match.before, match.after) == ((), ())


@pytest.mark.parametrize("context", [-1, 21])
def test_context_has_bounds(workspace: Workspace, context: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 20 lines"):
        workspace.search("x", context=context)


# Budgets


@requirement("SE-4")
def test_a_search_ends_with_its_budget_of_matches(workspace: Workspace) -> None:
    workspace.write("f", "needle\n" * 50)
    found = workspace.search("needle", budget=SearchBudget(matches=5))
    assert [match.line for match in found.matches] == [1, 2, 3, 4, 5]
    assert (found.truncated, found.reason) == (True, "matches")


def test_a_budget_that_is_just_enough_is_not_truncated(workspace: Workspace) -> None:
    workspace.write("f", "needle\n" * 5)
    found = workspace.search("needle", budget=SearchBudget(matches=5, files=1, total_bytes=35))
    assert (len(found.matches), found.truncated, found.reason) == (5, False, None)


def test_a_search_ends_with_its_budget_of_files(workspace: Workspace) -> None:
    for number in range(5):
        workspace.write(f"f{number}", "needle\n")
    found = workspace.search("needle", budget=SearchBudget(files=3))
    assert (found.files_searched, len(found.matches)) == (3, 3)
    assert (found.truncated, found.reason) == (True, "files")


def test_a_search_ends_with_its_budget_of_bytes(workspace: Workspace) -> None:
    for number in range(5):
        workspace.write(f"f{number}", "needle\n")
    found = workspace.search("needle", budget=SearchBudget(total_bytes=20))
    assert found.files_searched == 2
    assert (found.truncated, found.reason) == (True, "bytes")


def test_a_search_ends_with_its_time(workspace: Workspace) -> None:
    workspace.write("f", "needle\n")
    found = workspace.search("needle", budget=SearchBudget(seconds=-1.0))
    assert found.matches == ()
    assert (found.truncated, found.reason) == (True, "time")


def test_a_search_ends_with_its_time_also_within_one_file() -> None:
    ticks = iter(range(10_000))
    search = Search(Query(text="x"), SearchBudget(seconds=3.0), clock=lambda: float(next(ticks)))
    found = search.run([Content("f", (b"x\n" * 2000,))])
    assert (found.truncated, found.reason) == (True, "time")
    assert 0 < len(found.matches) < 1000


def test_a_search_ends_where_a_walk_would(directory: Path) -> None:
    plant(directory, "a = needle", "b = needle", "d/c = needle")
    with Workspace.open(directory, limits=Limits(walk_entries=3)) as workspace:
        found = workspace.search("needle")
    assert places(found) == [("a", 1), ("b", 1)]
    assert (found.truncated, found.reason) == (True, "entries")


def test_what_lies_too_deep_is_left_out_and_told(directory: Path) -> None:
    plant(directory, "f = needle", "1/2/3/f = needle")
    with Workspace.open(directory, limits=Limits(depth=2)) as workspace:
        found = workspace.search("needle")
    assert places(found) == [("f", 1)]
    assert found.truncated


def test_a_file_that_is_too_large_is_skipped_and_counted(workspace: Workspace) -> None:
    workspace.write("large", "needle\n" * 10)
    workspace.write("small", "needle\n")
    found = workspace.search("needle", budget=SearchBudget(file_bytes=10))
    assert places(found) == [("small", 1)]
    assert (found.files_skipped, found.truncated) == (1, False)


def test_a_long_line_is_cut(workspace: Workspace) -> None:
    workspace.write("f", "x" * 50 + "needle" + "y" * 50)
    (match,) = workspace.search("needle", budget=SearchBudget(line_characters=20)).matches
    assert match.text == "x" * 20 + "..."
    assert match.column == 51


def test_a_file_that_cannot_be_read_is_skipped_and_counted(unprivileged: Path) -> None:
    plant(unprivileged, "open = needle", "shut = needle")
    (unprivileged / "shut").chmod(0)
    with Workspace.open(unprivileged) as workspace:
        found = workspace.search("needle")
    assert places(found) == [("open", 1)]
    assert found.files_skipped == 1


def test_a_search_looks_into_files_beyond_the_limit_of_a_read(directory: Path) -> None:
    plant(directory, "f = a needle in the hay")
    with Workspace.open(directory, limits=Limits(read_bytes=5)) as workspace:
        with pytest.raises(LimitError):
            workspace.read("f")
        assert places(workspace.search("needle")) == [("f", 1)]


# Going on


def test_a_search_that_ended_says_where_it_goes_on(workspace: Workspace) -> None:
    workspace.write("a", "needle\nneedle\n")
    workspace.write("b/c", "needle\n")
    found = workspace.search("needle", budget=SearchBudget(matches=1))
    assert found.next == Position("a", 2)
    assert places(workspace.search("needle", start=found.next)) == [("a", 2), ("b/c", 1)]
    assert workspace.search("needle", budget=SearchBudget(files=1)).next == Position("b/c", 0)
    assert workspace.search("needle", budget=SearchBudget(total_bytes=20)).next == Position("b/c", 0)
    assert workspace.search("needle", budget=SearchBudget(seconds=-1.0)).next == Position("a", 0)
    assert workspace.search("needle").next is None


def test_a_search_that_had_no_time_goes_on_where_it_would_have_begun(workspace: Workspace) -> None:
    workspace.write("a", "needle\nneedle\n")
    ended = workspace.search("needle", start=Position("a", 2), budget=SearchBudget(seconds=-1.0))
    assert ended.next == Position("a", 2)


@given(
    contents=st.dictionaries(
        st.sampled_from(["a", "a-b/f", "a.b", "b/c", "b/c.d", "b/d/e", "z"]),
        st.text(alphabet="n\nx", max_size=12),
    ),
    budget=st.builds(
        SearchBudget, matches=st.integers(1, 3), files=st.integers(1, 3), total_bytes=st.integers(12, 30)
    ),
)
@settings(max_examples=40)
def test_one_search_after_the_other_finds_everything_once(
    contents: dict[str, str], budget: SearchBudget
) -> None:
    with Workspace(MemoryFiles(), policy=SandboxPolicy.for_workspace("/ws")) as workspace:
        for path, content in contents.items():
            workspace.write(path, content)
        found: list[Match] = []
        result = workspace.search("n", budget=budget)
        for _ in range(100):
            if result.next is None:
                break
            found += result.matches
            result = workspace.search("n", start=result.next, budget=budget)
        assert (*found, *result.matches) == workspace.search("n").matches


@given(
    query=st.text(alphabet="kKs\u212aÄ.", min_size=1, max_size=2),
    content=st.text(alphabet="kK\u212a\u017faÄä.\n", max_size=6),
    ignore_case=st.booleans(),
)
def test_plain_text_is_found_where_its_expression_is(query: str, content: str, ignore_case: bool) -> None:
    plain = Query(text=query, regex=False, ignore_case=ignore_case).compile()
    quoted = Query(text=query.replace(".", "[.]"), ignore_case=ignore_case).compile()
    assert list(plain(content.encode(), 0)) == list(quoted(content.encode(), 0))


def test_the_names_of_files_can_be_judged(workspace: Workspace) -> None:
    workspace.write("d/yes", "needle")
    workspace.write("d/no", "needle")
    assert places(workspace.search("needle", wants=lambda name: name != "no")) == [("d/yes", 1)]


def test_several_patterns_pick_the_files(workspace: Workspace) -> None:
    for path in ("a.py", "b.txt", "src/c.md", "src/d.py", "other/c.md"):
        workspace.write(path, "needle")
    found = workspace.search("needle", include=("*.txt", "src/*.md"))
    assert places(found) == [("b.txt", 1), ("src/c.md", 1)]
    assert found.files_searched == 2


@pytest.mark.parametrize("path", [".", "large"])
def test_a_check_that_says_stop_ends_a_search_wherever_it_is(workspace: Workspace, path: str) -> None:
    workspace.write("f", "needle")
    workspace.write("large", b"x" * 3 * 2**20)

    def stopped_by(number: int) -> bool:
        calls = count(1)

        def check() -> None:
            if next(calls) == number:
                raise LimitError("time", limit=1, asked=None, message="no more time")

        try:
            workspace.narrowed(check=check).search("needle", path)
        except LimitError:
            return True
        return False

    assert [stopped_by(number) for number in (1, 2, 3, 4, 100)] == [True] * 4 + [False]


def test_a_query_with_half_a_character_is_refused(workspace: Workspace) -> None:
    with pytest.raises(PatternError, match="unpaired surrogate"):
        workspace.search("\ud800")
