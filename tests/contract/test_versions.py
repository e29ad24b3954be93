"""Expected versions: what is another one now is left alone, the same behind every implementation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from carrel.errors import ChangedError, IsDirectoryError, LimitError, MissingError, NotEmptyError
from carrel.fs.api import Existing, Files, Links, Parents
from carrel.values import FileInfo
from tests.contract.places import Place, at_once, read, refused, where, write

STALE = "1-1-1"

Act = Callable[[Files, str, str | None], FileInfo]


def _append(files: Files, path: str, expect: str | None) -> FileInfo:
    return files.append(where(path), b"!", limit=None, expect=expect).info


def _remove(files: Files, path: str, expect: str | None) -> FileInfo:
    return files.remove(where(path), expect=expect)


def _remove_tree(files: Files, path: str, expect: str | None) -> FileInfo:
    return files.remove_tree(where(path), expect=expect)


def _move(files: Files, path: str, expect: str | None) -> FileInfo:
    return files.move(where(path), where("moved"), existing=Existing.REPLACE, expect=expect)


def _write(files: Files, path: str, expect: str | None) -> FileInfo:
    return files.write(
        where(path), b"new", existing=Existing.REPLACE, parents=Parents.REQUIRE, expect=expect
    ).info


TAKING: dict[str, Act] = {"remove": _remove, "remove_tree": _remove_tree, "move": _move}
CHANGING: dict[str, Act] = {"append": _append, "write": _write, **TAKING}
every_act = pytest.mark.parametrize("act", CHANGING.values(), ids=CHANGING)
every_taking = pytest.mark.parametrize("act", TAKING.values(), ids=TAKING)


def version(place: Place, path: str, links: Links = Links.KEEP) -> str:
    return place.files.stat(where(path), links).version


@every_act
def test_the_expected_version_of_a_file_is_changed(place: Place, act: Act) -> None:
    place.plant("f = old")
    act(place.files, "f", version(place, "f"))
    assert "f = old" not in place.lines()


@every_act
def test_another_version_of_a_file_is_left_and_told(place: Place, act: Act) -> None:
    seen = write(place.files, "f", b"one").version
    now = write(place.files, "f", b"two").version
    with refused(ChangedError, "f") as caught:
        act(place.files, "f", seen)
    assert caught.value.version == now
    assert place.lines() == ["f = two"]


@every_taking
@pytest.mark.parametrize("path", ["link", "dangling", "loop", "out", "empty", "empty/"])
def test_links_and_directories_have_versions_of_their_own(place: Place, act: Act, path: str) -> None:
    place.plant("f", "link => f", "dangling => no", "loop => loop", "out => ../outside/secret", "empty/")
    before = place.lines()
    with refused(ChangedError, path) as caught:
        act(place.files, path, STALE)
    assert caught.value.version == version(place, path)
    assert place.lines() == before
    act(place.files, path, version(place, path))
    assert len(place.lines()) == len(before) - (act is not _move)


@every_taking
def test_the_version_of_the_target_is_not_that_of_a_link(place: Place, act: Act) -> None:
    place.plant("f", "link => f")
    with refused(ChangedError, "link"):
        act(place.files, "link", version(place, "link", Links.FOLLOW))
    assert len(place.lines()) == 2


def test_what_is_appended_through_a_link_expects_the_version_of_the_target(place: Place) -> None:
    place.plant("f = text", "link => f")
    with refused(ChangedError, "link") as caught:
        _append(place.files, "link", version(place, "link"))
    assert caught.value.version == version(place, "f")
    _append(place.files, "link", version(place, "f"))
    assert read(place.files, "f") == b"text!"


@pytest.mark.parametrize("act", [_remove_tree, _move], ids=["remove_tree", "move"])
def test_a_directory_is_another_version_when_a_name_in_it_changed(place: Place, act: Act) -> None:
    place.plant("d/sub/f")
    place.files.touch(where("d"), 10**18)
    seen = version(place, "d")
    write(place.files, "d/sub/f", b"deeper")
    assert version(place, "d") == seen
    write(place.files, "d/new", b"")
    with refused(ChangedError, "d"):
        act(place.files, "d", seen)
    act(place.files, "d", version(place, "d"))
    assert "d/" not in place.lines()


def test_a_full_directory_of_the_expected_version_is_still_not_removed_alone(place: Place) -> None:
    place.plant("d/f")
    with refused(ChangedError, "d"):
        _remove(place.files, "d", STALE)
    with refused(NotEmptyError, "d"):
        _remove(place.files, "d", version(place, "d"))


@pytest.mark.parametrize("path", ["missing", "missing/f", "d/missing"])
@pytest.mark.parametrize("act", [_append, *TAKING.values()], ids=["append", *TAKING])
def test_what_is_missing_is_missing_whatever_is_expected(place: Place, act: Act, path: str) -> None:
    place.plant("d/")
    with refused(MissingError, path):
        act(place.files, path, STALE)


def test_a_directory_cannot_be_appended_to_whatever_is_expected(place: Place) -> None:
    place.plant("d/")
    with refused(IsDirectoryError, "d"):
        _append(place.files, "d", version(place, "d"))


def test_the_limit_counts_for_the_expected_version_too(place: Place) -> None:
    place.plant("f = 12345")
    with refused(LimitError, "f", code="limit.file_bytes"):
        place.files.append(where("f"), b"6", limit=5, expect=version(place, "f"))


def test_a_move_of_another_version_replaces_nothing(place: Place) -> None:
    place.plant("f = source", "moved = target")
    with refused(ChangedError, "f"):
        _move(place.files, "f", STALE)
    assert place.lines() == ["f = source", "moved = target"]


def test_a_missing_file_has_no_version_even_if_its_name_is_somewhere_above(place: Place) -> None:
    place.plant("f = above")
    with refused(ChangedError, "n1/n2/f") as caught:
        place.files.write(
            where("n1/n2/f"),
            b"x",
            existing=Existing.REPLACE,
            parents=Parents.MAKE,
            expect=version(place, "f"),
        )
    assert caught.value.version is None
    assert place.lines() == ["f = above"]


@pytest.mark.parametrize("names", [("append",), ("remove",), ("move",), tuple(CHANGING)], ids="+".join)
def test_of_many_who_expect_one_version_one_has_it(place: Place, names: tuple[str, ...]) -> None:
    acts = [CHANGING[name] for name in names] * (8 // len(names) + 1)
    for _ in range(20):
        seen = write(place.files, "f", b"old").version
        outcomes = at_once([partial(_attempt, place, act, seen) for act in acts])
        assert sorted(outcomes) == ["late"] * (len(acts) - 1) + ["won"]


def _attempt(place: Place, act: Act, seen: str) -> str:
    try:
        act(place.files, "f", seen)
    except (ChangedError, MissingError):
        return "late"
    return "won"


# Content and version at once


def test_the_info_read_with_the_content_is_that_of_the_file(place: Place) -> None:
    place.plant("d/f = 0123456789", "link => d/f")
    info, content = place.files.read_with_info(where("link"), limit=None, offset=2, length=3)
    assert content == b"234"
    assert info.path == "link"
    assert info.size_bytes == 10
    assert info.version == version(place, "d/f")


def test_the_whole_and_nothing_can_be_read_with_info(place: Place) -> None:
    place.plant("f = 0123456789")
    for offset, expected in ((0, b"0123456789"), (10, b""), (11, b"")):
        info, content = place.files.read_with_info(where("f"), limit=10, offset=offset, length=None)
        assert (info.version, content) == (version(place, "f"), expected)
    with refused(LimitError, "f", code="limit.read_bytes"):
        place.files.read_with_info(where("f"), limit=9, offset=0, length=None)


# Times


def test_stat_tells_when_a_file_was_made_and_listings_do_not(place: Place) -> None:
    before = write(place.files, "f", b"one")
    place.files.touch(where("f"), 10**18)
    info = place.files.stat(where("f"), Links.FOLLOW)
    assert (info.modified_ns, info.accessed_ns) == (10**18, 10**18)
    assert info.created_ns is None or abs(info.created_ns - before.modified_ns) < 60 * 10**9
    (listed,) = place.files.list(where("."), limit=None)
    assert listed.created_ns is None
    assert listed == info, "times that were not asked for make no difference"
