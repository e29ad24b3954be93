"""Files that grow, that are nearly all holes, and that somebody else holds (E29, E30, E37)."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carrel.errors import BusyError, CarrelError, LimitError
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.attack.operations import EVERY
from tests.attack.privilege import acting_as
from tests.attack.world import RESOLVERS, MakeWorld, Outcome, Variant

pytestmark = pytest.mark.attack

TIB = 2**40
real_read = os.read


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("step", [1, 100, 1_000_000])
def test_a_file_that_grows_is_read_up_to_the_limit(
    step: int, variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E29: at most one byte more than the limit is read, however quickly it grows."""
    read = 0

    def read_and_grow(fd: int, count: int) -> bytes:
        nonlocal read
        with open(here.root / "f", "ab") as file:
            file.write(b"x" * step)
        piece = real_read(fd, count)
        if b"x" in piece or piece == b"in":
            read += len(piece)
        return piece

    with world("f", variant, Limits(read_bytes=1000)) as here:
        monkeypatch.setattr(os, "read", read_and_grow)
        with acting_as(variant.user), pytest.raises(LimitError) as caught:
            here.workspace.read("f")
        monkeypatch.undo()
        assert caught.value.code == "limit.read_bytes"
        assert read <= 1001
        del caught


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_file_that_grows_is_not_copied_past_the_limit(
    variant: Variant, world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E29."""
    real_copy = os.copy_file_range

    def copy_and_grow(source: int, target: int, count: int) -> int:
        os.truncate(here.root / "f", 10_000)
        return real_copy(source, target, count)

    with world("f", variant, Limits(file_bytes=1000)) as here:
        monkeypatch.setattr(os, "copy_file_range", copy_and_grow)
        outcome = here.attempt(lambda workspace: workspace.copy("f", "g"))
        monkeypatch.undo()
        assert isinstance(outcome.error, LimitError), str(outcome)
        assert not (here.root / "g").exists()


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_chunks_without_end_are_refused_at_the_limit(variant: Variant, world: MakeWorld) -> None:
    """E29: and nothing of them stays."""

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 100

    with world("f", variant, Limits(file_bytes=1000)) as here:
        for path in ("f", "new"):
            outcome = here.try_path(lambda workspace, path: workspace.write_chunks(path, endless()), path)
            assert isinstance(outcome.error, LimitError), str(outcome)
        assert here.contents() == here.expected("f")


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_a_file_of_a_tebibyte_is_refused_before_anything_is_allocated(
    name: str, variant: Variant, world: MakeWorld
) -> None:
    """E30: or dealt with without reading it."""
    with world("«sparse»", variant, Limits(read_bytes=2**20, file_bytes=2**20)) as here:
        with acting_as(variant.user):
            here.workspace.write("mine", b"in")
            here.workspace.write("mine-directory/f", b"in")
        tracemalloc.start()
        try:
            outcome = here.try_path(EVERY[name], "sparse", "sparse")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 16 * 2**20, f"{name} needed {peak} bytes: {outcome}"
        assert outcome.error is None or isinstance(outcome.error, CarrelError)


WINDOWS: dict[str, Callable[[Workspace], object]] = {
    "the first bytes": lambda workspace: workspace.read("sparse", length=10),
    "bytes in the middle": lambda workspace: workspace.read("sparse", offset=TIB // 2, length=10),
    "bytes at the end": lambda workspace: workspace.read("sparse", offset=TIB - 10),
}


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_a_tebibyte_can_be_read(name: str, variant: Variant, world: MakeWorld) -> None:
    """E30."""
    with world("«sparse»", variant) as here:
        assert here.attempt(WINDOWS[name]).value == bytes(10)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("start", [1, 2, 10**9, 10**18])
def test_lines_of_a_tebibyte_without_line_ends_are_refused_in_time(
    start: int, variant: Variant, world: MakeWorld
) -> None:
    """E30: a window of lines may not mean to read everything."""
    with world("«sparse»", variant) as here:
        outcome = here.attempt(lambda workspace: workspace.read_lines("sparse", start=start, count=1))
        assert isinstance(outcome.error, LimitError), str(outcome)


@pytest.mark.parametrize("offset", [0, 2**63, 2**64, 2**100])
def test_an_offset_beyond_all_files_gives_nothing_or_a_clean_error(offset: int, world: MakeWorld) -> None:
    """E30."""
    with world("f", RESOLVERS[0]) as here:
        outcome = here.attempt(lambda workspace: workspace.read("f", offset=offset, length=2**70))
        assert outcome.value in (b"in", b"") or isinstance(outcome.error, CarrelError), str(outcome)


LEASE = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def _leased(path: Path) -> Iterator[None]:
    """Let another process hold *path*, so that a plain open would wait for it."""
    holder = subprocess.Popen(
        [sys.executable, "-S", "-c", LEASE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        yield
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()


OPENING = {name for name in EVERY if name.startswith(("read", "append", "edit", "copy away"))} - {"read_tree"}
"""The operations that open the content of the file itself."""


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_file_that_another_process_leased_is_busy_at_once(variant: Variant, world: MakeWorld) -> None:
    """E37: a plain open would wait for the length of a lease, which is 45 seconds."""
    with world("f; g", variant) as here, _leased(here.root / "f"):
        here.settle()
        busy: dict[str, Outcome] = {}
        for name in sorted(OPENING):
            busy[name] = here.try_path(EVERY[name], "f", "f")
        for name, outcome in busy.items():
            assert isinstance(outcome.error, BusyError), f"{name}: {outcome}"
        listed = here.attempt(lambda workspace: [info.path for info in workspace.list()])
        assert listed.value == ["f", "g"]
        searched = here.attempt(lambda workspace: workspace.search("in").matches)
        assert searched.ok, str(searched)


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
def test_a_leased_file_can_be_replaced_moved_and_removed(variant: Variant, world: MakeWorld) -> None:
    """E37: none of these opens it."""
    with world("f", variant) as here, _leased(here.root / "f"):
        here.settle()
        assert here.attempt(lambda workspace: workspace.move("f", "h")).ok
        assert here.attempt(lambda workspace: workspace.write("h", b"new")).ok
        assert here.attempt(lambda workspace: workspace.remove("h")).ok
