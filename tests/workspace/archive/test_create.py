"""A workspace as an archive: whole, sorted, the same bytes every time, in little memory."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel import Limits, PathRule, SandboxPolicy, Workspace
from carrel.errors import (
    AccessError,
    CarrelError,
    ChangedError,
    ClosedError,
    EscapeError,
    HostDeniedError,
    IsDirectoryError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotRegularError,
    PathError,
)
from carrel.fs.api import Links
from carrel.fs.memory.files import MemoryFiles
from carrel.fs.memory.tree import MemoryReader
from carrel.paths.parsed_path import ParsedPath, parse
from carrel.values import FileInfo
from carrel.workspace.archive.create import ArchiveFormat, LeftOut, archive
from carrel.workspace.archive.extract import extract
from tests.workspace.archives import FORMATS, TAR_FORMATS
from tests.workspace.planting import plant, snapshot

MIB = 2**20
PLANTED = ("a/f = text", "a/b/empty/", "link => a/f", "a/up => ../z", "z = last", "none = ", "x/dir => ../a")


@pytest.fixture(params=["kernel", "walk"])
def opened(request: pytest.FixtureRequest, directory: Path) -> Iterator[Workspace]:
    """The gate to `directory`, by both ways to resolve."""
    with Workspace.open(directory, confinement=request.param) as workspace:
        yield workspace


def made(workspace: Workspace, path: str = ".", form: str = "tar") -> tuple[bytes, list[LeftOut]]:
    """The whole archive, and what is not in it."""
    left_out: list[LeftOut] = []
    return b"".join(archive(workspace, path, form, left_out=left_out.append)), left_out


def tar_names(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as read:
        return read.getnames()


# Round trips


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_archived_comes_back_the_same(
    opened: Workspace, directory: Path, tmp_path: Path, form: str
) -> None:
    plant(directory, *PLANTED, "\u00fc/\u00f1 = umlaut", "line\nbreak", " space ", "-dash", "~", "n" * 255)
    opened.write("big", os.urandom(MIB + 2**16 + 5))
    data, left_out = made(opened, form=form)
    assert left_out == []
    other = tmp_path / "other"
    other.mkdir()
    with Workspace.open(other, confinement=opened.confinement) as copy:
        done = extract(copy, io.BytesIO(data))
        assert snapshot(other) == snapshot(directory)
        assert (done.files, done.directories, done.links) == (10, 5, 3)
        assert done.size_bytes == copy.usage().disk_bytes
        assert made(copy, form=form)[1] == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_workspace_in_memory_can_be_archived_and_filled(form: str) -> None:
    policy = SandboxPolicy.for_workspace("/nowhere")
    with Workspace(MemoryFiles(), policy=policy) as one, Workspace(MemoryFiles(), policy=policy) as two:
        one.write("a/f", b"text")
        one.mkdir("empty")
        extract(two, archive(one, ".", form), "in")
        assert [(info.path, info.kind) for info in two.walk()] == [
            ("in", "directory"),
            ("in/a", "directory"),
            ("in/a/f", "file"),
            ("in/empty", "directory"),
        ]
        assert two.read("in/a/f") == b"text"


@pytest.mark.parametrize("form", TAR_FORMATS)
def test_names_that_are_not_utf8_survive_in_tar(opened: Workspace, directory: Path, form: str) -> None:
    names = ["bad\udcff\udcfe", "d\udcff/f", "long\udcff" + "n" * 200]
    for name in names:
        opened.write(name, name.encode("utf-8", "surrogateescape"))
    os.symlink(b"bad\xff\xfe", os.fsencode(directory) + b"/l\xff")
    data, _ = made(opened, form=form)
    assert set(names) <= set(tar_names(data))
    extract(opened, [data], "copy")
    for name in names:
        assert opened.read(f"copy/{name}") == name.encode("utf-8", "surrogateescape")
    assert os.readlink(os.fsencode(directory) + b"/copy/l\xff") == b"bad\xff\xfe"


def test_a_name_that_is_not_utf8_is_refused_in_zip_before_anything_is_sent(opened: Workspace) -> None:
    opened.write("sub/bad\udcff", b"")
    with pytest.raises(PathError, match=r"not UTF-8.*use tar"):
        archive(opened, ".", "zip")


# What is in it


def test_entries_are_sorted_relative_and_without_owners(opened: Workspace, directory: Path) -> None:
    plant(directory, "top/b/f", "top/a/", "top/c", "top/b-", "other")
    (directory / "top" / "c").chmod(0o4751)
    os.utime(directory / "top" / "c", ns=(0, 1_234_567_890_987_654_321))
    data, _ = made(opened, "top")
    with tarfile.open(fileobj=io.BytesIO(data)) as read:
        found = {member.name: member for member in read}
    assert list(found) == ["a", "b", "b/f", "b-", "c"]
    assert {(member.uid, member.gid, member.uname, member.gname) for member in found.values()} == {
        (0, 0, "", "")
    }
    assert (found["c"].mode, found["c"].mtime) == (0o751, 1_234_567_890)
    assert found["a"].isdir()


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_tree_gives_the_same_bytes(opened: Workspace, directory: Path, form: str) -> None:
    plant(directory, *PLANTED)
    assert made(opened, form=form) == made(opened, form=form)


@pytest.mark.parametrize("form", FORMATS)
def test_one_file_is_archived_under_its_name(opened: Workspace, directory: Path, form: str) -> None:
    plant(directory, "a/f = text", "link => a/f")
    for path, name in (("a/f", "f"), ("a//./f", "f"), ("link", "link"), ("/workspace/a/f", "f")):
        data, _ = made(opened, path, form)
        extract(opened, [data], "out")
        assert opened.read(f"out/{name}") == b"text"
        assert not opened.stat(f"out/{name}", follow_symlinks=False).target
        opened.remove("out", recursive=True)


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_directory_is_an_empty_archive(opened: Workspace, form: str) -> None:
    data, left_out = made(opened, form=form)
    assert left_out == []
    done = extract(opened, [data], "in")
    assert (done.files, done.directories, done.links) == (0, 1, 0)


def test_a_directory_is_found_through_a_link_but_links_in_it_stay_links(
    opened: Workspace, directory: Path
) -> None:
    plant(directory, "real/f", "real/l => f", "way => real")
    assert tar_names(made(opened, "way")[0]) == ["f", "l"]


def test_times_and_sizes_that_zip_and_ustar_cannot_hold_do_not_break_them(
    opened: Workspace, directory: Path
) -> None:
    plant(directory, "old", "new")
    os.utime(directory / "old", ns=(0, -(10**9) * 10**6))
    os.utime(directory / "new", ns=(0, 10**9 * 10**10))
    for form in FORMATS:
        data, _ = made(opened, form=form)
        assert extract(opened, [data], form).files == 2
        opened.remove(form, recursive=True)


def test_others_can_read_it(opened: Workspace, directory: Path, tmp_path: Path) -> None:
    plant(directory, *PLANTED, "\u00fc = umlaut")
    programs: dict[str, list[str]] = {
        "tar": ["tar", "-xf"],
        "tar.gz": ["tar", "-xzf"],
        "zip": ["unzip", "-q"],
    }
    for form, program in programs.items():
        if shutil.which(program[0]) is None:
            continue
        place = tmp_path / form.replace(".", "-")
        place.mkdir()
        (tmp_path / f"a.{form}").write_bytes(made(opened, form=form)[0])
        subprocess.run([*program, str(tmp_path / f"a.{form}")], cwd=place, check=True, timeout=60)
        assert snapshot(place) == snapshot(directory)


def test_the_standard_library_finds_nothing_wrong_with_it(opened: Workspace, directory: Path) -> None:
    plant(directory, *PLANTED)
    with zipfile.ZipFile(io.BytesIO(made(opened, form="zip")[0])) as read:
        assert read.testzip() is None
        assert stat.S_ISLNK(read.getinfo("link").external_attr >> 16)
        assert read.getinfo("a/b/empty/").is_dir()


# What is left out


def test_links_that_could_lead_out_are_left_out_and_told(opened: Workspace, directory: Path) -> None:
    plant(
        directory,
        "top/d/in => ../f",
        "top/f",
        "top/up => ../other",
        "top/abs => /etc/passwd",
        "top/self => self",
        "top/a => b",
        "top/b => a",
        "top/dangling => nothing",
        "top/d/root => ..",
        "top/through => d/root/../x",
        "other",
    )
    data, left_out = made(opened, "top")
    assert tar_names(data) == ["a", "b", "d", "d/in", "d/root", "dangling", "f", "self"]
    assert [item.path for item in left_out] == ["abs", "through", "up"]
    assert {item.reason for item in left_out} == {"the link could lead out of the archive"}
    assert extract(opened, [data], "copy").links == 6


def test_what_has_no_content_is_left_out_and_told(opened: Workspace, directory: Path) -> None:
    plant(directory, "f")
    os.mkfifo(directory / "fifo")
    for form in FORMATS:
        data, left_out = made(opened, form=form)
        assert left_out == [LeftOut(path="fifo", reason="it is a FIFO, a socket or a device")]
        assert extract(opened, [data], f"to-{form}").files == 1
        opened.remove(f"to-{form}", recursive=True)


def test_names_that_would_be_refused_are_left_out_and_told(opened: Workspace, directory: Path) -> None:
    plant(directory, "f", "d/g")
    for name in ("a\\..\\..\\x", "C:x", "d\\h"):
        (directory / name).write_bytes(b"astray")
    (directory / "l").symlink_to("a\\..\\..\\x")
    (directory / "b\\d").mkdir()
    (directory / "b\\d" / "f").write_bytes(b"")
    data, left_out = made(opened)
    assert tar_names(data) == ["d", "d/g", "f"]
    assert [item.path for item in left_out] == ["C:x", "a\\..\\..\\x", "b\\d", "b\\d/f", "d\\h", "l"]


def test_nobody_has_to_listen(opened: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    assert tar_names(b"".join(archive(opened))) == []


# Refusals


def test_what_cannot_be_archived_is_told_at_once(opened: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    plant(directory, "out => ../outside")
    for path, error in (
        ("missing", MissingError),
        ("fifo", NotRegularError),
        ("..", EscapeError),
        ("out", EscapeError),
        ("/etc", PathError),
    ):
        for form in ("tar", "zip"):
            with pytest.raises(error):
                archive(opened, path, form)
    with pytest.raises(ValueError, match="rar"):
        archive(opened, ".", "rar")


def test_a_closed_workspace_cannot_be_archived(opened: Workspace) -> None:
    opened.close()
    with pytest.raises(ClosedError):
        archive(opened)


def test_a_walk_past_its_limits_is_told_before_anything_is_sent(directory: Path) -> None:
    plant(directory, "a/b/c/f", "f")
    for limits in (Limits(walk_entries=3), Limits(depth=2), Limits(list_entries=1)):
        with Workspace.open(directory, limits=limits) as workspace, pytest.raises(LimitError):
            archive(workspace)


def test_an_unreadable_directory_is_an_error_not_a_hole(unprivileged: Path) -> None:
    plant(unprivileged, "shut/f", "f")
    (unprivileged / "shut").chmod(0)
    with Workspace.open(unprivileged) as workspace, pytest.raises(HostDeniedError):
        archive(workspace)
    (unprivileged / "shut").chmod(0o700)


def test_an_unreadable_file_ends_the_archive_with_an_error(unprivileged: Path) -> None:
    plant(unprivileged, "a", "b")
    (unprivileged / "b").chmod(0)
    with Workspace.open(unprivileged) as workspace:
        for form in FORMATS:
            pieces = archive(workspace, ".", form)
            with pytest.raises(HostDeniedError):
                list(pieces)


def test_an_allowed_path_can_be_archived_and_a_read_only_one_not_filled(
    directory: Path, tmp_path: Path
) -> None:
    allowed = tmp_path / "allowed"
    plant(allowed, "d/f = text", "d/in => f", "d/out => ../../ws")
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(allowed))])
    with Workspace.open(directory, policy=policy) as workspace:
        data, left_out = made(workspace, str(allowed))
        assert tar_names(data) == ["d", "d/f", "d/in"]
        assert [item.path for item in left_out] == ["d/out"]
        with pytest.raises(AccessError):
            extract(workspace, [data], f"{allowed}/new")
        extract(workspace, [data])
    assert snapshot(directory) == {"d": None, "d/f": b"text", "d/in": "f"}


# While it changes


def changing(directory: Path, form: str, size: int, change: Callable[[Path], object]) -> bytes:
    """The archive of one file that changes after the first piece was sent."""
    (directory / "f").write_bytes(os.urandom(size))
    with Workspace.open(directory) as workspace:
        pieces = archive(workspace, ".", form)
        sent = [next(pieces)]
        change(directory / "f")
        return b"".join([*sent, *pieces])


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more" * 1000)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_grows_has_the_size_that_it_had(directory: Path, tmp_path: Path, form: str) -> None:
    data = changing(directory, form, 3 * MIB, grow)
    target = tmp_path / "target"
    target.mkdir()
    with Workspace.open(target) as workspace:
        assert extract(workspace, [data]).size_bytes == 3 * MIB


@pytest.mark.parametrize("form", TAR_FORMATS)
def test_a_large_file_that_shrinks_ends_a_tar_archive_with_an_error(directory: Path, form: str) -> None:
    with pytest.raises(ChangedError, match="'f' shrank"):
        changing(directory, form, 3 * MIB, lambda path: os.truncate(path, 0))


def test_a_file_that_shrinks_is_shorter_in_a_zip_archive(directory: Path) -> None:
    data = changing(directory, "zip", 3 * MIB, lambda path: os.truncate(path, 0))
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        assert read.testzip() is None
        assert read.getinfo("f").file_size < 3 * MIB


@pytest.mark.parametrize("form", FORMATS)
def test_what_changes_after_the_first_look_is_archived_as_it_is_then(directory: Path, form: str) -> None:
    plant(directory, "a", "b", "c = text", "d => c", "e/f")
    left_out: list[LeftOut] = []
    with Workspace.open(directory) as workspace:
        pieces = archive(workspace, ".", form, left_out=left_out.append)
        (directory / "a").unlink()
        os.truncate(directory / "c", 2)
        (directory / "d").unlink()
        (directory / "d").symlink_to("../outside")
        (directory / "b").unlink()
        os.mkfifo(directory / "b")
        plant(directory, "late => c")
        extract(workspace, [b"".join(pieces)], "to")
    assert snapshot(directory / "to") == {"c": b"te", "e": None, "e/f": b"in", "late": "c"}
    assert [item.path for item in left_out] == ["b", "d"]


class Vanishing(MemoryFiles):
    """Everything that is found is gone, or something else, when it is looked at again."""

    error: CarrelError = MissingError("gone")

    def reader(self, where: ParsedPath) -> MemoryReader:
        raise self.error

    def stat(self, where: ParsedPath, links: Links) -> FileInfo:
        if links is Links.KEEP:
            raise self.error
        return super().stat(where, links)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("error", [MissingError, IsDirectoryError, NotDirectoryError, LoopError, EscapeError])
def test_what_is_gone_meanwhile_is_left_out_and_told(form: str, error: type[CarrelError]) -> None:
    files = Vanishing()
    with Workspace(files, policy=SandboxPolicy.for_workspace("/nowhere")) as workspace:
        workspace.write("f", b"text")
        files.link(parse("l"), "f")
        files.error = error("gone")
        data, left_out = made(workspace, form=form)
        assert [item.path for item in left_out] == ["f", "l"]
        assert {item.reason for item in left_out} == {"it was removed in the meantime"}
        assert extract(workspace, [data], "to").files == 0


def test_a_name_that_is_not_utf8_and_appears_meanwhile_ends_a_zip_archive(directory: Path) -> None:
    with Workspace.open(directory) as workspace:
        pieces = archive(workspace, ".", "zip")
        workspace.write("bad\udcff", b"")
        with pytest.raises(PathError, match="not UTF-8"):
            list(pieces)


def test_an_archive_that_nobody_reads_to_its_end_leaves_nothing_open(
    workspace: Workspace, directory: Path
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for form in FORMATS:
        (directory / "f").write_bytes(os.urandom(3 * MIB))
        pieces = archive(workspace, ".", form)
        next(pieces)
        del pieces
    assert len(os.listdir("/proc/self/fd")) == before


# Memory


@pytest.mark.parametrize("form", ["tar", "tar.gz", "zip"])
def test_a_large_tree_takes_little_memory(workspace: Workspace, directory: Path, form: str) -> None:
    with (directory / "large").open("wb") as file:
        file.truncate(64 * MIB)
    for number in range(200):
        (directory / f"small{number}").write_bytes(b"x")
    tracemalloc.start()
    try:
        sent = sum(len(piece) for piece in archive(workspace, ".", form))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sent > (64 * MIB if form == "tar" else 0)
    assert peak < 8 * MIB


def test_pieces_are_neither_tiny_nor_huge(workspace: Workspace, directory: Path) -> None:
    for number in range(2000):
        (directory / f"small{number}").write_bytes(b"x")
    (directory / "large").write_bytes(bytes(3 * MIB))
    sizes = [len(piece) for piece in archive(workspace)]
    assert min(sizes[:-1]) >= 2**16
    assert max(sizes) < 2 * MIB


def test_every_format_has_its_usual_ending() -> None:
    assert list(ArchiveFormat) == ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"]
