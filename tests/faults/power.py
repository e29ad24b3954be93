"""A disk that loses its power: what was flushed to it by then is all that there is afterwards.

The disk is an image file behind a loop device, with ext4 on it. What a program writes stays in the memory of
the kernel until it is flushed; nothing else flushes it here, since the file system commits by itself only
every ten minutes and, with `data=writeback`, does not write the content of one file because another is
flushed. So a copy of the image is what a power loss would leave, and mounting the copy is the next start.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from carrel.fs import syscalls
from tests.faults.inject import Call, in_memory
from tests.workspace.dying import CALLS

IMAGE_BYTES = 8 * 2**20
OPTIONS = b"data=writeback,noauto_da_alloc,commit=600"
FLUSHES: tuple[tuple[Any, str], ...] = (  # Any: a module
    (os, "fsync"),
    (os, "fdatasync"),
    (os, "sync"),
    (syscalls, "_syncfs"),
)

_MNT_DETACH = 2
_MS_NOATIME = 1024
_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_SET_FD = 0x4C00
_LOOP_SET_STATUS64 = 0x4C04
_STATUS = struct.Struct("<52xI176x")
"""Of `struct loop_info64`: the flags."""
_AUTOCLEAR = 4
_TRIES = 100
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Disk:
    """A mounted image."""

    image: Path
    place: Path
    device: str
    copies: list[Path] = field(default_factory=list)

    def written(self) -> int:
        """How many sectors were written to the device so far."""
        return int(Path("/sys/block", self.device, "stat").read_text().split()[6])

    def copy(self) -> Path:
        """What the device holds now."""
        made = self.image.with_name(f"copy-{len(self.copies)}")
        _copy_sparse(self.image, made)
        self.copies.append(made)
        return made

    @contextmanager
    def copying(self) -> Iterator[list[Path]]:
        """Copy the device around each system call of what is done meanwhile, as often as it was written."""
        found = [self.copy()]
        seen = self.written()

        def look() -> None:
            nonlocal seen
            now = self.written()
            if now != seen:
                seen = now
                found.append(self.copy())

        with pytest.MonkeyPatch.context() as patch:
            for module, name in (*CALLS, *FLUSHES):
                patch.setattr(module, name, _followed_by(getattr(module, name), look))
            yield found
        # Whatever was written last, in SQLite for example.
        found.append(self.copy())

    @contextmanager
    def restarted(self, copy: Path) -> Iterator[Path]:
        """The files as they are after a start with what *copy* holds."""
        place = copy.with_suffix(".mounted")
        place.mkdir()
        with mounted(copy, place):
            yield place
        place.rmdir()


def _followed_by(call: Call, look: Callable[[], None]) -> Call:
    def called(*args: Any, **kwargs: Any) -> Any:  # Any: whatever the system call takes and gives
        try:
            return call(*args, **kwargs)
        finally:
            look()

    return called


def _copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without its holes, which are most of it."""
    with source.open("rb") as old, target.open("wb") as new:
        new.truncate(IMAGE_BYTES)
        end = 0
        while True:
            try:
                start = os.lseek(old.fileno(), end, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(old.fileno(), start, os.SEEK_HOLE)
            os.pwrite(new.fileno(), os.pread(old.fileno(), end - start, start), start)


@contextmanager
def disk() -> Iterator[Disk]:
    """An empty disk; skips the test where there can be none, and fails it under CI."""
    with ExitStack() as undo:
        directory = undo.enter_context(in_memory())
        image, place = directory / "image", directory / "disk"
        place.mkdir()
        try:
            with image.open("wb") as file:
                file.truncate(IMAGE_BYTES)
            subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
            device = undo.enter_context(mounted(image, place))
        except (OSError, subprocess.CalledProcessError) as error:
            reason = f"needs root, mkfs.ext4 and loop devices, to lose a disk's power: {error}"
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
        yield Disk(image, place, device)


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[str]:
    """Show the files of *image* at *place*; gives the name of the device."""
    with _looped(image) as device:
        path = f"/dev/{device}".encode()
        if _libc.mount(path, os.fsencode(place), b"ext4", _MS_NOATIME, OPTIONS) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"mount: {os.strerror(number)}")
    try:
        yield device
    finally:
        # The device goes with it.
        _libc.umount2(os.fsencode(place), _MNT_DETACH)


@contextmanager
def _looped(image: Path) -> Iterator[str]:
    """A loop device for *image* that goes when it is closed or unmounted; others may take one as well."""
    file = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
            try:
                name = f"loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
            finally:
                os.close(control)
            device = os.open(f"/dev/{name}", os.O_RDWR | os.O_CLOEXEC)
            try:
                try:
                    fcntl.ioctl(device, _LOOP_SET_FD, file)
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        raise
                    continue
                fcntl.ioctl(device, _LOOP_SET_STATUS64, _STATUS.pack(_AUTOCLEAR))
                yield name
                return
            finally:
                os.close(device)
    finally:
        os.close(file)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
