"""An open workspace never hands an absolute path to the host: the descriptor is all it knows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest

from carrel.errors import CarrelError
from tests.attack.operations import EVERY, prepare
from tests.attack.privilege import acting_as
from tests.attack.world import DOORS, MakeWorld, Variant

pytestmark = pytest.mark.attack

BY_PATH = [
    "access",
    "chdir",
    "chmod",
    "chown",
    "lchown",
    "link",
    "listdir",
    "lstat",
    "mkdir",
    "mkfifo",
    "mknod",
    "open",
    "readlink",
    "remove",
    "rename",
    "renames",
    "replace",
    "rmdir",
    "scandir",
    "stat",
    "statvfs",
    "symlink",
    "truncate",
    "unlink",
    "utime",
]
"""The functions of `os` that take a path."""
RESOLVING = ["realpath", "abspath"]
WITHOUT_DESCRIPTOR = {"chdir", "chmod", "lchown", "listdir", "lstat", "renames", "statvfs", "truncate"}
"""Those that would look up a relative name in the working directory, or follow the last link."""


class Forbidden(BaseException):
    """A call that no operation may make; nothing that catches `Exception` can swallow this."""


def _is_our_own(path: object) -> bool:
    """Whether *path* names a descriptor that this process holds."""
    return str(os.fsdecode(path) if isinstance(path, bytes) else path).startswith("/proc/self/")


def _is_elsewhere() -> bool:
    """Whether somebody asks who has nothing to do with the workspace.

    That is a measurement, which looks at the path of each module that runs for the first time, or `tempfile`,
    which makes the file without a name that holds an archive while it is judged.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(("coverage.", "tempfile")):
            return True
        frame = frame.f_back
    return False


def _watch(name: str, real: Callable[..., object]) -> Callable[..., object]:
    def call(*arguments: object, **options: object) -> object:
        if _is_elsewhere():
            return real(*arguments, **options)
        for argument in arguments:
            if not isinstance(argument, str | bytes | os.PathLike):
                continue
            text = os.fspath(argument)
            absolute = text.startswith("/") if isinstance(text, str) else text.startswith(b"/")
            if absolute and not _is_our_own(text):
                raise Forbidden(f"os.{name}({text!r})")
            if not absolute and name in WITHOUT_DESCRIPTOR:
                raise Forbidden(f"os.{name}({text!r}), which depends on the working directory")
            if not absolute and not any(option.endswith("dir_fd") for option in options):
                raise Forbidden(f"os.{name}({text!r}) without a directory")
        return real(*arguments, **options)

    return call


@contextmanager
def _watched() -> Iterator[None]:
    """Let every call that is not about a held descriptor fail."""
    with pytest.MonkeyPatch.context() as patch:
        for name in BY_PATH:
            patch.setattr(os, name, _watch(name, getattr(os, name)))
        for name in RESOLVING:
            patch.setattr(os.path, name, _refuse(f"os.path.{name}", getattr(os.path, name)))
        for name in ("resolve", "absolute", "exists", "is_symlink", "is_dir", "is_file"):
            patch.setattr(Path, name, _refuse(f"Path.{name}", getattr(Path, name)))
        yield


def _refuse(name: str, real: Callable[..., object]) -> Callable[..., object]:
    def call(*arguments: object, **options: object) -> object:
        if _is_elsewhere():
            return real(*arguments, **options)
        raise Forbidden(f"{name}{arguments!r}")

    return call


@pytest.mark.parametrize("variant", DOORS, ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_no_operation_makes_a_forbidden_call(name: str, variant: Variant, world: MakeWorld) -> None:
    paths = [
        "f",
        "d",
        "d/f",
        "l/f",
        "link",
        "new",
        "a/b/new",
        "../secret",
        "out/secret",
        "loop",
        "/etc/passwd",
        "d/../f",
    ]
    layout = "f; d/f; d/g/h; l => d; link => f; out => $OUT; loop => loop"
    with world(layout, variant) as here, acting_as(variant.user):
        for path in paths:
            prepare(here.workspace)
            with _watched(), suppress(CarrelError):
                EVERY[name](here.workspace, path)


def test_the_watch_itself_sees_what_is_forbidden(place: Path) -> None:
    with _watched():
        for call in (
            lambda: os.stat(place),
            lambda: os.stat(str(place)),
            lambda: os.open("f", os.O_RDONLY),
            lambda: os.listdir("."),
            place.resolve,
            lambda: os.path.realpath("f"),
        ):
            with pytest.raises(Forbidden):
                call()
