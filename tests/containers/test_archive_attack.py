"""What programs may leave in a container whose files the engine's archives work on."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.containers.files import ContainerFiles
from carrel.containers.fs import archive, archive_primitives
from carrel.containers.fs.archive_primitives import ArchivePrimitives
from carrel.containers.fs.primitives import ConcurrentChangeError, FoundEntry
from carrel.errors import BusyError, CarrelError, ContainerError, EscapeError, NotRegularError, PathError
from carrel.fs.api import Existing, Links
from carrel.values import MIB, Usage
from carrel.workspace.workspace import Workspace
from tests.containers.test_files_race import swapping
from tests.containers.worlds import ContainerArena, on_container
from tests.contract.places import read, where, write
from tests.contract.slots import Slot, take_slot
from tests.race.fight import fight
from tests.race.operations import OPERATIONS, Operation

pytestmark = pytest.mark.attack

NOT_UTF_8 = os.fsdecode(b"z\xff")


@pytest.fixture
def slot() -> Slot:
    """A directory in a container that has no shell and does not run."""
    return take_slot("archive")


@pytest.fixture
def files(slot: Slot) -> Iterator[ContainerFiles]:
    opened = slot.open()
    yield opened
    opened.close()


@pytest.fixture
def inside(slot: Slot) -> Path:
    """The same directory as the host has it."""
    return slot.base / "ws"


def operations(files: ContainerFiles, path: str) -> dict[str, Callable[[], object]]:
    """Everything that reads or changes what is at *path*."""
    return {
        "read": lambda: read(files, path),
        "reader": lambda: list(files.reader(where(path)).chunks(MIB)),
        "write": lambda: write(files, path, b"mine", existing=Existing.REPLACE),
        "append": lambda: files.append(where(path), b"mine", limit=None),
        "touch": lambda: files.touch(where(path), 10**18),
        "copy": lambda: files.copy(where(path), where("copied"), existing=Existing.REPLACE, limit=None),
    }


# Links, other names and what is no file


def test_links_lead_no_operation_out(files: ContainerFiles, inside: Path, slot: Slot) -> None:
    secret = slot.base / "secret"
    secret.write_text("host")
    (inside / "d").mkdir()
    links = {
        "abs": f"{slot.outer}/secret",
        "up": "../secret",
        "winding": "d/../../secret",
        "far": "/proc/1/root",
    }
    for name, text in links.items():
        (inside / name).symlink_to(text)
    (inside / "parent").symlink_to("..")
    for path in (*links, "parent/secret"):
        for name, operation in operations(files, path).items():
            with pytest.raises(EscapeError):
                print(name, path, operation())
    assert secret.read_text() == "host"
    assert sorted(os.listdir(slot.base)) == ["secret", "ws"]


def test_what_is_no_file_is_neither_read_nor_replaced(files: ContainerFiles, inside: Path) -> None:
    os.mkfifo(inside / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(inside / "socket"))
    if os.geteuid() == 0:
        os.mknod(inside / "device", 0o20666, os.makedev(1, 5))
    for path in os.listdir(inside):
        for name, operation in operations(files, path).items():
            with pytest.raises(NotRegularError):
                print(name, path, operation())


def test_a_file_with_two_names_is_read_by_either_and_changed_under_one(
    files: ContainerFiles, inside: Path
) -> None:
    """The engine sends the content with the first name, and for the others where that is."""
    (inside / "a").mkdir()
    (inside / "a" / "f").write_bytes(b"text")
    os.link(inside / "a" / "f", inside / "f")
    os.link(inside / "a" / "f", inside / NOT_UTF_8)
    for path in ("a/f", "f", NOT_UTF_8):
        assert read(files, path) == b"text"
    write(files, NOT_UTF_8, b"other", existing=Existing.REPLACE)
    assert (read(files, "a/f"), read(files, NOT_UTF_8)) == (b"text", b"other")


@pytest.mark.parametrize(
    "name", [" .. ", "...", "%2e%2e", ".wh.f", ".wh..wh..opq", "?path=x&y", "-rf", "a\n\x1b[31m\x7f"]
)
def test_a_name_means_nothing_to_the_engine(files: ContainerFiles, inside: Path, name: str) -> None:
    (inside / "f").write_bytes(b"kept")
    (inside / name).write_bytes(b"theirs")
    assert read(files, name) == b"theirs"
    write(files, name, b"mine", existing=Existing.REPLACE)
    assert [info.path for info in files.list(where("."), limit=None)] == sorted([name, "f"])
    assert ((inside / name).read_bytes(), (inside / "f").read_bytes()) == (b"mine", b"kept")


def test_a_link_to_a_name_that_cannot_be_says_so(files: ContainerFiles, inside: Path) -> None:
    (inside / "long").symlink_to("x" * 4000)
    assert files.stat(where("long"), Links.KEEP).target == "x" * 4000
    with pytest.raises(PathError, match="too long"):
        read(files, "long")


def test_a_tree_deeper_than_any_path_is_not_counted_as_less(files: ContainerFiles, inside: Path) -> None:
    held = os.open(inside, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=held)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = deeper
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=held))
    os.close(held)
    with pytest.raises(CarrelError):
        files.measure()


# Holes


def test_a_hole_is_not_copied_to_the_host_nor_waited_for(
    files: ContainerFiles, inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs a program nothing, and the engine sends every byte of it."""
    monkeypatch.setattr(archive, "MAX_RESPONSE_BYTES", 4 * MIB)
    (inside / "d").mkdir()
    (inside / "d" / "small").write_bytes(b"text")
    huge = inside / "d" / "huge"
    huge.touch()
    os.truncate(huge, 64 * MIB)
    window: dict[str, Callable[[], object]] = {
        "the end": lambda: files.read(where("d/huge"), limit=None, offset=64 * MIB - 1),
        "list": lambda: files.list(where("d"), limit=None),
        "measure": files.measure,
    }
    for name, operation in (window | operations(files, "d/huge")).items():
        if name != "write":
            with pytest.raises(ContainerError) as raised:
                print(name, operation())
            assert raised.value.code == "container.too_large", name
    assert huge.stat().st_blocks == 0
    assert not _primitives(files)._spools
    assert files.read(where("d/huge"), limit=None, length=10) == bytes(10)
    assert read(files, "d/small") == b"text"
    write(files, "d/huge", b"mine", existing=Existing.REPLACE)
    assert files.measure() == Usage(disk_bytes=8, entries=3)


