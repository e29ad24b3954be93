"""A program that answers with what plain calls of `os` give inside a chroot; it needs root.

A request is one line of JSON: the directory, and names of calls each with a path. The answer is one line: for
each call `["ok", value]` or `["error", errno]`. The first line says whether the program may chroot at all.
"""

from __future__ import annotations

import json
import os
import stat
import sys

KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def main() -> None:
    """Serve until the end of the input."""
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chroot("/")
    except PermissionError:
        print(json.dumps(False), flush=True)
        return
    print(json.dumps(True), flush=True)
    for line in sys.stdin:
        directory, calls = json.loads(line)
        os.chroot(directory)
        os.chdir("/")
        answers = [answer(name, path) for name, path in calls]
        os.fchdir(top)
        os.chroot(".")
        print(json.dumps(answers), flush=True)


def answer(name: str, path: str) -> tuple[str, object]:
    """What one call gives."""
    try:
        return "ok", call(name, path)
    except OSError as error:
        return "error", error.errno


def call(name: str, path: str) -> object:
    """Make one call."""
    if name == "read":
        fd = os.open(path, os.O_RDONLY)
        try:
            return os.read(fd, 1000).decode("latin-1")
        finally:
            os.close(fd)
    if name == "list":
        return sorted(os.listdir(path))
    found = os.stat(path, follow_symlinks=name == "stat")
    kind = KINDS[stat.S_IFMT(found.st_mode)]
    target = os.readlink(path) if kind == "link" else None
    return [kind, 0 if kind == "directory" else found.st_size, found.st_mode & 0o777, target]


if __name__ == "__main__":
    main()
