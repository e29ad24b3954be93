"""`ContainerFiles` where it is not like the others: what works in the container, images, streams, quota."""

from __future__ import annotations

import gc
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from carrel.containers.container import Container
from carrel.containers.files import ContainerFiles
from carrel.containers.fs.archive_primitives import ArchivePrimitives
from carrel.containers.fs.file_agent import FileAgent
from carrel.containers.fs.shell_primitives import ShellPrimitives
from carrel.containers.spec import Volume
from carrel.containers.stream import ExecStream
from carrel.errors import BusyError, ContainerError, DiskFullError, EscapeError, NotRegularError, QuotaError
from carrel.fs.api import Existing, Links, Parents
from carrel.policy.rules import SandboxPolicy
from carrel.testing import tree
from carrel.values import MIB, Limits
from carrel.workspace.workspace import Workspace
from tests.containers.conftest import Make
from tests.contract.places import read, where, write
from tests.contract.slots import Slot, take_slot
from tests.contract.test_workspace import LIMITS, STEPS, _outcome
from tests.engines import STATIC
from tests.requirements import requirement
from tests.workspace.planting import reserve

KINDS = ("container", "debian")
"""With busybox and its ash, and with coreutils and dash."""
SECONDS = 30.0


@pytest.fixture(params=KINDS)
def slot(request: pytest.FixtureRequest) -> Slot:
    """A directory in a container with a shell."""
    return take_slot(request.param)


@pytest.fixture
def files(slot: Slot) -> Iterator[ContainerFiles]:
    opened = slot.open()
    yield opened
    opened.close()


@pytest.fixture
def own(slot: Slot) -> Iterator[ContainerFiles]:
    """Files with an agent of their own and a short timeout."""
    opened = ContainerFiles(slot.container, slot.root, timeout_seconds=2)
    yield opened
    opened.close()


def run(container: Container, *argv: str) -> None:
    """Run a program in the container, which must succeed."""
    stream = container.exec(argv)
    assert stream.wait(time.monotonic() + SECONDS) == 0
    stream.close()


def pid_of(files: ContainerFiles) -> str:
    """The process that works in the container."""
    primitives = files._primitives
    assert isinstance(primitives, ShellPrimitives)
    return primitives._agent._pid.decode()


# Both images


def test_blocks_that_are_reserved_beyond_a_size_count(files: ContainerFiles, slot: Slot) -> None:
    policy = SandboxPolicy.for_workspace("/workspace")
    reserve(slot.base / "ws" / "reserved", 2**24)
    with Workspace(files, policy=policy, limits=LIMITS) as workspace:
        assert workspace.usage().disk_bytes >= 2**24
        workspace.remove("reserved")
        assert workspace.usage().disk_bytes == 0


def test_a_whole_life_of_a_workspace_is_the_same_as_on_disk(files: ContainerFiles, tmp_path: Path) -> None:
    policy = SandboxPolicy.for_workspace("/workspace")
    with (
        Workspace.open(tree(tmp_path / "ws"), limits=LIMITS) as on_disk,
        Workspace(files, policy=policy, limits=LIMITS) as in_container,
    ):
        for number, step in enumerate(STEPS):
            assert _outcome(step, in_container) == _outcome(step, on_disk), number


def test_a_name_with_a_backslash_is_listed_and_counted_and_goes_with_its_directory(
    files: ContainerFiles, slot: Slot
) -> None:
    directory = slot.base / "ws" / "d"
    directory.mkdir()
    (directory / "a\\b").write_text("12345")
    with Workspace(files, policy=SandboxPolicy.for_workspace("/workspace"), limits=LIMITS) as workspace:
        assert [info.path for info in workspace.walk()] == ["d", "d/a\\b"]
        assert workspace.usage().disk_bytes == 5
        with pytest.raises(FileNotFoundError):
            workspace.read("d/a\\b")
        workspace.remove("d", recursive=True)
        assert workspace.usage().entries == 0


