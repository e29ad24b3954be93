"""Any tree makes an archive that gives the same tree; any bytes give that or an error, and leave nothing."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import CarrelError
from carrel.workspace.archive.create import archive
from carrel.workspace.archive.extract import extract
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.workspace import Workspace
from tests.paths.settings import repeatable
from tests.workspace.archives import (
    FORMATS,
    Member,
    build,
    compress,
    directory,
    file,
    hard_link,
    link,
    pax_block,
    reseal,
    tar,
)
from tests.workspace.planting import snapshot

RESOLVERS = st.sampled_from(["kernel", "walk"])
FORMS = st.sampled_from(FORMATS)
SMALL = ExtractLimits(archive_bytes=2**20, extracted_bytes=2**20, members=200)

# Names of one case, because a link beside a name that differs in case only is refused.
NAMES = st.text("abc\u00e9\u4e2d\n -.~", min_size=1, max_size=5).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.binary(max_size=700) | st.sampled_from([b"", bytes(512), b"x" * 1025])
TREES = st.dictionaries(PATHS, CONTENTS | st.none() | st.tuples(PATHS), max_size=8)
"""Content of a file, `None` for a directory, a text in a tuple for a link."""


@contextmanager
def workspaces(resolver: str) -> Iterator[tuple[Path, Workspace]]:
    """A directory and the gate to it; what is around it must stay empty."""
    with tempfile.TemporaryDirectory(prefix="carrel-any-") as top:
        place = Path(top, "ws")
        place.mkdir()
        with Workspace.open(place, confinement=resolver) as workspace:
            yield place, workspace
        assert os.listdir(top) == ["ws"]


def fill(workspace: Workspace, place: Path, entries: dict[str, bytes | tuple[str] | None]) -> None:
    """Make what *entries* say, as far as they do not stand in each other's way."""
    for path, what in entries.items():
        try:
            if isinstance(what, bytes):
                workspace.write(path, what, overwrite=False)
            elif what is None:
                workspace.mkdir(path, exist_ok=True)
            else:
                (place / path).symlink_to(what[0])
        except (CarrelError, OSError):
            continue


@given(entries=TREES, form=FORMS, resolver=RESOLVERS)
@repeatable
def test_any_tree_comes_back_the_same_but_for_what_was_left_out(
    entries: dict[str, bytes | tuple[str] | None], form: str, resolver: str
) -> None:
    with workspaces(resolver) as (place, workspace), workspaces(resolver) as (other, copy):
        fill(workspace, place, entries)
        left_out: list[str] = []
        data = b"".join(archive(workspace, ".", form, left_out=lambda item: left_out.append(item.path)))
        extract(copy, [data], format=form)
        expected = {path: what for path, what in snapshot(place).items() if path not in left_out}
        assert snapshot(other) == expected
        assert all(Path(place, path).is_symlink() for path in left_out)


# Members of any kind, in any order

TEXTS = st.sampled_from(
    [
        "a",
        "b",
        "a/b",
        "A",
        "./a",
        "a/",
        "a//b",
        "..",
        "../x",
        "/x",
        "a/../b",
        "C:x",
        "a\\b",
        "",
        "\u00e9",
        "e\u0301",
    ]
)
TAR_MEMBERS = st.one_of(
    st.builds(file, TEXTS, st.binary(max_size=20)),
    st.builds(directory, TEXTS),
    st.builds(link, TEXTS, TEXTS),
    st.builds(hard_link, TEXTS, TEXTS),
    st.builds(lambda text: pax_block(b"%d path=%s\n" % (len(text) + 9, text)), st.binary(max_size=8)),
)
ZIP_MEMBERS = st.one_of(
    st.builds(file, TEXTS, st.binary(max_size=20)), st.builds(directory, TEXTS), st.builds(link, TEXTS, TEXTS)
)


def extract_or_refuse(data: bytes, resolver: str, form: str | None = None) -> None:
    """Only our own errors come out, and with one of them nothing is made."""
    with workspaces(resolver) as (place, workspace):
        workspace.write("kept", b"kept")
        try:
            extract(workspace, [data], format=form, limits=SMALL)
        except CarrelError:
            assert snapshot(place) == {"kept": b"kept"}
        else:
            inside = snapshot(place)
            assert inside.pop("kept") == b"kept"
            links = [path for path, what in inside.items() if isinstance(what, str)]
            assert all(_leads_inside(place, path) for path in links)


def _leads_inside(place: Path, path: str) -> bool:
    try:
        os.stat(place / path)
    except OSError as error:
        if error.errno == errno.ELOOP:  # it leads nowhere, where `realpath` gives the rest of its text
            return True
    return os.path.realpath(place / path).startswith(f"{os.path.realpath(place)}")


@given(members=st.lists(TAR_MEMBERS, max_size=6), resolver=RESOLVERS)
@repeatable
def test_members_of_any_kind_in_any_order_are_extracted_or_refused_in_tar(
    members: list[Member | bytes], resolver: str
) -> None:
    extract_or_refuse(tar(*members), resolver)


@given(members=st.lists(ZIP_MEMBERS, max_size=6), resolver=RESOLVERS)
@repeatable
def test_members_of_any_kind_in_any_order_are_extracted_or_refused_in_zip(
    members: list[Member], resolver: str
) -> None:
    extract_or_refuse(build("zip", *members), resolver)


# Bytes that are no archive, or not quite

HONEST = (
    directory("d"),
    file("d/f", b"content" * 30),
    link("d/l", "f"),
    file("n" * 120, b"x"),
    file("z", b"zz"),
)


@given(data=st.binary(max_size=2000), form=st.none() | FORMS, resolver=RESOLVERS)
@repeatable
def test_random_bytes_are_refused(data: bytes, form: str | None, resolver: str) -> None:
    extract_or_refuse(data, resolver, form)


def _spoil(data: bytes, changes: list[tuple[float, bytes]]) -> bytes:
    spoiled = bytearray(data)
    for place, new in changes:
        at = int(place * len(spoiled))
        spoiled[at : at + len(new)] = new
    return bytes(spoiled)


CHANGES = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4
)


@given(form=FORMS, changes=CHANGES, resolver=RESOLVERS)
@repeatable
def test_a_spoiled_archive_is_extracted_or_refused(
    form: str, changes: list[tuple[float, bytes]], resolver: str
) -> None:
    extract_or_refuse(_spoil(build(form, *HONEST), changes), resolver)


@given(form=st.sampled_from(FORMATS[:4]), changes=CHANGES, resolver=RESOLVERS)
@repeatable
def test_a_header_with_any_fields_and_a_right_checksum_is_extracted_or_refused(
    form: str, changes: list[tuple[float, bytes]], resolver: str
) -> None:
    data = tar(*HONEST)
    header = reseal(_spoil(data[:512], changes)[:512])
    extract_or_refuse(compress(header + data[512:], form), resolver)


@given(
    form=FORMS,
    cut=st.floats(0, 1, exclude_max=True),
    resolver=RESOLVERS,
)
@repeatable
def test_a_cut_archive_is_refused(form: str, cut: float, resolver: str) -> None:
    data = build(form, *HONEST)
    shorter = data[: int(cut * len(data))]
    if form == "tar" and len(shorter) >= len(data) - 512:
        # A single zero block is an end as well.
        return
    with workspaces(resolver) as (place, workspace):
        with pytest.raises(CarrelError):
            extract(workspace, [shorter])
        assert snapshot(place) == {}
