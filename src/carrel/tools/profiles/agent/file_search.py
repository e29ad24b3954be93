"""`file_search`: find lines in the files of the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import Cursor, NextCursor, fit_data
from carrel.tools.core.schema import Param
from carrel.tools.operations.glob_pattern import GlobPattern
from carrel.tools.results.lines import one_line
from carrel.tools.results.media import has_media_name
from carrel.values import MIB, Match, Position, SearchResult, ToolResult
from carrel.workspace.search import SearchBudget, is_hidden

FILE_SEARCH_NOTES = (
    "Finds plain text in all files below path, or with regex, an RE2 regular expression. Binary and media"
    " files are skipped. The result is one line per match, as path:line:text. A long result is cut, and its"
    " last line says how to continue."
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
    fitting = fit_data(
        (_render_match(match, args.context_lines) for match in result.matches),
        ctx.options.data_bytes,
        ctx.options.answer_bytes,
    )
    output = fitting.values
    rest = result.matches[len(output) :]
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
    if (next_cursor := _cursor_after(result, len(output))) is not None:
        metadata["next_cursor"] = next_cursor
    if note := _note(result, fitting.shown):
        metadata["note"] = note
    separator = "\n--\n" if args.context_lines else "\n"
    lines = separator.join(map(_render_lines, result.matches[: fitting.shown]))
    return ToolResult(success=True, output=output, metadata=metadata, model_text=lines)


def _cursor_after(result: SearchResult, count: int) -> str | None:
    """Return where to continue after the first *count* matches; `None` if that is not known."""
    position = result.next
    if count < len(result.matches):
        position = Position(result.matches[count].path, result.matches[count].line)
    return None if position is None else Cursor(position.line, position.path).render()


_REASONS = {
    "matches": "there are more matches than max_results",
    "time": "the search took too long",
    "files": "there are too many files",
    "bytes": "the files are too large",
    "entries": "there are too many files",
}


def _note(result: SearchResult, shown: int) -> str:
    """Return the line that says that a model reads only *shown* matches, or that there are none."""
    if shown < len(result.matches):
        reason = "more matches would be too much for one answer"
    elif result.truncated:
        reason = _REASONS.get(result.reason or "", "there are more matches")
    else:
        return "" if shown else "[No matches found]"
    cursor = _cursor_after(result, shown)
    advice = "Narrow path or include" if cursor is None else f"Continue with cursor {cursor!r}"
    return f"[Cut: {reason}. {advice}]"


def _is_searchable(name: str) -> bool:
    return not has_media_name(name)


def _render_match(match: Match, context_lines: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"file": match.path, "line": match.line, "content": match.text}
    if context_lines:
        entry["context"] = [*match.before, match.text, *match.after]
    return entry


def _render_lines(match: Match) -> str:
    """Return a match as `grep` prints it: with its context, if that was requested."""
    path = one_line(match.path)
    first = match.line - len(match.before)
    around = [
        f"{path}-{number}-{text}"
        for number, text in enumerate((*match.before, match.text, *match.after), first)
    ]
    around[len(match.before)] = f"{path}:{match.line}:{match.text}"
    return "\n".join(around)