def test_every_byte_can_be_in_a_name_and_in_a_content(files: ContainerFiles, slot: Slot) -> None:
    names = [bytes([byte]) + b"x" + bytes([byte]) for byte in range(1, 256) if byte not in b"/\\"]
    names += [b"-rf", b"a\nb\n", b"\xff" * 255, b"$(id)", b"'\"`;|&", b" ", b"=", b"%41", b"..."]
    for name in names:
        write(files, os.fsdecode(name), name)
    assert sorted(os.listdir(os.fsencode(slot.base / "ws"))) == sorted(names)
    assert [info.path for info in files.list(where("."), limit=None)] == sorted(map(os.fsdecode, names))
    for name in names[::7]:
        assert read(files, os.fsdecode(name)) == name
        files.move(where(os.fsdecode(name)), where("d"), existing=Existing.REFUSE)
        files.remove(where("d"))


def test_a_directory_of_any_name_is_walked_through(files: ContainerFiles) -> None:
    path = "/".join(("-rf", "a\nb\n", "\udcff", " ", "it's", "$HOME", "f"))
    write(files, path, b"deep")
    assert read(files, path) == b"deep"
    assert [info.path for info in files.walk(where("."), Limits())][-1] == path


def test_what_the_programs_of_the_container_make_leads_nowhere(files: ContainerFiles, slot: Slot) -> None:
    script = """cd "$0" && ln -s /etc etc && ln -s /etc/passwd passwd && ln -s ../../../etc up &&
        mkfifo fifo && ln -s /proc/self/root root && mkdir d && ln -s .. d/up"""
    run(slot.container, "sh", "-c", script, slot.root)
    for path in ("etc/passwd", "passwd", "up/passwd", "root/etc/passwd", "d/up/../x", "../../../etc/passwd"):
        with pytest.raises(EscapeError):
            read(files, path)
        with pytest.raises(EscapeError):
            write(files, path)
        with pytest.raises(EscapeError):
            files.append(where(path), b"x", limit=None)
    with pytest.raises(NotRegularError):
        read(files, "fifo")
    with pytest.raises(NotRegularError):
        files.append(where("fifo"), b"x", limit=None)


# What works in the container


def test_it_is_started_again_when_it_was_killed(own: ContainerFiles, slot: Slot) -> None:
    write(own, "f", b"before")
    run(slot.container, "sh", "-c", 'kill -9 "$0"', pid_of(own))
    assert read(own, "f") == b"before"
    write(own, "f", b"after")
    assert read(own, "f") == b"after"


def test_what_does_not_answer_is_busy_and_then_replaced(own: ContainerFiles, slot: Slot) -> None:
    write(own, "f", b"text")
    stopped = pid_of(own)
    run(slot.container, "sh", "-c", 'kill -STOP "$0"', stopped)
    with pytest.raises(BusyError):
        read(own, "f")
    assert read(own, "f") == b"text"
    assert pid_of(own) != stopped
    run(slot.container, "sh", "-c", '[ ! -d "/proc/$0" ] || grep -q "State:.Z" "/proc/$0/status"', stopped)


def test_it_ends_with_its_files_and_leaves_no_connection(slot: Slot) -> None:
    slot.open().list(where("."), limit=None)
    before = _descriptors()
    opened = ContainerFiles(slot.container, slot.root)
    write(opened, "f", b"x" * (MIB + 1))
    reader = opened.reader(where("f"))
    assert _descriptors() > before
    opened.close()
    assert len(b"".join(reader.chunks(MIB))) == MIB + 1
    del reader
    assert _descriptors() == before


def _descriptors() -> int:
    gc.collect()
    return len([name for name in os.listdir("/proc/self/fd") if _is_socket(name)])


def _is_socket(name: str) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{name}").startswith("socket")
    except FileNotFoundError:
        return False


def test_a_large_file_is_read_on_when_its_name_is_gone(files: ContainerFiles) -> None:
    content = bytes(range(256)) * 16 * 1024
    write(files, "f", content)
    chunks = files.reader(where("f")).chunks(MIB)
    first = next(chunks)
    files.remove(where("f"))
    assert first + b"".join(chunks) == content


def test_a_container_that_was_stopped_says_so_and_works_again_when_it_runs(make: Make) -> None:
    name = f"carrel-test-{uuid4().hex}"
    container = make(mount=Volume(name=name, memory_bytes=MIB))
    try:
        files = ContainerFiles(container)
        files.list(where("."), limit=None)
        container.stop(0)
        with pytest.raises(ContainerError):
            files.list(where("."), limit=None)
        container.start()
        write(files, "f", b"again")
        assert read(files, "f") == b"again"
        files.close()
    finally:
        container.remove()
        container.engine.api.remove_volume(name, force=True)


