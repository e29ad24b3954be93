"""`Manifest`: describes the cached files of one installed guest, so that nothing is hashed again.

It records the sizes and times of the source files, and the sizes of the cached files. Times are compared in
whole seconds, and inodes and devices are ignored, so that a manifest stays valid in a copied disk image.
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
"""Size in bytes, and modification time in seconds."""
DRAFT = ".new-"
"""Prefix of the names of unfinished files."""
LOCK = "lock"
"""File that is locked by whoever compiles; it has content while something is compiled."""


class Flavour(Enum):
    """The two variants of the compiled guest; the values are part of the engine's file names."""

    PLAIN = "plain"
    METERED = "fuel"
    """Counts instructions (fuel)."""

    @classmethod
    def of(cls, *, metered: bool) -> Flavour:
        """Return the flavour with or without instruction counting."""
        return cls.METERED if metered else cls.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The cached files of one installation and flavour; names are relative to the directory of the guest."""

    compiled: str
    """The file of native code."""
    sources: Mapping[str, Stamp]
    """Stamps of the installed files it was compiled from, by absolute path."""
    files: Mapping[str, int]
    """Sizes of the cached files."""
    digests: Mapping[str, str]
    """SHA-256 of the sources that the engine would hash."""
    library: str | None = None
    """The unpacked standard library; `None` if only the engine's public interface was used."""
    modules: str | None = None
    """The small compiled modules."""

    def holds(self, directory: Path) -> bool:
        """Return whether all files are unchanged."""
        try:
            return all(stamp(path) == tuple(was) for path, was in self.sources.items()) and all(
                os.lstat(directory / name).st_size == size for name, size in self.files.items()
            )
        except OSError:
            return False

    @classmethod
    def read(cls, directory: Path, package: Path, flavour: Flavour) -> Self | None:
        """Read the manifest of the installation at *package*; `None` if it is missing or invalid."""
        try:
            return cls(**json.loads(_manifest_path(directory, package, flavour).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, directory: Path, package: Path, flavour: Flavour) -> None:
        """Write the manifest."""
        write_atomic(_manifest_path(directory, package, flavour), json.dumps(asdict(self)).encode())


def remove_manifest(directory: Path, package: Path, flavour: Flavour) -> None:
    """Remove the manifest, so that the guest is compiled again."""
    _manifest_path(directory, package, flavour).unlink(missing_ok=True)


def mark_compiling(directory: Path) -> None:
    """Tell those who wait for the lock of *directory* that its holder compiles."""
    lock = os.open(directory / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(lock, b"compiling")
    finally:
        os.close(lock)


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Return size and time of a file, which change when it is replaced."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns // 10**9


def stamps(paths: Iterable[Path]) -> dict[str, Stamp]:
    """Return the stamps of all *paths*."""
    return {str(path): stamp(path) for path in paths}


def write_atomic(path: Path, data: bytes | bytearray) -> None:
    """Write *data* to *path* atomically and durably, readable by this user only."""
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


def _manifest_path(directory: Path, package: Path, flavour: Flavour) -> Path:
    name = hashlib.sha256(os.fsencode(package)).hexdigest()[:16]
    return directory / f"copy-{name}-{flavour.value}.json"
