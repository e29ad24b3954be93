"""`edit_file`: replace texts in a file, all of them or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from carrel.errors import EditError
from carrel.tools.answer import about
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.store import store
from carrel.tools.text_diff import shortened, text_diff
from carrel.workspace.edit import replace

NOTES = (
    "Each oldText must be in the file exactly once, after the edits before it. Gives the diff; with dryRun,"
    " nothing is changed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One text in place of another."""

    old_text: Annotated[str, Param("The text to replace, exactly as it stands")] = field(
        metadata={"name": "oldText"}
    )
    new_text: Annotated[str, Param("What takes its place")] = field(metadata={"name": "newText"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `edit_file`."""

    path: Annotated[str, Param("Path of the file", least=1)]
    edits: Annotated[tuple[Edit, ...], Param("What to replace, one after another", least=1)]
    dry_run: Annotated[bool, Param("Only show what would change")] = field(
        default=False, metadata={"name": "dryRun"}
    )


def run(ctx: Context, args: Args) -> ToolResult:
    """Make all edits at once, and give the diff."""
    info, before = ctx.workspace.read_with_info(args.path)
    content, diffs = before, []
    for number, edit in enumerate(args.edits):
        ctx.check()
        try:
            done = replace(content, edit.old_text, edit.new_text, replace_all=False, path=args.path)
        except EditError as error:
            raise _numbered(error, number, args) from None
        content = done.content
        diffs.append(done.diff)
    # Of a large file only what each edit did is known.
    diff = text_diff(before, content, args.path, ctx.check) or shortened("".join(diffs))
    if not args.dry_run:
        info = store(ctx, args.path, content, create_dirs=False, if_match=info.version).info
    metadata = {**about(ctx, info), "diff": diff, "dry_run": args.dry_run}
    return ToolResult(success=True, output=f"```diff\n{diff}```", metadata=metadata)


def _numbered(error: EditError, number: int, args: Args) -> EditError:
    """The same error, which says of which edit it is if there are several."""
    if len(args.edits) == 1:
        return error
    problem = error.code.removeprefix("edit.")
    return EditError(problem, f"{error.message}, by edits[{number}]", path=args.path)