def test_a_root_that_is_not_there_is_told_at_once(slot: Slot) -> None:
    with pytest.raises(ContainerError) as caught:
        ContainerFiles(slot.container, "/nonexistent")
    assert caught.value.code == "container.root"


@pytest.mark.parametrize(
    "lie",
    [
        "1:2:81a4 3 1 0 0 0 d 00:00:00.0 z d 00:00:00.0 z ./../../etc/passwd//",
        "1:2:81a4 3 1 0 0 0 d 00:00:00.0 z d 00:00:00.0 z ./..//",
        "1:2:81a4 -3 1 0 0 0 d 00:00:00.0 z d 00:00:00.0 z ./f//",
        "nonsense//",
    ],
)
def test_somebody_who_answers_instead_is_not_believed(slot: Slot, lie: str) -> None:
    script = """
    printf 1; echo start:ok:0
    while read -r mark rest; do printf '%s\\n' "$LIE"; echo "$mark:ok:1"; done
    """
    liar = FileAgent(slot.container, slot.root, user=None)
    liar._stream = slot.container.exec(["sh", "-c", script], env={"LIE": lie})
    assert _said(liar._stream, b"start:ok:0\n")
    files = ContainerFiles(slot.container, slot.root, primitives=ShellPrimitives(liar))
    with pytest.raises(ContainerError) as caught:
        files.list(where("."), limit=None)
    assert caught.value.code == "container.garbled"
    liar.close()


def _said(stream: ExecStream, end: bytes) -> bytes:
    said = b""
    while not said.endswith(end):
        piece = stream.receive(time.monotonic() + SECONDS)
        assert piece is not None, said
        said += piece[1]
    return said


# Drafts


def test_a_draft_is_shown_to_nobody_and_gone_after_a_failure(files: ContainerFiles, slot: Slot) -> None:
    class SourceError(Exception):
        pass

    def data() -> Iterator[bytes]:
        yield b"x" * (MIB + 1)
        yield b"y"
        assert [name for name in os.listdir(slot.base / "ws") if name.startswith(".carrel-draft-")]
        assert files.list(where("."), limit=0) == []
        assert files.measure().entries == 0
        raise SourceError

    with pytest.raises(SourceError):
        files.write(where("f"), data(), existing=Existing.REFUSE, parents=Parents.REQUIRE)
    assert os.listdir(slot.base / "ws") == []


def test_drafts_of_those_who_died_are_swept_and_no_others(slot: Slot) -> None:
    old, young, other = (
        slot.base / "ws" / name for name in (".carrel-draft-a", ".carrel-draft-b", ".carrel")
    )
    for path in (old, young, other):
        path.write_bytes(b"")
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    ContainerFiles(slot.container, slot.root).close()
    assert sorted(os.listdir(slot.base / "ws")) == [".carrel", ".carrel-draft-b"]


# Much


def test_a_hundred_megabytes_stream_in_both_directions_through_little_memory(files: ContainerFiles) -> None:
    piece = bytes(range(256)) * 4096
    tracemalloc.start()
    try:
        files.write(
            where("big"), (piece for _ in range(100)), existing=Existing.REFUSE, parents=Parents.REQUIRE
        )
        size = 0
        for chunk in files.reader(where("big")).chunks(MIB):
            assert chunk == piece
            size += len(chunk)
        assert size == 100 * MIB
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


@requirement("CT-13")
def test_ten_megabytes_are_read_and_written_at_once(files: ContainerFiles) -> None:
    content = os.urandom(10 * MIB)
    write(files, "f", content)
    assert read(files, "f") == content
    files.append(where("f"), content, limit=None)
    assert files.read(where("f"), limit=None, offset=10 * MIB - 3, length=6) == content[-3:] + content[:3]
    assert (
        files.copy(where("f"), where("g"), existing=Existing.REFUSE, limit=None).info.size_bytes == 20 * MIB
    )


