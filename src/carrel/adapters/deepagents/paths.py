"""Paths and glob patterns as deepagents writes them, and as the workspace reads them."""

from __future__ import annotations

from carrel.errors import PathError
from carrel.paths.glob import Pattern
from carrel.paths.parsed_path import ParsedPath, parse_any
from carrel.policy.rules import Access
from carrel.tools.operations.glob_pattern import GlobPattern
from carrel.workspace.views import parts_of
from carrel.workspace.workspace import Workspace


class AgentPaths:
    """Reads the paths that an agent writes, and writes those that it reads.

    A path beneath the mount, as commands print it, means the same as without the mount: `/workspace/a` is
    `/a`. What another rule of the workspace allows keeps its own path. Every path that is written is read
    again as the same file.
    """

    def __init__(self, workspace: Workspace, root: str | None) -> None:
        """Show the workspace at *root*: `/`, or its mount, which is the default.

        Raises:
            ValueError: It is neither.
        """
        self._workspace = workspace
        self._mount = workspace.mount.rstrip("/")
        root = (self._mount if root is None else root).rstrip("/")
        if root not in ("", self._mount):
            raise ValueError(f"the root must be '/' or {self._mount!r}, not {root!r}")
        self.root = root or "/"

    def parse(self, path: str) -> str:
        """The path as the workspace understands it.

        Raises:
            PathError: It is not absolute, or no path that we accept.
        """
        where = parse_any(path)
        if not where.absolute:
            raise PathError(f"path {path[:80]!r} must be absolute: it must begin with '/'", path=path)
        return path if self._is_known(where) else f"{self._mount}/{path.lstrip('/')}"

    def shown(self, path: str) -> str:
        """What `render` gives for the path that an agent wrote.

        Raises:
            PathError: It is not absolute, or no path that we accept.
        """
        mount = parts_of(self._mount)
        parts = parse_any(self.parse(path)).parts
        if parts[: len(mount)] != mount:
            return _text("/" + "/".join(parts))
        return self.render("/".join(parts[len(mount) :]) or ".")

    def render(self, path: str) -> str:
        """The absolute path of what the workspace calls *path*."""
        if path.startswith("/"):
            return _text(path)
        if path == ".":
            return self.root
        short = f"/{path}"
        if self.root == "/" and not self._is_known(parse_any(short)):
            return _text(short)
        return _text(f"{self._mount}/{path}")

    def _is_known(self, where: ParsedPath) -> bool:
        """Whether an absolute path is beneath the mount, or another rule has it."""
        mount = parts_of(self._mount)
        if where.parts[: len(mount)] == mount:
            return True
        decision, _, _ = self._workspace.gate.explain(Access.READ, where.requested)
        return decision.index is not None


def _text(path: str) -> str:
    """A path that can be written as UTF-8; one that is not shows which bytes it has."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class FileGlob:
    """A pattern without a slash matches names at any depth, another the path beneath the search root.

    A slash in front ties a name to the root. A name that begins with a dot is matched only by a part of the
    pattern that does so too.
    """

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            PatternError: It is no pattern, or stands for too many.
        """
        # A dot in front keeps a single name from matching at any depth.
        self._glob = GlobPattern(f".{text}" if text.startswith("/") else text)
        self.parts = self._glob.parts
        """The patterns of carrel that it stands for."""
        self._dotted = [
            Pattern(part)
            for each in self.parts
            for part in each.split("/")
            if part.startswith(".") and part != "."
        ]
        self.enters_hidden = self._glob.anywhere or bool(self._dotted)
        """Whether anything in a directory can match whose name begins with a dot."""

    def matches(self, path: str) -> bool:
        """Whether the *path*, seen from the search root, matches."""
        if not self._glob.matches(path):
            return False
        names = path.split("/")
        judged = names[-1:] if self._glob.anywhere else names
        return all(
            any(pattern.matches(name) for pattern in self._dotted) for name in judged if name.startswith(".")
        )
