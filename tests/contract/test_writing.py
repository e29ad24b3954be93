"""`write`, the same behind every implementation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import pytest

from carrel.errors import (
    CarrelError,
    ChangedError,
    ClosedError,
    EscapeError,
    ExistsError,
    HostDeniedError,
    IsDirectoryError,
    LoopError,
    MissingError,
)
from carrel.fs.api import Existing, Links, Parents
from carrel.values import FileKind
from tests.contract.places import Place, at_once, read, refused, where, write
from tests.contract.refusals import REFUSED, TREE
from tests.requirements import requirement


@requirement("W-01", "W-02", "W-06")
@pytest.mark.parametrize("existing", Existing)
@pytest.mark.parametrize("content", [b"", b"Hello from host", bytes(range(256)), b"x" * 300_000])
def test_a_new_file_holds_what_was_written(place: Place, content: bytes, existing: Existing) -> None:
    change = place.files.write(where("f"), (content,), existing=existing, parents=Parents.REQUIRE)
    assert read(place.files, "f") == content
    assert (change.before_bytes, change.made) == (None, ())
    assert change.info == place.files.stat(where("f"), Links.FOLLOW)
    assert (change.info.kind, change.info.size_bytes, change.info.mode, change.info.links) == (
        FileKind.FILE,
        len(content),
        0o644,
        1,
    )


def test_pieces_are_stored_in_their_order(place: Place) -> None:
    pieces = (b"one ", b"", b"two ", b"three")
    place.files.write(where("f"), iter(pieces), existing=Existing.REFUSE, parents=Parents.REQUIRE)
    assert read(place.files, "f") == b"one two three"


@requirement("W-04", "W-11")
def test_a_second_write_replaces_the_first_and_tells_both_sizes(place: Place) -> None:
    place.plant("f = old text")
    before = place.files.stat(where("f"), Links.FOLLOW)
    change = place.files.write(where("f"), (b"new",), existing=Existing.REPLACE, parents=Parents.REQUIRE)
    assert place.lines() == ["f = new"]
    assert (change.before_bytes, change.info.size_bytes) == (8, 3)
    assert change.info == place.files.stat(where("f"), Links.FOLLOW)
    assert change.info.inode != before.inode


@requirement("W-05", "W-07")
@pytest.mark.parametrize(
    "line", ["f = old", "f = ", "f/", "f => nothing", "f => d", "f => ../outside/secret"]
)
def test_nothing_is_overwritten_unless_asked(place: Place, line: str) -> None:
    place.plant("d/", line)
    before = place.lines()
    with refused(ExistsError, "f"):
        write(place.files, "f", existing=Existing.REFUSE)
    assert place.lines() == before


@requirement("W-03")
def test_missing_parents_are_made_and_told(place: Place) -> None:
    place.plant("a/")
    change = place.files.write(
        where("a/../a/b/c/f"), (b"new",), existing=Existing.REFUSE, parents=Parents.MAKE
    )
    assert place.lines() == ["a/", "a/b/", "a/b/c/", "a/b/c/f = new"]
    assert change.made == ("a/../a/b", "a/../a/b/c")
    assert change.info.path == "a/../a/b/c/f"
    assert place.files.stat(where("a/b"), Links.KEEP).mode == 0o755


@requirement("W-13")
def test_missing_parents_are_an_error_when_they_are_not_to_be_made(place: Place) -> None:
    with refused(MissingError, "a/b/f"):
        write(place.files, "a/b/f", parents=Parents.REQUIRE)
    assert place.lines() == []


@requirement("W-09", "P-05", "P-14", "P-16")
@pytest.mark.parametrize(("path", "kind"), REFUSED)
def test_a_write_that_cannot_be_changes_nothing(place: Place, path: str, kind: type[CarrelError]) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        write(place.files, path)
    assert place.lines() == before


def test_a_refused_path_is_told_before_any_data_is_taken(place: Place) -> None:
    taken: list[str] = []

    def data() -> Iterator[bytes]:
        taken.append("one")
        yield b"one"

    with refused(EscapeError, "../f"):
        place.files.write(where("../f"), data(), existing=Existing.REPLACE, parents=Parents.MAKE)
    assert taken == []


@pytest.mark.parametrize(
    ("link", "written"), [("to-f", "f"), ("to-new", "new"), ("to-new-in", "n1/n2/new"), ("d/up", "d/../f")]
)
def test_a_write_goes_through_a_link_that_stays_inside(place: Place, link: str, written: str) -> None:
    place.plant(*TREE, "d/up => ../f")
    info = write(place.files, link, b"through")
    assert info.path == written
    assert read(place.files, written) == b"through"
    assert place.files.stat(where(link), Links.KEEP).kind is FileKind.LINK


@pytest.mark.parametrize("links", [40, 41])
def test_a_write_goes_through_forty_links_and_no_more(place: Place, links: int) -> None:
    place.plant("end = old", *(f"c{count} => c{count + 1}" for count in range(links - 1)))
    place.plant(f"c{links - 1} => end")
    if links == 40:
        assert write(place.files, "c0").path == "end"
    else:
        with refused(LoopError, "c0"):
            write(place.files, "c0")
        assert read(place.files, "end") == b"old"


def test_a_name_may_hold_what_a_shell_would_trip_over(place: Place) -> None:
    odd = ["-rf", "$HOME", "`x`", "a b", "it's", "%2e%2e", "...", "a\nb", "ab:c", "世界", "*"]
    for name in odd:
        write(place.files, name, name.encode())
    assert [info.path for info in place.files.list(where("."), limit=None)] == sorted(odd)
    assert all(read(place.files, name) == name.encode() for name in odd)


def test_a_name_that_is_not_utf_8_can_be_used_as_it_is_listed(place: Place) -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    write(place.files, name, b"coffee")
    assert [info.path for info in place.files.list(where("."), limit=None)] == [name]
    assert read(place.files, name) == b"coffee"


# Modes


@pytest.mark.parametrize(("mode", "kept"), [(None, 0o644), (0o600, 0o600), (0o755, 0o755), (0o6755, 0o755)])
def test_a_new_file_gets_the_permission_bits_asked_for(place: Place, mode: int | None, kept: int) -> None:
    assert write(place.files, "f", mode=mode).mode == kept
    assert place.files.stat(where("f"), Links.FOLLOW).mode == kept


def test_a_replaced_file_keeps_its_mode(place: Place) -> None:
    write(place.files, "f", mode=0o750)
    assert write(place.files, "f", b"again", mode=0o600).mode == 0o750


@requirement("W-10")
@pytest.mark.parametrize("operation", ["write", "append", "copy"])
def test_a_read_only_file_is_neither_replaced_nor_appended_to(place: Place, operation: str) -> None:
    write(place.files, "f", b"kept", mode=0o444)
    write(place.files, "g")
    with refused(HostDeniedError, "f"):
        if operation == "write":
            write(place.files, "f", b"lost")
        elif operation == "append":
            place.files.append(where("f"), b"lost", limit=None)
        else:
            place.files.copy(where("g"), where("f"), existing=Existing.REPLACE, limit=None)
    assert read(place.files, "f") == b"kept"


# All or nothing


class SourceError(Exception):
    """What goes wrong at the caller's end."""


