"""`file_search`: find lines in the files of the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import Cursor, NextCursor, fit_values
from carrel.tools.core.schema import Param
from carrel.tools.operations.glob_pattern import GlobPattern
from carrel.tools.results.media import has_media_name
from carrel.values import MIB, Match, Position, ToolResult
from carrel.workspace.search import SearchBudget, is_hidden

FILE_SEARCH_NOTES = (
    "Finds plain text in all files below path, or with regex, an RE2 regular expression. Binary and media"
    " files are skipped. A long result is truncated: continue with next_cursor from its metadata."
)
MAX_QUERY_CHARACTERS = 200
MAX_FILES = 100_000
MAX_FILE_BYTES = 10 * MIB
MAX_LINE_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearchArgs:
    """Arguments of `file_search`."""

    query: Annotated[
        str, Param("Text or regular expression to find", minimum=1, maximum=MAX_QUERY_CHARACTERS)
    ]
    path: Annotated[str, Param("Directory or file to search, relative to the workspace")] = "."
    include: Annotated[str | None, Param("Glob pattern of the files to search, such as *.py", minimum=1)] = (
        None
    )
    regex: Annotated[bool, Param("Whether the query is a regular expression")] = False
    case_sensitive: Annotated[bool, Param("Whether upper and lower case differ")] = False
    max_results: Annotated[int, Param("Most lines to return", minimum=1, maximum=1000)] = 20
    context_lines: Annotated[int, Param("Lines to show around each match", minimum=0, maximum=5)] = 0
    include_hidden: Annotated[bool, Param("Include names that begin with a dot")] = False
    cursor: NextCursor = None


def run_file_search(ctx: ToolContext, args: FileSearchArgs) -> ToolResult:
    """Return the matching lines."""
    cursor = Cursor.parse(args.cursor)
    result = ctx.workspace.search(
        args.query,
        args.path or ".",
        regex=args.regex,
        ignore_case=not args.case_sensitive,
        include=() if args.include is None else GlobPattern(args.include).parts,
        hidden=args.include_hidden or (args.include is not None and is_hidden(args.include)),
        context=args.context_lines,
        wants=_is_searchable,
        start=Position(cursor.version, cursor.position) if cursor.version else None,
        budget=SearchBudget(
            matches=args.max_results,
            files=MAX_FILES,
            file_bytes=MAX_FILE_BYTES,
            line_characters=MAX_LINE_CHARACTERS,
        ),
    )
    output = fit_values(
        (_render_match(match, args.context_lines) for match in result.matches), ctx.options.answer_bytes
    )
    rest = result.matches[len(output) :]
    next_position = Position(rest[0].path, rest[0].line) if rest else result.next
    metadata: dict[str, Any] = {
        "query": args.query,
        "directory": ctx.display_path(ctx.workspace.stat(args.path or ".").path),
        "match_count": len(output),
        "truncated": result.truncated or bool(rest),
        "files_searched": result.files_searched,
        "files_skipped": result.files_skipped,
    }
    if rest or result.reason is not None:
        metadata["reason"] = "size" if rest else result.reason
    if next_position is not None:
        metadata["next_cursor"] = Cursor(next_position.line, next_position.path).render()
    return ToolResult(success=True, output=output, metadata=metadata)


def _is_searchable(name: str) -> bool:
    return not has_media_name(name)


def _render_match(match: Match, context_lines: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"file": match.path, "line": match.line, "content": match.text}
    if context_lines:
        entry["context"] = [*match.before, match.text, *match.after]
    return entry
