"""An archive into a workspace: all of it or nothing, over nothing that was there unless asked to."""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import tarfile
import tempfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel import AccessMode, Limits, SandboxPolicy, Workspace
from carrel.errors import (
    AccessError,
    ArchiveError,
    ClosedError,
    DiskError,
    DiskFullError,
    ExistsError,
    LimitError,
    MissingError,
    NotDirectoryError,
)
from carrel.paths.parsed_path import StrPath
from carrel.values import FileInfo
from carrel.workspace.archive.extract import Extracted, extract
from carrel.workspace.extract_limits import ExtractLimits
from tests.workspace.archives import (
    FORMATS,
    Member,
    block,
    build,
    compress,
    file,
    hard_link,
    link,
    patched,
    pax_block,
    raw_zip,
    tar,
    zipped,
)
from tests.workspace.archives import (
    directory as directory_member,
)
from tests.workspace.planting import plant, snapshot

MIB = 2**20
MEMBERS = (directory_member("d/empty"), file("d/f", b"text"), file("g", b"more"), link("d/l", "../g"))
MADE: dict[str, bytes | str | None] = {
    "d": None,
    "d/empty": None,
    "d/f": b"text",
    "g": b"more",
    "d/l": "../g",
}


class MineError(Exception):
    """An error of the caller's own."""


@pytest.fixture(params=["kernel", "walk"])
def opened(request: pytest.FixtureRequest, directory: Path) -> Iterator[Workspace]:
    """The gate to `directory`, by both ways to resolve."""
    with Workspace.open(directory, confinement=request.param) as workspace:
        yield workspace


# What comes out


@pytest.mark.parametrize("form", FORMATS)
def test_members_become_files_directories_and_links(opened: Workspace, directory: Path, form: str) -> None:
    done = extract(opened, [build(form, *MEMBERS)])
    assert snapshot(directory) == MADE
    assert done == Extracted(files=2, directories=2, links=1, size_bytes=8)


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_is_told_by_its_first_bytes_or_by_the_caller(
    workspace: Workspace, directory: Path, form: str
) -> None:
    data = build(form, *MEMBERS)
    extract(workspace, [data], "found")
    extract(workspace, [data], "told", format=form)
    assert snapshot(directory / "found") == snapshot(directory / "told") == MADE
    for other in FORMATS:
        if other != form:
            with pytest.raises(ArchiveError):
                extract(workspace, [data], "wrong", format=other)
    assert not workspace.exists("wrong")
    with pytest.raises(ValueError, match="rar"):
        extract(workspace, [data], format="rar")


@pytest.mark.parametrize("form", FORMATS)
def test_an_archive_of_nothing_makes_nothing(workspace: Workspace, directory: Path, form: str) -> None:
    assert extract(workspace, [build(form)]) == Extracted(files=0, directories=0, links=0, size_bytes=0)
    assert snapshot(directory) == {}


def test_the_source_may_come_in_any_pieces(workspace: Workspace, directory: Path) -> None:
    data = build("tar.gz", *MEMBERS)
    extract(workspace, io.BytesIO(data), "one")
    extract(workspace, (data[at : at + 1] for at in range(len(data))), "two")
    extract(workspace, [b"", data, b""], "three")
    assert all(snapshot(directory / place) == MADE for place in ("one", "two", "three"))


def test_a_source_that_fails_makes_nothing_and_its_own_error_comes_out(
    workspace: Workspace, directory: Path
) -> None:
    def failing() -> Iterator[bytes]:
        yield build("tar", *MEMBERS)
        raise MineError

    with pytest.raises(MineError):
        extract(workspace, failing())
    with pytest.raises(TypeError):
        extract(workspace, io.StringIO("text"))  # type: ignore[arg-type]  # that is the point
    assert snapshot(directory) == {}


def test_the_bytes_of_an_archive_are_a_source_too(workspace: Workspace, directory: Path) -> None:
    extract(workspace, build("tar", *MEMBERS))
    assert snapshot(directory) == MADE


