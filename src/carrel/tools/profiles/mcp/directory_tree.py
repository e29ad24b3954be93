"""`directory_tree`: a directory and everything below it as a JSON tree."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any

from carrel.errors import CarrelError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.operations.glob_pattern import GlobPattern, compile_patterns
from carrel.values import FileInfo, ToolResult
from carrel.workspace.search import below

DIRECTORY_TREE_NOTES = (
    "Returns JSON: each entry has a name and a type, file or directory, and each directory has children. If"
    " the tree is too large for one result, some directories are marked truncated; request them separately."
)
INDENT = 2
MAX_LEVELS = 64
"""Deepest nesting of the tree; clients may not be able to parse more."""
_CUT_NOTE = (
    "[Cut: entries are left out at the end, and of directories with truncated. Continue with directory_tree"
    " of a subdirectory, or leave others out with excludePatterns]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryTreeArgs:
    """Arguments of `directory_tree`."""

    path: Annotated[str, Param("Path of the directory", minimum=1)]
    exclude_patterns: Annotated[
        tuple[str, ...], Param("Glob patterns of entries to leave out, such as node_modules", maximum=100)
    ] = field(default=(), metadata={"name": "excludePatterns"})


def run_directory_tree(ctx: ToolContext, args: DirectoryTreeArgs) -> ToolResult:
    """Return the tree; if it does not fit, the upper levels come first."""
    excluded = compile_patterns(args.exclude_patterns, ctx.check)
    top = ctx.workspace.stat(args.path)
    tree = _Tree(ctx, top, excluded)
    tree.build(ctx.workspace.list(args.path))
    metadata: dict[str, Any] = {"path": ctx.display_path(top.path), "count": tree.count}
    if tree.is_cut:
        metadata |= {"truncated": True, "note": _CUT_NOTE}
    output = json.dumps(tree.entries, indent=INDENT, ensure_ascii=False)
    return ToolResult(success=True, output=output, metadata=metadata)


class _Tree:
    """Builds the tree level by level, as far as one result can hold it."""

    def __init__(self, ctx: ToolContext, top: FileInfo, excluded: list[GlobPattern]) -> None:
        self._ctx = ctx
        self._top = top
        self._excluded = excluded
        self._room = ctx.options.answer_bytes
        self.entries: list[dict[str, Any]] = []
        self.count = 0
        self.is_cut = False

    def build(self, entries: list[FileInfo]) -> None:
        queue: deque[tuple[FileInfo, int, dict[str, Any]]] = deque()
        root: dict[str, Any] = {"children": self.entries}
        queue += self._add(root, entries, 0)
        while queue:
            info, depth, node = queue.popleft()
            queue += self._add(node, [] if self._mark_if_full(node, depth) else self._list(info), depth)

    def _mark_if_full(self, node: dict[str, Any], depth: int) -> bool:
        """Mark *node* as truncated if nothing may be added to it, and return whether that is so."""
        if self._room > 0 and depth < MAX_LEVELS:
            return False
        node["truncated"] = self.is_cut = True
        return True

    def _list(self, info: FileInfo) -> list[FileInfo]:
        self._ctx.check()
        try:
            return self._ctx.workspace.list(self._ctx.display_path(info.path))
        except CarrelError:
            # A directory that cannot be read, or was deleted since, is shown as empty.
            self._ctx.check()
            return []

    def _add(
        self, node: dict[str, Any], entries: list[FileInfo], depth: int
    ) -> list[tuple[FileInfo, int, dict[str, Any]]]:
        """Add *entries* to *node* and return the directories among them, with depth and node."""
        directories = []
        for info in entries:
            self._ctx.check()
            if any(pattern.matches(below(self._top, info)) for pattern in self._excluded):
                continue
            if self._mark_if_full(node, depth):
                break
            entry: dict[str, Any] = {"name": info.name, "type": "file"}
            if info.is_directory:
                entry |= {"type": "directory", "children": []}
                directories.append((info, depth + 1, entry))
            self._room -= len(json.dumps(entry)) + (len(entry) + 2) * (INDENT * (2 * depth + 1) + 1)
            node["children"].append(entry)
            self.count += 1
        return directories
