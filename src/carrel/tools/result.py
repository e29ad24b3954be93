"""`ToolResult`: what a tool answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one call of a tool did, or why it did not.

    Everything in it can be written as JSON, and nothing in it is about the host.
    """

    success: bool
    output: Any = None
    """What the tools for agents give; whatever JSON can say."""
    data: Any = None
    """What the filesystem operations give, instead of `output`."""
    error: str | None = None
    """What is wrong, and what to do next."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What else is to be known: paths, sizes, versions, changes, the code of an error."""

    @property
    def code(self) -> str | None:
        """The stable code of the error."""
        code = self.metadata.get("code")
        return None if code is None else str(code)

    def to_dict(self) -> dict[str, Any]:
        """The envelope: `success`, `output` or `data`, `error` if it failed, `metadata`."""
        document: dict[str, Any] = {"success": self.success}
        if self.data is not None:
            document["data"] = self.data
        elif self.success or self.output is not None:
            document["output"] = self.output
        if self.error is not None:
            document["error"] = self.error
        document["metadata"] = dict(self.metadata)
        return document

    def to_json(self) -> str:
        """The envelope on one line of ASCII."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def text(self) -> str:
        """What a model reads: the output as it is if it is a text, else as JSON; of a failure both."""
        payload = self.output if self.data is None else self.data
        if payload is None or isinstance(payload, str):
            said = payload or ""
        else:
            said = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        text = "\n".join(part for part in (said, self.error) if part)
        # Half a surrogate, which JSON can name, cannot be written as UTF-8.
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
