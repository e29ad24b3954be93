"""One place for each implementation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.places import IN_CONTAINERS, KINDS, WRAPPERS, Place, open_place
from tests.depth import IS_THOROUGH

BY_ARCHIVE = (
    "test_every_spelling_of_a_path_reads_the_same_file",
    "test_content_comes_back_byte_for_byte",
    "test_a_window_holds_what_is_there",
    "test_what_cannot_be_read_says_why",
    "test_a_reader_gives_all_in_chunks_that_are_not_too_large",
    "test_stat_tells_kind_size_mode_and_path",
    "test_a_kept_link_tells_its_text_and_nothing_of_its_target",
    "test_a_new_file_holds_what_was_written",
    "test_missing_parents_are_made_and_told",
    "test_nothing_is_overwritten_unless_asked",
    "test_a_write_that_cannot_be_changes_nothing",
    "test_a_write_goes_through_a_link_that_stays_inside",
    "test_a_name_may_hold_what_a_shell_would_trip_over",
    "test_a_name_that_is_not_utf_8_can_be_used_as_it_is_listed",
    "test_a_replaced_file_keeps_its_mode",
    "test_a_source_that_fails_leaves_everything_as_it_was",
    "test_the_old_content_is_there_until_the_new_one_is_complete",
    "test_append_adds_to_the_end_and_tells_both_sizes",
    "test_a_copy_has_the_content_and_the_mode_and_makes_parents",
    "test_a_copy_follows_links_at_both_ends",
    "test_a_listing_tells_about_entries_themselves_never_about_targets",
    "test_listed_entries_are_what_stat_says",
    "test_what_is_no_directory_inside_cannot_be_listed",
    "test_a_walk_gives_parents_first_and_names_in_order",
    "test_a_directory_is_made_and_told",
    "test_a_link_keeps_its_text_as_it_was_given",
    "test_a_touch_sets_when_something_was_changed",
    "test_a_tree_gives_its_files_in_order_and_no_link",
)
"""What the engine's archives can do by themselves, which is neither to remove nor to move anything."""


SLOW = (
    "test_a_deep_tree_is_walked_and_removed",
    "test_names_above_the_limit_are_refused",
    "test_a_thousand_entries_are_listed",
)
"""What takes seconds in a container, where every step is a request."""
ALWAYS = 3
"""So many examples of a test are always tried in a container."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let archives show what they can do; unless tests are thorough, try a part of all in containers.

    By archives that is one of eight examples, by the agent the first three and every fourth one after.
    Wrappers take turns.
    """
    seen: Counter[tuple[str, str]] = Counter()
    items[:] = [item for item in items if _is_wanted(item, seen)]


def _is_wanted(item: pytest.Item, seen: Counter[tuple[str, str]]) -> bool:
    call = getattr(item, "callspec", None)
    kind = None if call is None else call.params.get("place")
    name = item.name.partition("[")[0]
    if kind not in (*IN_CONTAINERS, *WRAPPERS) or (kind == "archive" and name not in BY_ARCHIVE):
        return kind != "archive"
    if kind in WRAPPERS:
        item.add_marker("deeper")
    number = seen[kind, name]
    seen[kind, name] += 1
    if IS_THOROUGH:
        return True
    if kind in WRAPPERS:
        return number % len(WRAPPERS) == WRAPPERS.index(kind)
    if kind == "container":
        return name not in SLOW and (number < ALWAYS or number % 4 == 0)
    # A path through forty links costs the engine some hundred requests.
    return number % 8 == 0 and "loop" not in item.name


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty tree behind each implementation in turn; what is outside must stay as it is."""
    opened = open_place(request.param, tmp_path)
    yield opened
    opened.require_clean()
    opened.files.close()
