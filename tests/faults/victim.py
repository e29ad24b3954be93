"""A process that is killed in the middle of its work.

Run as `python -m tests.faults.victim WORK KIND DIRECTORY`; it writes a line when it is in the middle, and
waits there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace

NEW = b"new " * 25_000


def pause() -> None:
    """Tell that the middle is reached, and wait to be killed."""
    os.write(1, b"in the middle\n")
    os.read(0, 1)


def chunks() -> Iterator[bytes]:
    yield NEW
    pause()
    yield NEW


def write(workspace: Workspace) -> None:
    workspace.write_chunks("old", chunks())


def write_new(workspace: Workspace) -> None:
    workspace.write_chunks("a/b/new", chunks(), overwrite=False)


def publish(workspace: Workspace) -> None:
    """Stop before the new content takes the place of the old."""
    os.rename = _pausing(os.rename)
    workspace.write("old", NEW)


def write_named(workspace: Workspace) -> None:
    """Stop in the middle of a write on a host that has no unnamed files."""
    os.path.exists = lambda path: False  # a host without /proc
    workspace.write_chunks("old", chunks())


def relink(workspace: Workspace) -> None:
    """Stop before a link takes the place of another."""
    os.rename = _pausing(os.rename)
    workspace.copy("links", "old-links", recursive=True, overwrite=True)


def append(workspace: Workspace) -> None:
    os.write = _pausing(os.write, when=lambda fd, data: fd > 2 and len(data) == len(NEW))
    workspace.append("old", NEW)


def remove(workspace: Workspace) -> None:
    """Stop when half of the files of a tree are gone."""
    os.rmdir = _pausing(os.rmdir)
    workspace.remove("tree", recursive=True)


def _pausing(call: Callable[..., Any], when: Callable[..., bool] | None = None) -> Any:  # Any: a system call
    def paused(*args: Any, **kwargs: Any) -> Any:  # Any: as above
        if when is None or when(*args, **kwargs):
            pause()
        return call(*args, **kwargs)

    return paused


WORK = {work.__name__: work for work in (write, write_new, write_named, publish, relink, append, remove)}


def main(work: str, kind: str, directory: str) -> None:
    """Do *work* in the workspace of the given kind."""
    if kind == "bare":
        workspace = Workspace.open(directory)
    else:
        workspace = WorkspaceManager(os.path.dirname(directory)).open(os.path.basename(directory))
    WORK[work](workspace)


if __name__ == "__main__":
    main(*sys.argv[1:])
