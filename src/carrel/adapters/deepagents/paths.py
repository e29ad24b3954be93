"""Translates paths and glob patterns between deepagents and a workspace."""

from __future__ import annotations

from carrel.errors import PathError
from carrel.paths.glob import Pattern
from carrel.paths.parsed_path import ParsedPath, parse_any
from carrel.policy.rules import Access
from carrel.tools.operations.glob_pattern import GlobPattern
from carrel.workspace.views import parts_of
from carrel.workspace.workspace import Workspace


class AgentPaths:
    """Parses paths written by an agent, and renders paths for it.

    A path below the mount, as commands print it, means the same as without the mount: `/workspace/a` is `/a`.
    Paths allowed by other rules of the workspace are unchanged. A rendered path always parses to the same
    file.
    """

    def __init__(self, workspace: Workspace, root: str | None) -> None:
        """Show the workspace at *root*: `/`, or its mount, which is the default.

        Raises:
            ValueError: *root* is neither.
        """
        self._workspace = workspace
        self._mount = workspace.mount.rstrip("/")
        root = (self._mount if root is None else root).rstrip("/")
        if root not in ("", self._mount):
            raise ValueError(f"the root must be '/' or {self._mount!r}, not {root!r}")
        self.root = root or "/"

    def parse(self, path: str) -> str:
        """Parse a path of an agent into one of the workspace.

        Raises:
            PathError: It is not absolute, or invalid.
        """
        parsed = parse_any(path)
        if not parsed.absolute:
            raise PathError(f"path {path[:80]!r} must be absolute: it must begin with '/'", path=path)
        return path if self._has_rule(parsed) else f"{self._mount}/{path.lstrip('/')}"

    def display(self, path: str) -> str:
        """Render the path of an agent in its canonical form.

        Raises:
            PathError: It is not absolute, or invalid.
        """
        mount = parts_of(self._mount)
        parts = parse_any(self.parse(path)).parts
        if parts[: len(mount)] != mount:
            return _text("/" + "/".join(parts))
        return self.render("/".join(parts[len(mount) :]) or ".")

    def render(self, path: str) -> str:
        """Render a path of the workspace as an absolute path for the agent."""
        if path.startswith("/"):
            return _text(path)
        if path == ".":
            return self.root
        short = f"/{path}"
        if self.root == "/" and not self._has_rule(parse_any(short)):
            return _text(short)
        return _text(f"{self._mount}/{path}")

    def _has_rule(self, parsed: ParsedPath) -> bool:
        """Whether an absolute path is below the mount, or covered by another rule."""
        mount = parts_of(self._mount)
        if parsed.parts[: len(mount)] == mount:
            return True
        decision, _, _ = self._workspace.gate.explain(Access.READ, parsed.requested)
        return decision.index is not None


def _text(path: str) -> str:
    """The path with bytes that are not UTF-8 shown as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class FileGlob:
    """A glob pattern of deepagents: without a slash for names at any depth, else for paths below the root.

    A leading slash anchors a name at the search root. A name with a leading dot is matched only by a part of
    the pattern with a leading dot.
    """

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            PatternError: The pattern is invalid, or expands to too many.
        """
        # A leading dot keeps a single name from matching at any depth.
        self._glob = GlobPattern(f".{text}" if text.startswith("/") else text)
        self.parts = self._glob.parts
        """The equivalent patterns of carrel."""
        self._dotted = [
            Pattern(part)
            for each in self.parts
            for part in each.split("/")
            if part.startswith(".") and part != "."
        ]
        self.enters_hidden = self._glob.anywhere or bool(self._dotted)
        """Whether anything in a hidden directory can match."""

    def matches(self, path: str) -> bool:
        """Whether *path*, relative to the search root, matches."""
        if not self._glob.matches(path):
            return False
        names = path.split("/")
        checked = names[-1:] if self._glob.anywhere else names
        return all(
            any(pattern.matches(name) for pattern in self._dotted) for name in checked if name.startswith(".")
        )