@requirement("W-18")
@pytest.mark.parametrize("path", ["f", "n1/n2/new", "to-new-in"])
def test_a_source_that_fails_leaves_everything_as_it_was(place: Place, path: str) -> None:
    place.plant(*TREE)
    before = place.lines()

    def data() -> Iterator[bytes]:
        yield b"half"
        raise SourceError

    with pytest.raises(SourceError):
        place.files.write(where(path), data(), existing=Existing.REPLACE, parents=Parents.MAKE)
    assert place.lines() == before


def test_the_old_content_is_there_until_the_new_one_is_complete(place: Place) -> None:
    place.plant("f = old")
    seen: list[bytes] = []

    def data() -> Iterator[bytes]:
        for piece in (b"new ", b"text"):
            seen.append(read(place.files, "f"))
            yield piece

    place.files.write(where("f"), data(), existing=Existing.REPLACE, parents=Parents.MAKE)
    assert seen == [b"old", b"old"]
    assert read(place.files, "f") == b"new text"


def test_a_new_file_has_no_name_until_it_is_complete(place: Place) -> None:
    def data() -> Iterator[bytes]:
        yield b"half"
        with refused(MissingError, "f"):
            read(place.files, "f")

    place.files.write(where("f"), data(), existing=Existing.REFUSE, parents=Parents.MAKE)
    assert place.lines() == ["f = half"]


def test_a_name_taken_while_the_data_came_is_not_overwritten(place: Place) -> None:
    def data() -> Iterator[bytes]:
        yield b"late"
        write(place.files, "f", b"early")

    with refused(ExistsError, "f"):
        place.files.write(where("f"), data(), existing=Existing.REFUSE, parents=Parents.MAKE)
    assert place.lines() == ["f = early"]


