"""Layouts that no line of a tree can show: pipes, devices, mounts, depths and chains."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel.testing import tree
from tests.attack.privilege import IS_ROOT, missing

DEPTH = 3000

_CLONE_NEWNS = 0x20000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 0x40000
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def fifo(root: Path, out: Path) -> None:
    os.mkfifo(root / "fifo")


def sock(root: Path, out: Path) -> None:
    directory = os.open(root, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server:
        # The name of a socket holds 107 bytes; the path of the workspace may be longer.
        server.bind(f"/proc/self/fd/{directory}/sock")
    os.close(directory)


def device(root: Path, out: Path) -> None:
    if not IS_ROOT:
        missing("root, to make a device")
    os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.chown(root / "zero", *_owner(root))


def sparse(root: Path, out: Path) -> None:
    (root / "sparse").touch()
    os.truncate(root / "sparse", 2**40)


def bound_proc(root: Path, out: Path) -> None:
    bind(Path("/proc"), root / "proc")


def bound_outside(root: Path, out: Path) -> None:
    """A directory of the same file system: its device tells nothing."""
    bind(out, root / "mnt")


def hard_link(root: Path, out: Path) -> None:
    os.link(out / "linked", root / "hl")


def deep(root: Path, out: Path) -> None:
    here = os.open(root, os.O_PATH)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_PATH, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def shut(root: Path, out: Path) -> None:
    tree(root, "shut/f", "shut/below/f")
    os.chmod(root / "shut/below", 0)
    os.chmod(root / "shut", 0)


def backslash_file(root: Path, out: Path) -> None:
    tree(root, "a\\b")


def chain_of_40(root: Path, out: Path) -> None:
    _chain(root, 40)


def chain_of_41(root: Path, out: Path) -> None:
    _chain(root, 41)


def _chain(root: Path, links: int) -> None:
    names = [f"c{number}" for number in range(links)]
    lines = (f"{name} => {target}" for name, target in zip(names, [*names[1:], "end"], strict=True))
    tree(root, *lines, "end = end")


SPECIAL: dict[str, Callable[[Path, Path], None]] = {
    "«fifo»": fifo,
    "«sock»": sock,
    "«dev»": device,
    "«sparse»": sparse,
    "«bindproc»": bound_proc,
    "«bindout»": bound_outside,
    "«hard»": hard_link,
    "«deep»": deep,
    "«mode000»": shut,
    "«backslash_file»": backslash_file,
    "«chain of 40 links»": chain_of_40,
    "«chain of 41 links»": chain_of_41,
}
NEEDS_ROOT = {"«dev»", "«bindproc»", "«bindout»"}
"""Made as root, whoever acts on them."""


def marks(layout: str) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a test with that *layout*."""
    return (pytest.mark.root,) if layout in NEEDS_ROOT else ()


def bind(source: Path, target: Path) -> None:
    """Show *source* at *target*, which is made, too."""
    target.mkdir()
    os.chown(target, *_owner(target.parent))
    bind_file(source, target)


def bind_file(source: Path, target: Path) -> None:
    """Show *source* at *target*, which is there already."""
    if not IS_ROOT:
        missing("root, to mount")
    if _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None) != 0:
        missing(f"the right to mount: {os.strerror(ctypes.get_errno())}")


def separate_mounts() -> bool:
    """Give the calling thread a mount namespace of its own, so that nothing stays mounted if it is killed.

    Only threads started after this share it: call it first of all. `False` if the host does not allow it.
    """
    return (
        IS_ROOT
        and _libc.unshare(_CLONE_NEWNS) == 0
        and _libc.mount(None, b"/", None, _MS_PRIVATE | _MS_REC, None) == 0
    )


def mount_memory(target: Path) -> bool:
    """Mount a file system in memory at *target*; `False` if the host does not allow it."""
    return bool(_libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", 0, None) == 0)


def unbind(target: Path) -> None:
    """Take away what is mounted at *target*; nothing if there is nothing."""
    _libc.umount2(os.fsencode(target), _MNT_DETACH)


def discard(directory: Path) -> None:
    """Remove *directory*, be it too deep for Python; what is mounted in it stays."""
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        subprocess.run(["rm", "-rf", "--one-file-system", os.fspath(directory)], check=False)


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid
