"""Errors as results for an agent: one sentence on what is wrong, one on what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from carrel.errors import CarrelError, ChangedError, LimitError, QuotaError
from carrel.paths.parsed_path import PATH_BYTES
from carrel.tools.core.result import ToolResult
from carrel.tools.core.spec import Purpose, Tool, ToolEffect


class AdvisedError(CarrelError):
    """An error that a tool tells in its own words, under a code that is there already."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        then: str = "",
        path: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, path=path)
        self.code = code  # type: ignore[misc]  # that of the error it stands for
        self.then = then
        """What to do next."""
        self.more = dict(more or {})
        """What a program may want to know of it."""


class Advice(NamedTuple):
    """What is said about one code."""

    problem: str = ""
    """Made of the path and so on; the error's own words if it is empty."""
    next: str = ""
    """`{list}` and the like stand for the tool of this role that serves that purpose."""
    otherwise: str = ""
    """What is said if the role has no such tool, or the tool no such argument."""
    needs: tuple[str, ...] = ()
    """The arguments of which `next` means one."""
    is_spoken: bool = True
    """Whether `error` says what to do next; otherwise only the metadata do, as the text is a promise."""


_NOT_ALLOWED = Advice("{doing} {path} is not allowed", "Use session workspace.")
_LOOK = "Check the path."
ADVICE: Mapping[str, Advice] = {
    "access.denied": Advice("Writing {path} is not allowed: it is read-only here", "Only read it."),
    "access.outside": _NOT_ALLOWED,
    "disk.full": Advice(next="Delete what is no longer needed, or write less."),
    "edit.ambiguous": Advice(
        next="Give more of the text around it, or set replace_all.",
        otherwise="Give more of the text around it.",
        needs=("replace_all",),
    ),
    "edit.empty": Advice(next="Give the text that is to be replaced."),
    "edit.identical": Advice(next="Give another new text."),
    "edit.not_found": Advice(
        next="Use {read} and copy the text exactly as it stands there.", otherwise="Copy the text exactly."
    ),
    "limit.depth": Advice(next="Use fewer directories in each other."),
    "limit.file_bytes": Advice("File too large: {asked} bytes (max {limit})", "Write less at once."),
    "limit.list_entries": Advice(next="Ask for a directory beneath it, or for a file by its path."),
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
        "Path was changed meanwhile, nothing was done: {path}",
        "Use {read} again and go on from its version.",
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
        "Path is not a directory: {path}", "Use {list} to see what is there.", _LOOK
    ),
    "path.not_empty": Advice(
        "Directory is not empty: {path}",
        "Set recursive to delete what is in it too.",
        "Delete what is in it first.",
        needs=("recursive",),
    ),
    "path.not_regular": Advice(next="Choose a regular file."),
    "pattern.invalid": Advice(next="Correct the pattern."),
    "quota.bytes": Advice(next="Delete what is no longer needed, or write less.", is_spoken=False),
    "quota.entries": Advice(next="Delete what is no longer needed.", is_spoken=False),
    "shell.metacharacter": Advice(next="Write one plain command, and call again for the next."),
    "shell.syntax": Advice(next="Correct the command."),
    "text.encoding": Advice(
        next="Use encoding base64.", otherwise="Only text can be used here.", needs=("encoding",)
    ),
    "tool.arguments": Advice(next="Correct the arguments and call it again."),
}
"""By code; the others say what they say."""


class Adviser:
    """Knows which tools a role has, and so which ones to recommend."""

    def __init__(self, offered: Mapping[str, Tool]) -> None:
        self._names = {
            purpose: name
            for name, tool in reversed(list(offered.items()))
            for purpose in (tool.purpose, *tool.also)
        }

    def failure(self, error: CarrelError, tool: Tool | None = None) -> ToolResult:
        """The answer that tells of *error*."""
        advice = (
            Advice(next=error.then) if isinstance(error, AdvisedError) else ADVICE.get(error.code, Advice())
        )
        text = _sentence(advice.problem, error, tool) or _own_words(error)
        then = self._next(advice, tool)
        if then and advice.is_spoken:
            text = f"{text} {then}" if text.endswith("?") else f"{text}. {then}"
        metadata: dict[str, Any] = {"code": error.code}
        if error.path is not None:
            # One that is longer is none, and need not be repeated in full.
            metadata["path"] = error.path[:PATH_BYTES]
        if then:
            metadata["next"] = then
        return ToolResult(success=False, error=text, metadata={**metadata, **_more(error)})

    def _next(self, advice: Advice, tool: Tool | None) -> str:
        if advice.needs and not _takes(tool, advice.needs):
            return advice.otherwise
        # Not by `format`: a tool's own advice may quote what the caller wrote.
        text = advice.next
        for purpose in Purpose:
            if f"{{{purpose}}}" in text:
                if (name := self._names.get(purpose)) is None:
                    return advice.otherwise
                text = text.replace(f"{{{purpose}}}", name)
        return text


def _takes(tool: Tool | None, names: Iterable[str]) -> bool:
    """Whether *tool* has an argument of one of *names*."""
    return tool is not None and any(map(tool.load().parameters.takes, names))


def _sentence(template: str, error: CarrelError, tool: Tool | None) -> str:
    """The sentence of *template*; none, if it needs what the error does not know."""
    if not template or error.path is None:
        return ""
    doing = "Writing" if tool is not None and tool.effect is ToolEffect.WRITE else "Reading"
    asked, limit = getattr(error, "asked", None), getattr(error, "limit", None)
    if "{asked}" in template and asked is None:
        return ""
    return template.format(path=error.path, doing=doing, asked=asked, limit=limit)


def _own_words(error: CarrelError) -> str:
    return error.message[:1].upper() + error.message[1:].rstrip(".")


def _more(error: CarrelError) -> dict[str, Any]:
    """What a program may want to know of the error."""
    if isinstance(error, AdvisedError):
        return error.more
    if isinstance(error, LimitError | QuotaError):
        return {"limit": error.limit, "asked": error.asked}
    if isinstance(error, ChangedError):
        return {"version": getattr(error, "version", None)}
    return {}