def test_a_directory_made_while_the_data_came_is_not_replaced(place: Place) -> None:
    def data() -> Iterator[bytes]:
        yield b"late"
        place.files.mkdir(where("f"), parents=Parents.REQUIRE)

    with refused(IsDirectoryError, "f"):
        place.files.write(where("f"), data(), existing=Existing.REPLACE, parents=Parents.MAKE)
    assert place.lines() == ["f/"]


@pytest.mark.parametrize("parents", Parents)
def test_a_write_into_a_directory_that_is_removed_meanwhile_makes_it_again_or_fails(
    place: Place, parents: Parents
) -> None:
    place.plant("d/e/")

    def data() -> Iterator[bytes]:
        yield b"late"
        place.files.remove_tree(where("d"))

    expected = nullcontext() if parents is Parents.MAKE else refused(MissingError, "d/e/f")
    with expected:
        place.files.write(where("d/e/f"), data(), existing=Existing.REPLACE, parents=parents)
    assert place.lines() == (["d/", "d/e/", "d/e/f = late"] if parents is Parents.MAKE else [])


def test_a_write_into_a_directory_that_is_moved_meanwhile_goes_where_it_was_asked_to(place: Place) -> None:
    place.plant("d/")

    def data() -> Iterator[bytes]:
        yield b"late"
        place.files.move(where("d"), where("e"), existing=Existing.REFUSE)

    place.files.write(where("d/f"), data(), existing=Existing.REPLACE, parents=Parents.MAKE)
    assert place.lines() == ["d/", "d/f = late", "e/"]


def test_a_write_that_is_not_in_place_when_the_place_is_closed_fails(place: Place) -> None:
    def data() -> Iterator[bytes]:
        yield b"one"
        place.files.close()
        yield b"two"

    with pytest.raises(ClosedError):
        place.files.write(where("f"), data(), existing=Existing.REPLACE, parents=Parents.MAKE)


# Expected versions


def test_the_expected_version_is_replaced(place: Place) -> None:
    version = write(place.files, "f", b"one").version
    change = place.files.write(
        where("f"), (b"two",), existing=Existing.REPLACE, parents=Parents.REQUIRE, expect=version
    )
    assert change.info.version != version
    assert read(place.files, "f") == b"two"


def test_another_version_than_the_expected_one_is_kept(place: Place) -> None:
    version = write(place.files, "f", b"one").version
    write(place.files, "f", b"two")
    with refused(ChangedError, "f"):
        place.files.write(
            where("f"), (b"three",), existing=Existing.REPLACE, parents=Parents.REQUIRE, expect=version
        )
    assert read(place.files, "f") == b"two"


@pytest.mark.parametrize("meanwhile", ["write", "append", "remove", "move", "link"])
def test_a_version_that_is_gone_when_the_data_is_complete_is_not_replaced(
    place: Place, meanwhile: str
) -> None:
    version = write(place.files, "f", b"one").version

    def data() -> Iterator[bytes]:
        yield b"late"
        if meanwhile == "write":
            write(place.files, "f", b"two")
        elif meanwhile == "append":
            place.files.append(where("f"), b" more", limit=None)
        elif meanwhile == "remove":
            place.files.remove(where("f"))
        elif meanwhile == "move":
            place.files.move(where("f"), where("g"), existing=Existing.REFUSE)
        else:
            place.files.link(where("f"), "g", existing=Existing.REPLACE)

    with refused(ChangedError, "f"):
        place.files.write(
            where("f"), data(), existing=Existing.REPLACE, parents=Parents.REQUIRE, expect=version
        )
    assert (
        place.lines()
        == {
            "write": ["f = two"],
            "append": ["f = one more"],
            "remove": [],
            "move": ["g = one"],
            "link": ["f => g"],
        }[meanwhile]
    )


def test_of_many_who_expect_one_version_one_replaces_it(place: Place) -> None:
    version = write(place.files, "f", b"old").version
    outcomes = at_once([partial(_replace, place, version, number) for number in range(8)])
    assert sorted(outcomes) == ["changed"] * 7 + ["replaced"]


def _replace(place: Place, version: str, number: int) -> str:
    try:
        place.files.write(
            where("f"), (bytes([number]),), existing=Existing.REPLACE, parents=Parents.REQUIRE, expect=version
        )
    except ChangedError:
        return "changed"
    return "replaced"


def test_a_missing_file_is_no_expected_version_and_nothing_is_made_for_it(place: Place) -> None:
    with refused(ChangedError, "n1/n2/f"):
        place.files.write(
            where("n1/n2/f"), (b"x",), existing=Existing.REPLACE, parents=Parents.MAKE, expect="1-1-1"
        )
    assert place.lines() == []
