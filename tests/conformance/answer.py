"""What a call answered, in a form in which the answers of all doors can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel.errors import CarrelError
from carrel.fronts.mcp.responses import MEDIA_TOOL
from carrel.remote.json_codec import parse
from carrel.values import ToolResult
from tests.conformance.place import MODIFIED_NS

REQUEST = "request.invalid"
"""The code of arguments that the library itself could not be given."""
_VOLATILE = frozenset({"inode", "accessed_ns", "created_ns", "blocks", "links_inode", "retry"})
"""Fields that differ from one place to another of the same look, or that only the wire has."""
_TIMES = frozenset({"duration_ms", "duration_seconds", "elapsed_ms", "execution_time_ms", "duration"})
_VERSION = re.compile(r"\b[0-9a-f]{2,}-[0-9a-f]+-[0-9a-f]{12,}\b")
_NOW = re.compile(
    r"\b20(?:2[4-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?"
    r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]{3,40}20(?:2[4-9]|[3-9]\d)[^\n]*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A value or an error, without the parts that may differ between doors."""

    value: Any = None  # Any: whatever JSON can say
    code: str | None = None
    message: str | None = None
    path: str | None = None

    @classmethod
    def of(cls, document: Any, session: str) -> Answer:
        """The answer of a call that succeeded."""
        return cls(value=plain(document, session))

    @classmethod
    def of_tool(cls, result: ToolResult | Mapping[str, Any], session: str) -> Answer:
        """The answer of a tool, from the result or its JSON document, with what a model sees of it."""
        if not isinstance(result, ToolResult):
            return cls.of_tool(parse(result, ToolResult), session)
        return cls.of({**result.to_dict(), "content": result.content("mcp")}, session)

    @classmethod
    def of_error(cls, error: CarrelError | Mapping[str, Any], session: str) -> Answer:
        """The answer of a call that failed, from the error or its JSON document."""
        if isinstance(error, CarrelError):
            error = {"code": error.code, "message": error.message, "path": error.path}
        message, path = error.get("message"), error.get("path")
        return cls(
            code=error["code"],
            message=None if message is None else _text(message, session),
            path=None if path is None else _text(path, session),
        )

    def agrees(self, other: Answer) -> bool:
        """Whether both are equal; for an error without a code, whether the messages are."""
        if self.code is None and self.message is not None:
            return self.message == other.message
        return self == other

    def over_mcp(self, profile: str, name: str) -> Answer:
        """The answer of a tool as the protocol has it.

        A tool that is not there is an error of the protocol, which does not list the others. The compatible
        set gives texts, as the server does whose set it is.
        """
        output, error = self.value.get("output"), self.value.get("error")
        if self.value["metadata"].get("code") == "tool.unknown":
            value = {**self.value, "error": error.partition(". ")[0]}
            del value["content"]
            return Answer(value=value)
        value = {name: each for name, each in self.value.items() if name not in ("model_text", "images")}
        if profile == "mcp" and self.value["success"] and not isinstance(output, str):
            value["output"] = json.dumps(output, ensure_ascii=False)
        if name == MEDIA_TOOL and self.value["success"]:
            # As with the server whose set it is, there is only the image, without a text.
            del value["content"]
        return Answer(value=value)

    def only(self, *names: str) -> Answer:
        """The answer with only these fields of its value, or of each entry in it, for doors with fewer."""
        if isinstance(self.value, list):
            return Answer(value=[_some(each, names) for each in self.value])
        return Answer(value=_some(self.value, names)) if self.code is None else self


def _some(value: Any, names: tuple[str, ...]) -> Any:
    return {name: value[name] for name in names} if isinstance(value, dict) else value


def plain(document: Any, session: str) -> Any:
    """*document* without what differs between two places that look the same."""
    match document:
        case str():
            return _text(document, session)
        case Mapping():
            return {
                _text(name, session): _field(name, each, session)
                for name, each in document.items()
                if name not in _VOLATILE
            }
        case list() | tuple():
            return [plain(each, session) for each in document]
    return document


def _field(name: str, value: Any, session: str) -> Any:
    if name in _TIMES:
        return "some time"
    if name == "version" and value is not None:
        return "VERSION"
    if name in ("modified_ns", "mtime_ns") and isinstance(value, int) and value > MODIFIED_NS + 10**9:
        return value if value == 10**18 else "now"
    return plain(value, session)


def _text(text: str, session: str) -> str:
    return _NOW.sub("NOW", _VERSION.sub("VERSION", text.replace(session, "SESSION")))
