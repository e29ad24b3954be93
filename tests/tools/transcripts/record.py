"""Write the transcripts again: `python -m tests.tools.transcripts.record [NAME]...`."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from carrel.tools.core.formats import Format
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace
from tests.tools.transcripts.calls import ANSWER_BYTES, CURSOR, TRANSCRIPTS, Call, Transcript, fill

HERE = Path(__file__).parent
_CURSOR = re.compile(r"cursor '([^']*)'")
_NOW = re.compile(r"20(?:2[4-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z")
_VERSION = re.compile(r"\b[0-9a-f]{2,}-[0-9a-f]+-[0-9a-f]{12,}\b")


def render(name: str) -> dict[str, str]:
    """Make the calls of a transcript, and return the text of each of its files, by file name."""
    transcript = TRANSCRIPTS[name]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "workspace"
        fill(directory)
        (Path(temporary) / "outside").mkdir()
        with Workspace.open(directory) as workspace:
            answers = list(_answers(workspace, transcript))
    return {
        f"{name}.{format}.txt": "\n".join(_render(call, result, format) for call, result in answers)
        for format in Format
    }


def _answers(workspace: Workspace, transcript: Transcript) -> Iterator[tuple[Call, ToolResult]]:
    cursor = ""
    with Toolbox(
        workspace, transcript.role, profile=transcript.profile, here=True, answer_bytes=ANSWER_BYTES
    ) as toolbox:
        for call in transcript.calls:
            arguments = {key: cursor if value == CURSOR else value for key, value in call.arguments.items()}
            result = toolbox.call(call.tool, arguments)
            cursor = (_CURSOR.findall(result.text()) or [cursor])[-1]
            yield call, result


def _render(call: Call, result: ToolResult, format: Format) -> str:
    """Render one call: its title, the call as the model makes it, and the blocks that the model sees."""
    lines = [f"# {call.title}", f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}"]
    lines.append("succeeds" if result.success else "fails")
    for block in result.content(format):
        lines += _render_block(block)
    text = "\n".join(lines) + "\n"
    return _NOW.sub("NOW", _VERSION.sub("VERSION", text))


def _render_block(block: dict[str, Any]) -> Iterator[str]:
    """Yield the JSON of a block; the text of a block of text follows, line by line."""
    text = block.pop("text", None)
    yield f"- {json.dumps(block)}"
    if text is not None:
        yield from (f"  | {line}" if line else "  |" for line in text.split("\n"))


def main(names: list[str]) -> None:
    """Write the files of the transcripts *names*, by default of all."""
    for name in names or TRANSCRIPTS:
        for file, text in render(name).items():
            (HERE / file).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