def test_what_other_programs_write_is_read(workspace: Workspace, directory: Path) -> None:
    name = "long/" + "n" * 200
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=form) as made:
            for path in ("./", "./d/", "./d/f", "\u00fc", *([] if form == tarfile.USTAR_FORMAT else [name])):
                info = tarfile.TarInfo(path)
                info.type = tarfile.DIRTYPE if path.endswith("/") else tarfile.REGTYPE
                made.addfile(info)
        extract(workspace, [out.getvalue()], f"to{form}")
        assert set(snapshot(directory / f"to{form}")) >= {"d", "d/f", "\u00fc"}
    assert workspace.exists(f"to{tarfile.GNU_FORMAT}/{name}")
    assert workspace.exists(f"to{tarfile.PAX_FORMAT}/{name}")


def test_an_old_directory_a_comment_for_all_and_a_label_are_read(
    workspace: Workspace, directory: Path
) -> None:
    data = tar(
        pax_block(b"16 comment=abcd\n", tarfile.XGLTYPE),
        block("label", type=b"V"),
        block("old/", type=tarfile.AREGTYPE),
        pax_block(b"10 size=2\n"),
        block("old/f", b"in", type=tarfile.CONTTYPE, size=0),
        directory_member("old"),
    )
    assert extract(workspace, [data]) == Extracted(
        files=1, directories=1, links=0, size_bytes=2, skipped=("label",)
    )
    assert snapshot(directory) == {"old": None, "old/f": b"in"}


def test_padding_behind_the_end_is_no_content(workspace: Workspace) -> None:
    assert extract(workspace, [tar(file("f")) + bytes(20 * 512)]).files == 1
    assert extract(workspace, [tar(file("g"))[:-512]]).files == 1


def test_several_gzip_streams_are_one_archive(workspace: Workspace) -> None:
    data = tar(*MEMBERS)
    parts = [compress(data[at : at + 700], "tar.gz") for at in range(0, len(data), 700)]
    assert extract(workspace, [b"".join(parts)]).files == 2


def test_zip_archives_of_every_spelling_are_read(workspace: Workspace, directory: Path) -> None:
    extract(workspace, [zipped(*MEMBERS, method=zipfile.ZIP_STORED)], "stored")
    assert snapshot(directory / "stored") == MADE
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.comment = b"a comment with PK\5\6 in it"
        with made.open("wide", "w", force_zip64=True) as target:
            target.write(b"wide")
        made.writestr("dos/", b"")
        made.writestr("dos/f", b"in")
    assert extract(workspace, [out.getvalue()], "wide").files == 2
    # Numbers that would fit, written wide, behind a field of another kind.
    wide = struct.pack("<2HL2H2Q", 2, 4, 0, 1, 16, 4, 4)
    narrow = raw_zip(b"f", b"data", size=4, checksum=zlib.crc32(b"data"), method=0, extra=wide)
    row = narrow.index(b"PK\1\2")
    extract(workspace, [patched(narrow, row + 20, "<2L", 2**32 - 1, 2**32 - 1)], "row")
    assert snapshot(directory / "row") == {"f": b"data"}
    old = zipped(file("caf\u00e9")).replace("caf\u00e9".encode(), b"caf\x82_")
    for flags in (old.index(b"PK\1\2") + 8, 6):
        old = old[:flags] + b"\0\0" + old[flags + 2 :]
    extract(workspace, [old], "old")
    assert snapshot(directory / "old") == {"caf\u00e9_": b"in"}


def test_files_that_are_equal_but_for_case_are_two_files(workspace: Workspace, directory: Path) -> None:
    extract(workspace, [tar(file("a/F", b"1"), file("A/f", b"2"), file("a/f", b"3"))])
    assert snapshot(directory) == {"a": None, "A": None, "a/F": b"1", "A/f": b"2", "a/f": b"3"}


def test_modes_and_times_are_those_of_new_files(workspace: Workspace, directory: Path) -> None:
    data = tar(block("f", b"in", mode=0o777, mtime=1), block("d", type=tarfile.DIRTYPE, mode=0))
    extract(workspace, [data])
    fresh = directory / "fresh"
    workspace.write("fresh", b"")
    assert (directory / "f").stat().st_mode == fresh.stat().st_mode
    assert (directory / "f").stat().st_mtime > 1
    assert stat.S_IMODE((directory / "d").stat().st_mode) & 0o700 == 0o700


