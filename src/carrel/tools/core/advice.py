"""Errors as results for an agent: one sentence on what went wrong, one on what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from carrel.errors import CarrelError, ChangedError, LimitError, QuotaError
from carrel.paths.parsed_path import PATH_BYTES
from carrel.tools.core.spec import Purpose, Tool, ToolEffect
from carrel.values import ToolResult


class AdvisedError(CarrelError):
    """An existing error code with the message and the advice of one tool."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        next: str = "",
        path: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, path=path)
        self.code = code  # type: ignore[misc]  # that of the error it stands for
        self.next = next
        """What to do next."""
        self.details = dict(details or {})
        """Further metadata of the result."""


class Advice(NamedTuple):
    """The wording of the results for one error code."""

    problem: str = ""
    """Template of the first sentence; if empty, the message of the error."""
    next: str = ""
    """What to do next; `{list}` and so on become the name of the role's tool for that purpose."""
    fallback: str = ""
    """What to do next if the role has no such tool, or the tool no such argument."""
    needs: tuple[str, ...] = ()
    """Arguments that `next` refers to; the tool must have one of them."""
    in_message: bool = True
    """Whether `error` includes the advice; if not, only the metadata do, because the text is fixed."""


_NOT_ALLOWED = Advice("{doing} {path} is not allowed", "Use session workspace.")
_LOOK = "Check the path."
ADVICE: Mapping[str, Advice] = {
    "access.denied": Advice("Writing {path} is not allowed: it is read-only here", "Only read it."),
    "access.outside": _NOT_ALLOWED,
    "disk.full": Advice(next="Delete what is no longer needed, or write less."),
    "edit.ambiguous": Advice(
        next="Include more of the surrounding text, or set replace_all.",
        fallback="Include more of the surrounding text.",
        needs=("replace_all",),
    ),
    "edit.empty": Advice(next="Give the text to replace."),
    "edit.identical": Advice(next="Give a new text that differs from the old one."),
    "edit.not_found": Advice(
        next="Use {read} and copy the text exactly as it stands there.", fallback="Copy the text exactly."
    ),
    "limit.depth": Advice(next="Use fewer nested directories."),
    "limit.file_bytes": Advice("File too large: {asked} bytes (max {limit})", "Write less at once."),
    "limit.list_entries": Advice(next="List a subdirectory, or access a file by its path."),
    "limit.output_bytes": Advice(next="Print less."),
    "limit.read_bytes": Advice(
        "File too large: {asked} bytes (max {limit})",
        "Read it in parts, by offset and limit.",
        "Choose a smaller file.",
        needs=("offset",),
    ),
    "limit.time": Advice(next="Ask for less at once, or for more time."),
    "path.absolute": _NOT_ALLOWED,
    "path.busy": Advice(next="Try again."),
    "path.changed": Advice(
        "Path was changed in the meantime, nothing was done: {path}",
        "Use {read} again and continue from its version.",
        _LOOK,
    ),
    "path.escape": _NOT_ALLOWED,
    "path.exists": Advice(
        "Path already exists: {path}",
        "Choose another name, or overwrite it.",
        "Choose another name.",
        needs=("overwrite", "force"),
    ),
    "path.invalid": Advice(next=_LOOK),
    "path.into_itself": Advice(next="Choose another destination."),
    "path.is_directory": Advice(
        "Path is a directory, not a file: {path}", "Use {list} to see what is in it.", _LOOK
    ),
    "path.loop": Advice(next=_LOOK),
    "path.missing": Advice("File not found: {path}", "Use {list} to see what is there.", _LOOK),
    "path.not_directory": Advice(
        "Path is not a directory: {path}", "If it is a file, use {read} to read it.", _LOOK
    ),
    "path.not_empty": Advice(
        "Directory is not empty: {path}",
        "Set recursive to delete what is in it too.",
        "Delete what is in it first.",
        needs=("recursive",),
    ),
    "path.not_regular": Advice(next="Choose a regular file."),
    "pattern.invalid": Advice(next="Correct the pattern."),
    "quota.bytes": Advice(next="Delete what is no longer needed, or write less.", in_message=False),
    "quota.entries": Advice(next="Delete what is no longer needed.", in_message=False),
    "shell.metacharacter": Advice(next="Write one plain command, and call again for the next."),
    "shell.syntax": Advice(next="Correct the command."),
    "text.encoding": Advice(
        next="Use encoding base64.", fallback="Only text can be used here.", needs=("encoding",)
    ),
    "tool.arguments": Advice(next="Correct the arguments and call it again."),
}
"""By error code; other codes use the message of the error alone."""


class Adviser:
    """Renders errors as results, recommending only tools that the role has."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._names = {
            purpose: name
            for name, tool in reversed(list(tools.items()))
            for purpose in (tool.purpose, *tool.also)
        }

    def failure(self, error: CarrelError, tool: Tool | None = None) -> ToolResult:
        """Return the result for *error*, raised by *tool*."""
        advice = (
            Advice(next=error.next) if isinstance(error, AdvisedError) else ADVICE.get(error.code, Advice())
        )
        message = _render_problem(advice.problem, error, tool) or as_sentence(error.message)
        next_step = self._render_next(advice, tool)
        if next_step and advice.in_message:
            message = f"{message} {next_step}" if message.endswith("?") else f"{message}. {next_step}"
        metadata: dict[str, Any] = {"code": error.code}
        if error.path is not None:
            # A longer path is not valid anyway and need not be repeated in full.
            metadata["path"] = error.path[:PATH_BYTES]
        if next_step:
            metadata["next"] = next_step
        return ToolResult(success=False, error=message, metadata={**metadata, **_details(error)})

    def _render_next(self, advice: Advice, tool: Tool | None) -> str:
        if advice.needs and not _accepts_any(tool, advice.needs):
            return advice.fallback
        # Not with `str.format`: the advice of a tool may quote the caller's text.
        text = advice.next
        for purpose in Purpose:
            if f"{{{purpose}}}" in text:
                if (name := self._names.get(purpose)) is None:
                    return advice.fallback
                text = text.replace(f"{{{purpose}}}", name)
        return text


def _accepts_any(tool: Tool | None, names: Iterable[str]) -> bool:
    """Whether *tool* has an argument with one of *names*."""
    return tool is not None and any(map(tool.load().parameters.accepts, names))


def _render_problem(template: str, error: CarrelError, tool: Tool | None) -> str:
    """Fill in *template*; empty if it needs a path or a number that the error does not have."""
    if not template or error.path is None:
        return ""
    doing = "Writing" if tool is not None and tool.effect is ToolEffect.WRITE else "Reading"
    asked, limit = getattr(error, "asked", None), getattr(error, "limit", None)
    if "{asked}" in template and asked is None:
        return ""
    return template.format(path=error.path, doing=doing, asked=asked, limit=limit)


def as_sentence(message: str) -> str:
    """Return *message* with a capital first letter and without its final period."""
    return message[:1].upper() + message[1:].rstrip(".")


def _details(error: CarrelError) -> dict[str, Any]:
    """Return the metadata that only this class of error has."""
    if isinstance(error, AdvisedError):
        return error.details
    if isinstance(error, LimitError | QuotaError):
        return {"limit": error.limit, "asked": error.asked}
    if isinstance(error, ChangedError):
        return {"version": getattr(error, "version", None)}
    return {}
