"""`Manifest`: what the cache holds for one installed guest, so that nothing is hashed again.

A record holds the sizes and times of the files it was made from and of the files that belong to it. Times
count in whole seconds, inodes and devices not at all, so that a record travels with an image of the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Self

Stamp = tuple[int, int]
"""Size in bytes, and time of the last change in seconds."""
DRAFT = ".new-"
"""What the names of unfinished files begin with."""


class Flavour(Enum):
    """The two ways the guest is compiled; the engine names its files by these words."""

    PLAIN = "plain"
    METERED = "fuel"
    """It counts its steps."""

    @classmethod
    def of(cls, *, metered: bool) -> Flavour:
        """The flavour that counts steps, or the one that does not."""
        return cls.METERED if metered else cls.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that belongs to one copy and one flavour; names are beneath the directory of the guest."""

    compiled: str
    """The file of native code."""
    sources: Mapping[str, Stamp]
    """The installed files it was made from, by their full path."""
    files: Mapping[str, int]
    """The files that belong to it, and their sizes."""
    digests: Mapping[str, str]
    """The SHA-256 of those sources that the engine would hash."""
    library: str | None = None
    """The unpacked standard library; `None` where the engine's public way is all that could be used."""
    modules: str | None = None
    """The small compiled modules."""

    def holds(self, directory: Path) -> bool:
        """Whether everything is still as it was."""
        try:
            return all(stamp(path) == tuple(was) for path, was in self.sources.items()) and all(
                os.lstat(directory / name).st_size == size for name, size in self.files.items()
            )
        except OSError:
            return False

    @classmethod
    def read(cls, directory: Path, package: Path, flavour: Flavour) -> Self | None:
        """The record of the copy at *package*; `None` if there is none that makes sense."""
        try:
            return cls(**json.loads(_place(directory, package, flavour).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, directory: Path, package: Path, flavour: Flavour) -> None:
        """Remember it."""
        write_atomic(_place(directory, package, flavour), json.dumps(asdict(self)).encode())


def remove_manifest(directory: Path, package: Path, flavour: Flavour) -> None:
    """Remove the record, so that all of it is made again."""
    _place(directory, package, flavour).unlink(missing_ok=True)


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """What tells a file from another one of the same name."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns // 10**9


def stamps(paths: Iterable[Path]) -> dict[str, Stamp]:
    """The stamps of all *paths*."""
    return {str(path): stamp(path) for path in paths}


def write_atomic(path: Path, data: bytes | bytearray) -> None:
    """Put *data* at *path*, closed to others, when all of it is on the disk."""
    draft = path.with_name(f"{DRAFT}{os.urandom(8).hex()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _place(directory: Path, package: Path, flavour: Flavour) -> Path:
    name = hashlib.sha256(os.fsencode(package)).hexdigest()[:16]
    return directory / f"copy-{name}-{flavour.value}.json"
