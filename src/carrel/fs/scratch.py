"""Directories outside every workspace, for files that are not finished and trees that are being removed."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from carrel.fs._draft import ABANDONED_SECONDS, sweep
from carrel.fs.handle import Handle
from carrel.fs.owned import make_own
from carrel.fs.tree import remove_tree


@dataclass(frozen=True, slots=True)
class Scratch:
    """On the same mount as the workspaces, so that one rename moves a file in or a tree out."""

    drafts: Handle
    trash: Handle

    @classmethod
    def make(cls, state: Handle) -> Scratch:
        """Open the scratch directories in *state*, making them if they are missing."""
        return cls(drafts=make_own(state, "tmp"), trash=make_own(state, "trash"))

    def clear(self, now: float) -> None:
        """Remove what processes that were killed left behind; what cannot be removed waits."""
        with suppress(OSError):
            sweep(self.drafts.fd, now)
        with os.scandir(self.trash.fd) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_ctime < now - ABANDONED_SECONDS:
                        remove_tree(_open_child, self.trash.fd, os.fsencode(entry.name))


def _open_child(parent: int, name: bytes, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
