r"""Parse the path a caller wrote into a `ParsedPath`, without looking at any file.

A path is only a request. Nothing here looks at a file system or decides whether `..` is harmless: only the
resolver can, because it knows what the names before the `..` are.

`\` is a separator on every platform. A trailing slash becomes the flag `must_dir` and is never appended
again: `openat("link/", O_NOFOLLOW)` would follow the link.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple

from carrel.errors import AbsoluteError, PathError

PATH_BYTES = 4096
"""Paths of this many bytes or more are refused, as in Linux."""
NAME_BYTES = 255

StrPath = str | os.PathLike[str]


class ParsedPath(NamedTuple):
    """A syntactically valid path; whether it stays inside is decided by the resolver."""

    requested: str
    """What the caller wrote, for messages and records."""
    parts: tuple[str, ...]
    """Names and `..`, without empty names and `.`; empty for the root itself."""
    absolute: bool
    must_dir: bool
    """The path ended in a slash or a dot, so it must be a directory."""
    dotted: bool
    """The path ended in `.` or `..`, so it does not end in a name."""
    encoded: bytes
    """The path for system calls; `.` for the root."""
    parent: bytes
    """The path without its last part, for system calls."""
    name: bytes
    """The last part; empty when `dotted`."""

    @property
    def text(self) -> str:
        """The path in its normal form."""
        return "/".join(self.parts) or "."


def parse(path: StrPath) -> ParsedPath:
    """Parse a relative path.

    Raises:
        TypeError: It is neither a `str` nor a path object that returns one.
        AbsoluteError: It is absolute.
        PathError: It is empty, too long or contains characters that are not allowed.
    """
    parsed = parse_any(path)
    if parsed.absolute:
        raise AbsoluteError(
            f"path {parsed.requested!r} must be relative: absolute paths are not allowed",
            path=parsed.requested,
        )
    return parsed


def parse_any(path: StrPath) -> ParsedPath:
    """Parse a path that may be absolute; the rest is as for `parse`."""
    return _parse(path if type(path) is str else to_str(path))


def relative(path: ParsedPath, parts: tuple[str, ...]) -> ParsedPath:
    """Return a relative path of *parts* that keeps what the caller wrote in *path*."""
    return _build(path.requested, parts, absolute=False, must_dir=path.must_dir, dotted=path.dotted)


def child(path: ParsedPath, below: str) -> ParsedPath:
    """Return the path of the entry *below* the directory *path*; its names are taken literally."""
    parts = (*path.parts, *below.split("/"))
    return _build("/".join(parts), parts, absolute=False, must_dir=False, dotted=False)


def parent_paths(path: ParsedPath, count: int) -> list[str]:
    """Return the last *count* directories above *path*, the outermost first."""
    above = len(path.parts) - 1
    return ["/".join(path.parts[: above - left]) for left in reversed(range(count))]


def entry_prefix(path: ParsedPath) -> str:
    """Return the text that the paths of entries in the directory *path* begin with."""
    return "/".join(path.parts) + "/" if path.parts else ""


def link_destination(path: ParsedPath, target: str) -> ParsedPath:
    """Return where a link at *path* with the text *target* leads, relative to the root.

    Raises:
        PathError: The text is too long or contains characters that are not allowed.
    """
    base = path.parts[:-1]
    then = _split(path.requested, target)
    return _build(
        path.requested,
        (*base, *then.parts),
        absolute=then.absolute,
        must_dir=then.must_dir or path.must_dir,
        dotted=then.dotted,
    )


def escapes(path: ParsedPath, target: str) -> bool:
    """Whether a link at *path* with the text *target* is absolute or, read as text, leads above the root."""
    then = link_destination(path, target)
    depth = 0
    for part in then.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return then.absolute


def to_str(path: object) -> str:
    """Return a real `str`, so that a subclass or path object cannot return another text later.

    Raises:
        TypeError: It is neither a `str` nor a path object that returns one.
    """
    given = path if isinstance(path, str) else os.fspath(path)  # type: ignore[call-overload]  # raises TypeError itself
    if not isinstance(given, str):
        raise TypeError(f"a path must be str, not {type(given).__name__}")
    return str.__str__(given)


@lru_cache(maxsize=1024)
def _parse(path: str) -> ParsedPath:
    if path[1:2] == ":" and path[0].isascii() and path[0].isalpha():
        raise AbsoluteError(
            f"path {_shortened(path)!r} must be relative: drive letters are not allowed", path=path
        )
    return _split(path, path.replace("\\", "/"))


def _split(requested: str, text: str) -> ParsedPath:
    if not text:
        raise PathError("path is empty", path=requested)
    if "\0" in text:
        raise PathError(f"path {_shortened(requested)!r} contains a NUL", path=requested)
    _check_length(requested, text)
    pieces = text.split("/")
    last = pieces[-1]
    parts = tuple([piece for piece in pieces if piece and piece != "."])
    return _build(
        requested,
        parts,
        absolute=not pieces[0],
        must_dir=last in ("", ".", ".."),
        dotted=_ends_in_dots(pieces) or not parts,
    )


def _ends_in_dots(pieces: list[str]) -> bool:
    """Whether the last piece that is not empty is `.` or `..`."""
    for piece in reversed(pieces):
        if piece:
            return piece in (".", "..")
    return True


def _check_length(requested: str, text: str) -> None:
    if len(encode(text, requested)) >= PATH_BYTES:
        raise PathError(
            f"path is too long: {len(text.encode('utf-8', 'replace'))} bytes, the limit is {PATH_BYTES - 1}",
            path=requested,
        )


def _build(
    requested: str, parts: tuple[str, ...], *, absolute: bool, must_dir: bool, dotted: bool
) -> ParsedPath:
    encoded = encode("/".join(parts), requested)
    if len(encoded) > NAME_BYTES:
        _check_names(requested, encoded)
    parent, _, name = encoded.rpartition(b"/")
    return ParsedPath(
        requested=requested,
        parts=parts,
        absolute=absolute,
        must_dir=must_dir,
        dotted=dotted or not parts,
        encoded=encoded or b".",
        parent=parent or b".",
        name=b"" if dotted else name,
    )


def _check_names(requested: str, encoded: bytes) -> None:
    for name in encoded.split(b"/"):
        if len(name) > NAME_BYTES:
            raise PathError(
                f"a name in path {_shortened(requested)!r} is too long: {len(name)} bytes,"
                f" the limit is {NAME_BYTES}",
                path=requested,
            )


def encode(text: str, requested: str) -> bytes:
    """Encode a name; one that was not UTF-8 when it was listed becomes the same bytes again.

    Raises:
        PathError: It contains a lone surrogate that stands for no byte.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    try:
        found = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        found = None
    if found is None or found.decode("utf-8", "surrogateescape") != text:
        raise PathError(f"path {_shortened(requested)!r} contains a lone surrogate", path=requested)
    return found


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