@requirement("CT-13")
def test_a_thousand_entries_are_listed_at_once(files: ContainerFiles, slot: Slot) -> None:
    names = [f"entry {number:04}" for number in range(1000)]
    tree(slot.base / "ws", *names)
    assert [info.path for info in files.list(where("."), limit=1000)] == names


# Quota and journal


def test_the_quota_is_exact_and_what_it_refuses_did_not_happen(files: ContainerFiles, slot: Slot) -> None:
    policy = SandboxPolicy.for_workspace("/workspace")
    with Workspace(files, policy=policy, limits=Limits(disk_bytes=10, entries=3)) as workspace:
        workspace.write("f", b"12345")
        workspace.write("d/g", b"12345")
        for refused in (
            lambda: workspace.append("f", b"6"),
            lambda: workspace.write("f", b"123456"),
            lambda: workspace.write("d/h", b""),
            lambda: workspace.mkdir("e"),
            lambda: workspace.copy("f", "f2"),
            lambda: workspace.write_chunks("f", iter((b"x" * MIB, b"x" * MIB))),
        ):
            with pytest.raises(QuotaError):
                refused()
        assert (workspace.usage().disk_bytes, workspace.usage().entries) == (10, 3)
        workspace.remove("d", recursive=True)
        workspace.write("f", b"1234567890")
        assert workspace.usage() == workspace.recount()
        done = [(event.operation, event.path) for event in workspace.changes() if event.error is None]
        assert done == [
            ("write", "f"),
            ("mkdir", "d"),
            ("write", "d/g"),
            ("remove", "d"),
            ("write", "f"),
        ]
    assert os.listdir(slot.base / "ws") == ["f"]


def test_a_full_disk_is_told_and_leaves_all_as_it_was(make: Make) -> None:
    name = f"carrel-test-{uuid4().hex}"
    container = make(mount=Volume(name=name, memory_bytes=MIB // 2))
    try:
        files = ContainerFiles(container)
        write(files, "f", b"kept")
        for data in ((b"x" * MIB,), (b"x" * MIB, b"x" * MIB)):
            with pytest.raises(DiskFullError):
                files.write(where("f"), data, existing=Existing.REPLACE, parents=Parents.REQUIRE)
            with pytest.raises(DiskFullError):
                files.write(where("d/new"), data, existing=Existing.REFUSE, parents=Parents.MAKE)
        with pytest.raises(DiskFullError):
            files.append(where("f"), b"x" * MIB, limit=None)
        assert [info.path for info in files.list(where("."), limit=None)] == ["f"]
        assert read(files, "f") == b"kept"
        files.close()
    finally:
        container.remove()
        container.engine.api.remove_volume(name, force=True)


# Images without a shell


def test_without_a_shell_files_are_read_written_listed_and_stated_and_the_rest_says_why(make: Make) -> None:
    container = make(image=STATIC, command=None, read_only=False)
    files = ContainerFiles(container, "/tmp")
    assert files.confinement == "archive"
    content = bytes(range(256)) * 20_000
    write(files, "d/f", content)
    assert read(files, "d/f") == content
    assert b"".join(files.reader(where("d/f")).chunks(MIB)) == content
    assert [info.path for info in files.list(where("d"), limit=None)] == ["d/f"]
    assert files.stat(where("d/f"), Links.FOLLOW).size_bytes == len(content)
    impossible: list[Callable[[], object]] = [
        lambda: files.remove(where("d/f")),
        lambda: files.remove_tree(where("d")),
        lambda: files.move(where("d/f"), where("f"), existing=Existing.REFUSE),
    ]
    for refused in impossible:
        with pytest.raises(ContainerError, match="no shell") as caught:
            refused()
        assert caught.value.code == "container.unsupported"
    files.close()


def test_a_running_container_is_paused_while_the_engine_works_on_its_files(slot: Slot) -> None:
    primitives = ArchivePrimitives(slot.container, slot.root)
    files = ContainerFiles(slot.container, slot.root, primitives=primitives)
    write(files, "f", b"text")
    with primitives._paused():
        assert slot.container.state().paused
        assert read(files, "f") == b"text"
        assert slot.container.state().paused
    assert not slot.container.state().paused
    run(slot.container, "sh", "-c", '[ "$(cat "$0/f")" = text ]', slot.root)
    files.close()
