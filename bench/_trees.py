"""The files that are worked on, made by plain calls so that every way meets the same ones."""

from __future__ import annotations

import os
from pathlib import Path

DATA = os.urandom(4096)
TEXT = "".join(f"line {number} of a file that an agent reads\n" for number in range(200))[:4096]
"""4 KiB as well, in lines."""


def under(depth: int, name: str) -> str:
    """The relative path of *name*, *depth* levels down."""
    return "/".join([*(f"level-{level}" for level in range(1, depth)), name])


def fill(host: Path, depth: int, name: str, count: int) -> list[str]:
    """Make *count* files of 4 KiB *depth* levels down and say what they are called."""
    paths = [under(depth, f"{name}-{number}") for number in range(count)]
    os.makedirs(host / under(depth, "."), exist_ok=True)
    for path in paths:
        (host / path).write_bytes(DATA)
    return paths


def name_often(host: Path, depth: int, name: str, count: int) -> list[str]:
    """Make one file of 4 KiB with *count* names, which spares the disk *count* files."""
    (first,) = fill(host, depth, name, 1)
    others = [f"{first}-{number}" for number in range(1, count)]
    for other in others:
        os.link(host / first, host / other)
    return [first, *others]


def plant(top: str, directories: int, files_each: int, content: bytes = b"") -> None:
    """Make *directories* directories in *top*, each with some files."""
    for directory in range(directories):
        here = f"{top}/{directory}"
        os.makedirs(here)
        for number in range(files_each):
            fd = os.open(f"{here}/file-{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(fd, content)
            os.close(fd)


def dig(host: Path, name: str, levels: int) -> None:
    """Make one directory in another, *levels* times, far beyond what a path can say."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    here = os.open(host, flags)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        child = os.open(name, flags, dir_fd=here)
        os.close(here)
        here, name = child, "d"
    os.close(here)
