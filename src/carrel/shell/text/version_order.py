"""Sort order of names with version numbers: `file-9` before `file-10`."""

from __future__ import annotations

import re

VersionKey = tuple[int, tuple[object, ...], tuple[object, ...]]

_PARTS = re.compile(rb"([^0-9]*)([0-9]*)")
_SUFFIXES = re.compile(rb"(?:\.[A-Za-z~][A-Za-z0-9~]*)+")
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_RANKS = [byte if byte in _LETTERS else byte + 256 for byte in range(256)]
_RANKS[ord("~")] = -2
"""Letters come before other characters, and `~` even before the end of the name."""


def version_key(name: bytes) -> VersionKey:
    """Return a sort key for *name*: first without suffixes such as `.tar.gz`, then as a whole."""
    rank = _rank(name)
    if rank < 3:
        return rank, (), ()
    prefix = name[: _prefix_length(name)]
    key = _key(prefix)
    return rank, key, key if len(prefix) == len(name) else _key(name)


def _rank(name: bytes) -> int:
    """Rank the empty name, `.`, `..` and hidden names first."""
    if name in (b"", b".", b".."):
        return len(name)
    return 3 if name[:1] == b"." else 4


def _prefix_length(name: bytes) -> int:
    for suffixes in _SUFFIXES.finditer(name, 1):
        if suffixes.end() == len(name):
            return suffixes.start()
    return len(name)


def _key(name: bytes) -> tuple[object, ...]:
    """Return alternating ranks of characters and numbers; a number is its length and its digits."""
    key: list[object] = []
    for text, digits in _PARTS.findall(name):
        if text or digits or not key:
            number = digits.lstrip(b"0")
            key += [_RANKS[byte] for byte in text]
            key += (0, len(number), number)
    return (*key, 0)
