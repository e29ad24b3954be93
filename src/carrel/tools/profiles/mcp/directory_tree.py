"""`directory_tree`: a directory and everything beneath it as a JSON tree."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any

from carrel.errors import CarrelError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.glob_pattern import GlobPattern, compile_patterns
from carrel.values import FileInfo
from carrel.workspace.search import below

DIRECTORY_TREE_NOTES = (
    "Gives JSON: each entry has a name and a type, file or directory, and a directory its children. Where"
    " the tree is too large for one answer, directories say truncated; ask for those alone."
)
INDENT = 2
MAX_LEVELS = 64
"""Who reads the answer may not be able to go deeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryTreeArgs:
    """Arguments of `directory_tree`."""

    path: Annotated[str, Param("Path of the directory", least=1)]
    exclude_patterns: Annotated[
        tuple[str, ...], Param("Glob patterns of what to leave out, such as node_modules", most=100)
    ] = field(default=(), metadata={"name": "excludePatterns"})


def run_directory_tree(ctx: ToolContext, args: DirectoryTreeArgs) -> ToolResult:
    """Give the tree, the upper levels first if there is not room for all."""
    excluded = compile_patterns(args.exclude_patterns, ctx.check)
    top = ctx.workspace.stat(args.path)
    grown = _Tree(ctx, top, excluded)
    grown.grow(ctx.workspace.list(args.path))
    metadata: dict[str, Any] = {"path": ctx.shown(top.path), "count": grown.count}
    if grown.is_cut:
        metadata["truncated"] = True
    output = json.dumps(grown.entries, indent=INDENT, ensure_ascii=False)
    return ToolResult(success=True, output=output, metadata=metadata)


class _Tree:
    """Grows level by level, as far as an answer may hold it."""

    def __init__(self, ctx: ToolContext, top: FileInfo, excluded: list[GlobPattern]) -> None:
        self._ctx = ctx
        self._top = top
        self._excluded = excluded
        self._room = ctx.options.answer_bytes
        self.entries: list[dict[str, Any]] = []
        self.count = 0
        self.is_cut = False

    def grow(self, entries: list[FileInfo]) -> None:
        waiting: deque[tuple[FileInfo, int, dict[str, Any]]] = deque()
        root: dict[str, Any] = {"children": self.entries}
        waiting += self._add(root, entries, 0)
        while waiting:
            info, depth, node = waiting.popleft()
            waiting += self._add(node, [] if self._is_full(node, depth) else self._inside(info), depth)

    def _is_full(self, node: dict[str, Any], depth: int) -> bool:
        if self._room > 0 and depth < MAX_LEVELS:
            return False
        node["truncated"] = self.is_cut = True
        return True

    def _inside(self, info: FileInfo) -> list[FileInfo]:
        self._ctx.check()
        try:
            return self._ctx.workspace.list(self._ctx.shown(info.path))
        except CarrelError:
            # One that nobody can read, or that is gone meanwhile, has nothing to show.
            self._ctx.check()
            return []

    def _add(
        self, node: dict[str, Any], entries: list[FileInfo], depth: int
    ) -> list[tuple[FileInfo, int, dict[str, Any]]]:
        """Put *entries* beneath *node*; gives the directories among them."""
        directories = []
        for info in entries:
            self._ctx.check()
            if any(pattern.matches(below(self._top, info)) for pattern in self._excluded):
                continue
            if self._is_full(node, depth):
                break
            entry: dict[str, Any] = {"name": info.name, "type": "file"}
            if info.is_directory:
                entry |= {"type": "directory", "children": []}
                directories.append((info, depth + 1, entry))
            self._room -= len(json.dumps(entry)) + (len(entry) + 2) * (INDENT * (2 * depth + 1) + 1)
            node["children"].append(entry)
            self.count += 1
        return directories
