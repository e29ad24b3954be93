"""Patterns that climb, explode or go round in circles (E26 to E28)."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.errors import PatternError
from carrel.paths.glob import Pattern
from carrel.sessions.functions import list_session_files, write_session_file
from carrel.workspace.workspace import Workspace
from tests.attack.guards import in_time
from tests.attack.world import RESOLVERS, MakeWorld, Variant
from tests.requirements import requirement

pytestmark = pytest.mark.attack

CLIMBING = [
    "../*",
    "..",
    "../",
    "/etc/*",
    "/*",
    "/",
    "//etc/*",
    "**/../../*",
    "**/..",
    "a/../../*",
    "*/../*",
    "..\\*",
    "\\etc\\*",
    "a\\..\\..\\*",
    "../outside/*",
    "./../*",
    "",
    ".",
    "a\x00b",
    "*" * 5000,
]
HARMLESS = [
    "...",
    ".*./*",
    ".[.]/*",
    "[.][.]/*",
    "??/*",
    "{..,x}/*",
    "l/*",
    "l/**",
    "*/secret",
    "**/secret",
    "l/secret",
    "~/*",
    "$HOME/*",
    "%2e%2e/*",
    "C:*",
    "!(x)",
    "[!a]*",
    "[",
    "[]",
    "[z-a]*",
    "[[:alpha:]]*",
    "(a+)+$",
    "***",
    "**/**/**",
    "a**b",
    "\ud800*",
    "\udcff*",
]


@requirement("P-18")
@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("pattern", CLIMBING, ids=lambda pattern: ascii(pattern[:20]))
def test_a_pattern_that_climbs_is_refused(pattern: str, variant: Variant, world: MakeWorld) -> None:
    """E26."""
    with world("a/f; l => ..", variant) as here:
        for operation in (Workspace.glob, Workspace.list_files):
            outcome = here.try_path(operation, pattern, pattern)
            assert isinstance(outcome.error, PatternError), str(outcome)
        searched = here.attempt(lambda workspace: workspace.search("in", include=pattern), pattern)
        assert isinstance(searched.error, PatternError), str(searched)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("pattern", HARMLESS, ids=ascii)
def test_a_pattern_is_only_matched_against_what_was_found_inside(
    pattern: str, variant: Variant, world: MakeWorld
) -> None:
    """E26: whatever it means, nothing outside comes back, and no link is followed."""
    with world("a/f; l => ../outside; m => $OUT; f", variant) as here:
        inside = {"a", "a/f", "l", "m", "f"}
        for operation in (Workspace.glob, Workspace.list_files):
            outcome = here.try_path(operation, pattern, pattern)
            found = outcome.value if isinstance(outcome.value, list) else []
            assert set(found) <= inside, str(outcome)
        here.attempt(lambda workspace: workspace.search("what|in", include=pattern), pattern)


@requirement("P-18")
def test_a_pattern_of_the_session_functions_is_held_to_the_same_rule(place: Path) -> None:
    """E26."""
    write_session_file("s1", "f", b"in", place / "store")
    write_session_file("s2", "secret", b"in", place / "store")
    for pattern in ("../s2/*", "../*", f"{place}/store/s2/*", "**/../../s2/*"):
        with pytest.raises(PatternError):
            list_session_files("s1", place / "store", pattern)


HEAVY = [
    ("a*" * 500 + "b", "a" * 255),
    ("*a" * 500, "a" * 255),
    ("?*" * 400 + "b", "a" * 255),
    ("[a-z]*" * 150 + "b", "a" * 255),
    ("*a*a*a*a*a*a*a*a*a*ab", "a" * 32),
    ("**/" * 300 + "b", "a/" * 60 + "a"),
    ("**/a/" * 200 + "b", "a/" * 60 + "a"),
    ("**/*/" * 170 + "b", "a/" * 60 + "a"),
    ("**/a*a*a*b/" * 90 + "c", ("a" * 60 + "/") * 60 + "a"),
    ("(a+)+" * 100, "a" * 255),
    ("[" * 1000, "[" * 255),
]


@pytest.mark.parametrize(("pattern", "path"), HEAVY, ids=[pattern[:12] for pattern, _ in HEAVY])
def test_no_pattern_explodes(pattern: str, path: str) -> None:
    """E27: a hundred matches end in time; the exponential ones would not end one."""
    with in_time():
        compiled = Pattern(pattern)
        for _ in range(100):
            compiled.matches(path)


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in HEAVY], ids=lambda pattern: pattern[:12])
def test_no_pattern_explodes_in_a_workspace(pattern: str, world: MakeWorld) -> None:
    """E27."""
    with world(
        "; ".join(["a" * 255, "a/" * 60 + "f", "a" * 254 + "b"]).replace("a/", "d/"), RESOLVERS[0]
    ) as here:
        here.try_path(Workspace.glob, pattern, pattern)
        here.try_path(Workspace.list_files, pattern, pattern)
        here.attempt(lambda workspace: workspace.search("in", include=pattern), pattern)


@pytest.mark.parametrize(
    "query", ["(a+)+$", "(a|a)*b", "(.*)*x", "a{1,500}{1,2}b", ".*.*.*.*.*.*x", "(?:a?){30}a{30}"]
)
def test_no_regular_expression_explodes(query: str, world: MakeWorld) -> None:
    """E27: for what is searched, too."""
    with world("f = " + "a" * 50_000, RESOLVERS[0]) as here:
        here.attempt(lambda workspace: workspace.search(query), query)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("pattern", ["**", "**/*", "**/f", "*", "f", "**/**/f", "d/**", "**/d/**"])
def test_links_in_circles_end_and_give_each_file_once(
    pattern: str, variant: Variant, world: MakeWorld
) -> None:
    """E28."""
    layout = "f; d/f; d/up => ..; same => .; d/same => .; other => d; a => b; b => a"
    with world(layout, variant) as here:
        outcome = here.try_path(Workspace.glob, pattern, pattern)
        assert isinstance(outcome.value, list)
        assert len(outcome.value) == len(set(outcome.value))
        assert {path for path in outcome.value if path.endswith("f")} <= {"f", "d/f"}
        files = here.try_path(Workspace.list_files, pattern, pattern)
        assert files.value == sorted({"f", "d/f"} & set(outcome.value))


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_walk_through_circles_names_everything_once(variant: Variant, world: MakeWorld) -> None:
    """E28."""
    with world("f; d/f; d/up => ..; self => .; l => loop; loop => l", variant) as here:
        found = [info.path for info in here.workspace.walk()]
        assert found == ["d", "d/f", "d/up", "f", "l", "loop", "self"]
        assert here.workspace.recount().entries == 7
        assert [match.path for match in here.workspace.search("in").matches] == ["d/f", "f"]