# Where it goes


@pytest.mark.parametrize(
    "path", ["new", "new/", "new/deep/place", "/workspace/new", "there", "way", "there/.."]
)
def test_the_directory_is_made_if_it_is_missing(opened: Workspace, directory: Path, path: str) -> None:
    plant(directory, "there/kept", "way => there")
    done = extract(opened, [tar(file("f"))], path)
    assert opened.read(f"{path}/f") == b"in"
    assert done.directories == {"new": 1, "new/": 1, "/workspace/new": 1, "new/deep/place": 3}.get(path, 0)
    assert opened.read("there/kept") == b"in"


def test_a_place_that_is_no_directory_is_refused(opened: Workspace, directory: Path) -> None:
    plant(directory, "f", "dangling => nothing")
    before = snapshot(directory)
    for path, error in (
        ("f", NotDirectoryError),
        ("f/sub", NotDirectoryError),
        ("missing/..", MissingError),
        ("dangling", ExistsError),
    ):
        with pytest.raises(error):
            extract(opened, [tar(file("x"))], path)
        assert snapshot(directory) == before


def test_a_read_only_workspace_refuses_before_the_source_is_read(directory: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)

    def unread() -> bytes:
        raise MineError

    with Workspace.open(directory, policy=policy) as workspace, pytest.raises(AccessError):
        extract(workspace, iter(unread, b""))


def test_a_closed_workspace_refuses(workspace: Workspace) -> None:
    workspace.close()
    with pytest.raises(ClosedError):
        extract(workspace, [tar()])


# What is there already


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("taken", ["g", "d/f", "d/l", "d/l => nothing", "g => d", "g/", "d", "d/empty"])
def test_without_overwrite_nothing_may_be_there(
    opened: Workspace, directory: Path, form: str, taken: str
) -> None:
    plant(directory, taken)
    before = snapshot(directory)
    with pytest.raises(ExistsError, match=r"already exists: a (file|link|directory) is there"):
        extract(opened, [build(form, *MEMBERS)])
    assert snapshot(directory) == before


def test_directories_that_are_there_are_filled(opened: Workspace, directory: Path) -> None:
    plant(directory, "d/empty/kept", "d/other")
    done = extract(opened, [tar(*MEMBERS)])
    assert done.directories == 0
    assert snapshot(directory) == {**MADE, "d/empty/kept": b"in", "d/other": b"in"}


@pytest.mark.parametrize("form", FORMATS)
def test_with_overwrite_files_replace_files_and_links_links(
    opened: Workspace, directory: Path, form: str
) -> None:
    plant(directory, "d/f = old", "d/l => f", "d/kept")
    (directory / "d" / "f").chmod(0o600)
    done = extract(opened, [build(form, *MEMBERS)], overwrite=True)
    assert (done.files, done.directories, done.links) == (2, 1, 1)
    assert snapshot(directory) == {**MADE, "d/kept": b"in"}
    assert stat.S_IMODE((directory / "d" / "f").stat().st_mode) == 0o600


@pytest.mark.parametrize("taken", ["g/", "g => d", "d", "d => other", "d/l", "d/l/", "d/empty", "d/f/"])
def test_with_overwrite_nothing_of_another_kind_may_be_there(
    opened: Workspace, directory: Path, taken: str
) -> None:
    plant(directory, "other/", taken)
    before = snapshot(directory)
    with pytest.raises(ExistsError):
        extract(opened, [tar(*MEMBERS)], overwrite=True)
    assert snapshot(directory) == before


def test_hard_links_replace_files_too(workspace: Workspace, directory: Path) -> None:
    plant(directory, "h = old")
    extract(workspace, [tar(file("f"), hard_link("h", "f"))], overwrite=True)
    assert snapshot(directory) == {"f": b"in", "h": b"in"}