def test_entries_beneath_a_directory_are_not_kept_in_memory(files: ContainerFiles, inside: Path) -> None:
    (inside / "d").mkdir()
    for number in range(500):
        (inside / "d" / str(number)).touch()
    with _primitives(files)._archive._tar(()) as tar:
        assert len(list(archive.members(tar))) == 502
        assert len(tar.members) <= 1  # type: ignore[attr-defined]  # typeshed lacks it


def _primitives(files: ContainerFiles) -> ArchivePrimitives:
    steps = files._primitives
    assert isinstance(steps, ArchivePrimitives)
    return steps


# Programs that change the files meanwhile


@pytest.mark.parametrize("swapped", ["d", "d/f"])
def test_what_was_swapped_after_it_was_looked_at_is_left_alone(
    files: ContainerFiles, inside: Path, slot: Slot, swapped: str
) -> None:
    for top in (inside / "d", slot.base / "d"):
        top.mkdir()
        (top / "f").write_text("text")
    steps, parts = _primitives(files), (b"d", b"f")
    found = steps.stat(parts, Links.KEEP)
    assert isinstance(found, FoundEntry)
    (inside / swapped).rename(inside / "away")
    (inside / swapped).symlink_to(f"{slot.outer}/{swapped}")
    with pytest.raises(ConcurrentChangeError):
        steps.append(parts, found.stat, b"mine")
    with pytest.raises(ConcurrentChangeError):
        steps.touch(parts, found.stat, 10**18)
    if swapped == "d":
        with pytest.raises(BlockingIOError):
            steps.store(parts, b"mine", None, Existing.REPLACE)
    outside = slot.base / "d" / "f"
    assert (outside.read_text(), outside.stat().st_mtime_ns == 10**18) == ("text", False)


class ArchiveArena(ContainerArena):
    """An arena that the engine's archives work on, in a container that runs."""

    def _open(self, confinement: str, *, session: bool) -> Workspace:
        (self.top / "ws").mkdir(parents=True)
        root = f"{self.slot.outer}/arena/ws"
        container = self.slot.container
        return on_container(ContainerFiles(container, root, primitives=ArchivePrimitives(container, root)))


@pytest.mark.race
@pytest.mark.parametrize(
    "operation",
    [row for row in OPERATIONS if row.name in ("read", "write", "append")],
    ids=lambda operation: operation.name,
)
def test_a_program_never_leads_the_engine_outside(operation: Operation) -> None:
    arena = ArchiveArena("debian")
    with swapping(arena, operation) as counter:
        fight(arena, operation, (10, 5), lambda: int.from_bytes(counter.read_bytes()[:8], "little"), 20)
    arena.require_untouched()
    arena.close()


def test_a_container_that_somebody_else_froze_is_not_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on when they let it, in the middle of a step."""
    monkeypatch.setattr(archive_primitives, "PAUSE_SECONDS", 0)
    slot = take_slot("container")
    ours, theirs = (ArchivePrimitives(slot.container, slot.root) for _ in range(2))
    files = ContainerFiles(slot.container, slot.root, primitives=ours)
    with theirs._paused():
        with pytest.raises(BusyError):
            write(files, "f", b"text")
        assert slot.container.state().paused
    write(files, "f", b"text")
    assert not slot.container.state().paused


def test_what_was_seen_while_a_container_was_let_go_on_is_not_told() -> None:
    slot = take_slot("container")
    steps = ArchivePrimitives(slot.container, slot.root)
    (slot.base / "ws" / "f").write_text("text")
    with pytest.raises(BlockingIOError):
        _let_go_on(slot, steps)
    assert steps.stat((b"f",), Links.KEEP)


def _let_go_on(slot: Slot, steps: ArchivePrimitives) -> None:
    """Look at a file, as part of a step in whose middle somebody lets the container go on."""
    with steps._paused():
        assert steps.stat((b"f",), Links.KEEP)
        slot.container.unpause()
