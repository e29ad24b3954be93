"""Sessions to make the calls on: each door has its own, and all of them look the same."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from carrel.sessions.manager import WorkspaceManager
from carrel.testing import tree
from carrel.values import Limits
from tests.conformance.row import VERSION, Row

MODIFIED_NS = 1_700_000_000 * 10**9
SECRET = "what-only-the-outside-holds"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)
LINES = (
    "a.txt = one\ntwo\nthree\n",
    "d/b.txt = b\ntwo of d\n",
    "d/deep/er/c.txt = c\n",
    ".hidden/h.txt = hidden words\n",
    "crlf.txt = one\r\ntwo\r\nthree\r\n",
    "latin.txt = caf\udce9\n",
    "binary.bin = \x00\x01\udcff\udcfe",
    "a b.txt = spaces\n",
    "ünïcödé.txt = öl\n",
    "%2e%2e/f = literal\n",
    "empty = ",
    "data.yaml = # comment\non: push\nversion: 1.10\n",
    "emptydir/",
    "big.txt = " + "".join(f"line {number} of a long file\n" for number in range(1, 2001)),
    "link => a.txt",
    "dirlink => d",
    "out => ../outside",
    "secret-link => ../outside/secret",
    "dangling => nowhere",
    "loop => loop",
)


@dataclass(slots=True)
class Places:
    """The sessions of a directory; one that a call did not change is used for the next one as well."""

    sessions: Path
    manager: WorkspaceManager
    _known: dict[tuple[str, Limits | None], tuple[str, dict[str, object]]] = field(default_factory=dict)
    _made: int = 0

    def session(self, door: str, row: Row) -> str:
        """Return a session for a call through *door* in its initial state, unaffected by earlier calls."""
        key = door, row.limits
        known = self._known.get(key)
        if known is not None and self.contents(known[0]) == known[1]:
            return known[0]
        self._made += 1
        session = f"{door}-{self._made}"
        self.make(session, row.limits)
        self._known[key] = session, self.contents(session)
        return session

    def make(self, session: str, limits: Limits | None = None) -> None:
        """A new session that looks like every other."""
        self.manager.create(session, limits=limits, ttl_seconds=None).close()
        fill(self.sessions / session)
        with self.manager.open(session) as workspace:
            workspace.recount()

    def arguments(self, session: str, row: Row) -> dict[str, Any]:  # Any: whatever JSON can say
        """The arguments of the call, with the versions that files have in this session."""
        return {name: self._argument(session, value) for name, value in row.arguments.items()}

    def _argument(self, session: str, value: object) -> object:
        if not (isinstance(value, str) and value.startswith(VERSION)):
            return value
        with self.manager.open(session) as workspace:
            return workspace.stat(value.removeprefix(VERSION)).version

    def contents(self, session: str) -> dict[str, object]:
        """What the session holds: kinds, contents, and times that a call can set."""
        return contents(self.sessions / session)


def fill(root: Path) -> None:
    """Build the tree in the empty directory *root*."""
    tree(root, *LINES)
    (root / "dot.png").write_bytes(PNG)
    os.link(root / "empty", root / "hard")
    os.mkfifo(root / "fifo", 0o600)
    for path in (*root.rglob("*"), root):
        os.utime(path, ns=(MODIFIED_NS, MODIFIED_NS), follow_symlinks=False)


def contents(root: Path) -> dict[str, object]:
    """What is in the directory *root*, by names."""
    found: dict[str, object] = {}
    todo = [root]
    while todo:
        for entry in os.scandir(todo.pop()):
            name = entry.path.removeprefix(str(root))
            status = entry.stat(follow_symlinks=False)
            if entry.is_symlink():
                found[name] = ("link", os.readlink(entry.path))
            elif entry.is_dir():
                todo.append(Path(entry.path))
                found[name] = "directory"
            elif entry.is_file():
                is_old = status.st_mtime_ns <= MODIFIED_NS
                found[name] = (Path(entry.path).read_bytes(), status.st_mtime_ns if is_old else "now")
            else:
                found[name] = "other"
    return found