# Room


def recorded_room(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What is asked of the quota from now on, in bytes and entries."""
    asked: list[tuple[int, int]] = []

    def require_room(*, more_bytes: int, more_entries: int) -> None:
        asked.append((more_bytes, more_entries))

    monkeypatch.setattr(workspace.gate, "require_room", require_room)
    return asked


@pytest.mark.parametrize("form", FORMATS)
def test_the_quota_is_asked_once_for_all_that_is_new(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """d, d/empty, d/f, g and d/l, with the two directories above them."""
    asked = recorded_room(workspace, monkeypatch)
    extract(workspace, build(form, *MEMBERS), "new/place")
    assert asked == [(len(b"text" + b"more"), 7)]
    assert workspace.usage().entries == 7


def test_what_is_replaced_makes_room_unless_it_has_another_name(
    workspace: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(directory, "d/f = 0123456789", "d/l => f", "g = twice")
    os.link(directory / "g", directory / "other")
    asked = recorded_room(workspace, monkeypatch)
    members = tar(*MEMBERS, hard_link("h", "g"))
    extract(workspace, members, overwrite=True)
    assert asked == [(len(b"text" + b"more" + b"more") - 10, 2)]


def test_what_does_not_fit_is_refused_before_anything_is_made(
    workspace: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require_room(*, more_bytes: int, more_entries: int) -> None:
        raise FailingWorkspace.error

    plant(directory, "g = old")
    monkeypatch.setattr(workspace.gate, "require_room", require_room)
    with pytest.raises(LimitError):
        extract(workspace, tar(*MEMBERS), overwrite=True)
    assert snapshot(directory) == {"g": b"old"}
    assert list(workspace.changes()) == []


# What an error leaves


class FailingWorkspace(Workspace):
    """Fails at one file, as a quota or a full disk would."""

    fails_at = "fails"
    error: BaseException = LimitError("disk_bytes", limit=1, asked=2, message="Workspace quota exceeded")

    def write_chunks(self, path: StrPath, chunks: Iterable[bytes], **options: Any) -> FileInfo:
        if str(path).endswith(self.fails_at):
            raise self.error
        return super().write_chunks(path, chunks, **options)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("path", [".", "there", "new/place"])
@pytest.mark.parametrize("error", [FailingWorkspace.error, KeyboardInterrupt()], ids=["quota", "interrupt"])
def test_a_failure_midway_takes_everything_back(
    directory: Path, form: str, path: str, error: BaseException
) -> None:
    plant(directory, "there/d/kept", "kept")
    before = snapshot(directory)
    with FailingWorkspace.open(directory) as workspace:
        assert isinstance(workspace, FailingWorkspace)
        workspace.error = error
        with pytest.raises(type(error)):
            extract(workspace, [build(form, *MEMBERS, file("e/f/fails"), file("z"))], path)
    assert snapshot(directory) == before


def test_a_failure_midway_leaves_replaced_files_replaced(directory: Path) -> None:
    plant(directory, "g = old", "kept")
    with FailingWorkspace.open(directory) as workspace, pytest.raises(LimitError):
        extract(workspace, [tar(*MEMBERS, file("fails"))], overwrite=True)
    assert snapshot(directory) == {"g": b"more", "kept": b"in"}


def test_what_somebody_else_put_there_meanwhile_stays(directory: Path) -> None:
    class Busy(FailingWorkspace):
        """Somebody else writes into what the extraction made."""

        def write_chunks(self, path: StrPath, chunks: Iterable[bytes], **options: Any) -> FileInfo:
            plant(directory, "d/theirs")
            return super().write_chunks(path, chunks, **options)

    with Busy.open(directory) as workspace, pytest.raises(LimitError):
        extract(workspace, [tar(*MEMBERS, file("fails"))])
    assert snapshot(directory) == {"d": None, "d/theirs": b"in"}


def test_a_name_that_somebody_takes_meanwhile_is_not_replaced(directory: Path) -> None:
    class Busy(Workspace):
        """Somebody else makes the file a moment before."""

        def write_chunks(self, path: StrPath, chunks: Iterable[bytes], **options: Any) -> FileInfo:
            plant(directory, f"{path} = theirs")
            return super().write_chunks(path, chunks, **options)

    for overwrite in (False, True):
        with Busy.open(directory) as workspace, pytest.raises(ExistsError):
            extract(workspace, [tar(file("first"))], overwrite=overwrite)
        assert snapshot(directory) == {"first": b"theirs"}
        (directory / "first").unlink()


def test_a_host_without_room_for_the_archive_is_told_without_its_paths(
    workspace: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(directory / "missing"))
    with pytest.raises(DiskError) as caught:
        extract(workspace, [tar(*MEMBERS)])
    assert str(directory) not in repr(caught.value)
    assert caught.value.__context__ is None
    monkeypatch.undo()

    def full(fd: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "full", "/secret/place")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFullError) as refused:
        extract(workspace, [tar(*MEMBERS)])
    assert refused.value.__context__ is None
    monkeypatch.undo()
    assert snapshot(directory) == {}


# Limits and the record


def test_limits_check_themselves() -> None:
    for wrong in (-1, 1.5, "1", True):
        with pytest.raises(ValueError, match="members must be a whole number"):
            ExtractLimits(members=wrong)  # type: ignore[arg-type]  # that is the point


def test_no_ceiling_means_none(directory: Path) -> None:
    free = ExtractLimits(
        archive_bytes=None, extracted_bytes=None, members=None, header_bytes=None, ratio=None
    )
    with Workspace.open(directory, limits=Limits(file_bytes=None, depth=None)) as workspace:
        data = compress(tar(file("/".join(["d"] * 100)), file("zeros", bytes(20 * MIB))), "tar.bz2")
        assert len(data) * 1000 < 20 * MIB
        assert extract(workspace, [data], limits=free).size_bytes == 20 * MIB + 2


def test_a_small_file_of_zeros_is_no_bomb(workspace: Workspace) -> None:
    for form in FORMATS:
        data = build(form, file("zeros", bytes(15 * MIB)))
        assert extract(workspace, [data], form).size_bytes == 15 * MIB


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (ExtractLimits(archive_bytes=100), "limit.archive_bytes"),
        (ExtractLimits(extracted_bytes=100), "limit.extracted_bytes"),
        (ExtractLimits(members=1), "limit.archive_members"),
        (ExtractLimits(header_bytes=3), "limit.archive_headers"),
        (ExtractLimits(ratio=2), "limit.archive_ratio"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_every_ceiling_has_its_code(
    workspace: Workspace, directory: Path, form: str, limits: ExtractLimits, code: str
) -> None:
    size = 40 * MIB if code == "limit.archive_ratio" else MIB
    data = build(form, file("d/zeros", bytes(size)), file("f", os.urandom(100)))
    if form == "tar" and code == "limit.archive_ratio":
        data = tar(file("z", bytes(MIB)), *(hard_link(f"h{number}", "z") for number in range(40)))
    with pytest.raises(LimitError) as caught:
        extract(workspace, [data], limits=limits)
    assert caught.value.code == code
    assert snapshot(directory) == {}


def test_every_member_is_recorded(workspace: Workspace) -> None:
    extract(workspace, [tar(*MEMBERS)], "in")
    recorded = [(event.operation, event.path, event.other_path) for event in workspace.changes()]
    assert recorded == [
        ("mkdir", "in", None),
        ("mkdir", "in/d", None),
        ("mkdir", "in/d/empty", None),
        ("write", "in/d/f", None),
        ("write", "in/g", None),
        ("link", "in/d/l", "../g"),
    ]


@pytest.mark.parametrize("form", ["tar", "tar.gz", "zip"])
def test_a_large_archive_takes_little_memory(workspace: Workspace, form: str) -> None:
    data = build(form, *(Member(f"d/{number}", os.urandom(MIB)) for number in range(16)))
    pieces = [data[at : at + 2**16] for at in range(0, len(data), 2**16)]
    tracemalloc.start()
    try:
        assert extract(workspace, pieces).files == 16
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
