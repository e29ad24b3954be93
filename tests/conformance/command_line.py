"""The command line, in this process: `carrel files` and `carrel tool`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.command_line import execute
from tests.conformance.answer import Answer
from tests.conformance.library import DEVELOPER
from tests.conformance.row import Row

LISTED = ("path", "kind", "size_bytes", "modified_ns")
"""Fields of an entry that the command line has in common with all other doors."""


class CommandLine:
    """Command lines, run one after the other."""

    name = "cli"

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer | None:
        """The answer, or nothing where no command does just that."""
        given = dict(arguments)
        match row.name, sorted(given):
            case "list", ["path"]:
                return self._asked(session, "files", "ls", "--json", "--", session, given["path"])
            case "read_text", ["path"] | ["encoding", "path"]:
                encoding = f"--encoding={given.get('encoding', 'utf-8')}"
                return self._asked(session, "files", "cat", encoding, "--", session, given["path"])
            case "write", ["data", "path"]:
                words = ("files", "put", "--json", "--", session, "-", given["path"])
                return self._asked(session, *words, stdin=given["data"].encode())
            case "remove", ["path"]:
                return self._asked(session, "files", "rm", "--json", "--", session, given["path"])
            case "remove", ["path", "recursive"]:
                return self._asked(session, "files", "rm", "-r", "--json", "--", session, given["path"])
        return None

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        options = (f"--profile={row.profile}", f"--role={row.role or DEVELOPER}")
        status, out, err = self._run(
            "tool", *options, session, row.name, "-", stdin=json.dumps(arguments).encode()
        )
        assert out, err
        answer = json.loads(out)
        assert (status == 0) == answer["success"]
        return Answer.of_tool(answer, session)

    def _asked(self, session: str, *words: str, stdin: bytes = b"") -> Answer:
        # `cat` prints bytes, and takes no option for its errors.
        wants_json = ("--json",) if "cat" not in words else ()
        status, out, err = self._run(*words, stdin=stdin)
        if status == 0:
            if words[1] == "cat":
                return Answer.of(out.decode(), session)
            document = json.loads(out)
            value = document["entries"] if words[1] == "ls" else None if words[1] == "rm" else document
            return Answer.of(value, session).only(*LISTED)
        if wants_json:
            return Answer.of_error(json.loads(err)["error"], session)
        return Answer(message=Answer.of(err.removeprefix("carrel: ").rstrip("\n"), session).value)

    def _run(self, *words: str, stdin: bytes) -> tuple[int, bytes, str]:
        answer = execute("--sessions-dir", str(self._sessions), *words, stdin=stdin)
        return answer.status, answer.out, answer.err

    def close(self) -> None:
        """Nothing is held."""
