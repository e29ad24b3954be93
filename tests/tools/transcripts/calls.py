"""The calls of the transcripts, by profile, and the files on which they are made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from carrel.testing.tree import tree
from tests.tools.images import png

ANSWER_BYTES = 600
"""Longest text of an answer; short, so that cuts are short to read."""
MODIFIED_NS = 1_700_000_000 * 10**9
CURSOR = "the cursor of the answer before"
"""Argument that stands for the cursor in the last line of the answer before."""
PLOT = png(3, 2).hex()


class Call(NamedTuple):
    """One call."""

    title: str
    tool: str
    arguments: Any  # Any: a model can write any JSON


class Transcript(NamedTuple):
    """Calls on one workspace, one after the other."""

    profile: str
    calls: Sequence[Call]
    role: str = "developer"


def fill(directory: Path) -> None:
    """Create the files in the empty *directory*."""
    tree(
        directory,
        "README.md = # Report\n\nRead me.\n",
        "ci.yaml = # Runs on every push\non: push\nversion: 1.10\nsteps: [lint, 'test']\n",
        'config.json = {\n  "b": 1.10,\n  "a": "\\u00e9"\n}\n',
        'src/app.py = def greet(name):\n\tprint(f"hello {name}")\n\n\ngreet("you")\n',
        "src/util.py = TODO = 1\n# TODO: less\n",
        "long.txt = " + "".join(f"line {number} of a long file\n" for number in range(1, 101)),
        "long.json = [" + ",\n".join(str(number) for number in range(300)) + "]\n",
        "line.txt = " + "x" * 2000,
        "empty.txt = ",
        "latin.txt = gr\udcfcn\n",
        "data.zip = PK\x03\x04\x00\x00",
        *(f"many/file-{number:02}.csv = {number}" for number in range(30)),
        "out => ../outside",
        ".env = SECRET=1\n",
    )
    (directory / "logo.png").write_bytes(png())
    (directory / "broken.png").write_bytes(png()[:-12])
    (directory / "huge.png").write_bytes(png(8001, 1))
    for path in (*directory.rglob("*"), directory):
        os.utime(path, ns=(MODIFIED_NS, MODIFIED_NS), follow_symlinks=False)


def _reads(tool: str, argument: str, **fixed: object) -> list[Call]:
    """The calls that every tool for reading gets."""
    paths = {
        "read yaml": "ci.yaml",
        "read json": "config.json",
        "read code": "/workspace/src/app.py",
        "read a long file": "long.txt",
        "read one endless line": "line.txt",
        "read an empty file": "empty.txt",
        "read an image": "logo.png",
        "read an image that is incomplete": "broken.png",
        "read an image that is too large": "huge.png",
        "read an archive": "data.zip",
        "read text in another encoding": "latin.txt",
        "read a wrong path": "src/main.py",
        "read a directory": "src",
        "read the host": "/etc/passwd",
        "read above the workspace": "../outside/secret",
        "read through a link that leads out": "out/secret",
    }
    return [Call(title, tool, {**fixed, argument: path}) for title, path in paths.items()]


_BASH = [
    Call("list the root", "bash", {"command": "ls"}),
    Call("print code", "bash", {"command": "cat src/app.py"}),
    Call("print nothing", "bash", {"command": "true"}),
    Call("a command that fails", "bash", {"command": "cat ci.yaml missing.txt"}),
    Call("a command that fails silently", "bash", {"command": "grep -q absent ci.yaml"}),
    Call("a command that does not exist", "bash", {"command": "gcc main.c"}),
    Call("output too long", "bash", {"command": "cat long.txt"}),
    Call("the rest of that output", "bash", {"command": "cat long.txt", "cursor": CURSOR}),
    Call("a cursor of another command", "bash", {"command": "cat line.txt", "cursor": CURSOR}),
    Call("one endless line", "bash", {"command": "cat line.txt"}),
    Call("a pipe", "bash", {"command": "cat long.txt | wc -l"}),
    Call("leave the workspace", "bash", {"command": "cat ../../etc/passwd"}),
    Call("write an image", "bash", {"command": "cp logo.png plot.png"}),
    Call("an unknown argument", "bash", {"command": "ls", "workdir": "src"}),
]

_AGENT = [
    *_reads("file_read", "path"),
    Call("read data that is long", "file_read", {"path": "long.json"}),
    Call("read the rest of it", "file_read", {"path": "long.json", "cursor": CURSOR}),
    Call("read lines", "file_read", {"path": "long.txt", "offset": 50, "limit": 3}),
    Call("read lines beyond the end", "file_read", {"path": "README.md", "offset": 50}),
    Call("read the bytes of an image", "file_read", {"path": "logo.png", "encoding": "base64"}),
    Call("read the text as latin-1", "file_read", {"path": "latin.txt", "encoding": "latin-1"}),
    Call("list the root", "file_list", {}),
    Call("list a directory that is long", "file_list", {"path": "many"}),
    Call("list the rest of it", "file_list", {"path": "many", "cursor": CURSOR}),
    Call("list a file", "file_list", {"path": "ci.yaml"}),
    Call("search", "file_search", {"query": "TODO", "context_lines": 1}),
    Call("search in vain", "file_search", {"query": "absent"}),
    Call("search with too many matches", "file_search", {"query": "line", "max_results": 5}),
    Call("search with a pattern that is not valid", "file_search", {"query": "(", "regex": True}),
    Call("edit what was read", "file_edit", {"path": "ci.yaml", "old_text": "1.10", "new_text": "1.11"}),
    Call("edit with stale text", "file_edit", {"path": "ci.yaml", "old_text": "1.10", "new_text": "2"}),
    Call(
        "edit what is there twice", "file_edit", {"path": "src/util.py", "old_text": "TODO", "new_text": "X"}
    ),
    Call("write", "file_write", {"path": "notes.txt", "content": "done\n"}),
    Call("write into a directory that is missing", "file_write", {"path": "a/b.txt", "content": "x"}),
    Call("write outside", "file_write", {"path": "../b.txt", "content": "x"}),
    Call("move onto a file", "file_move", {"source": "notes.txt", "destination": "README.md"}),
    Call("delete a directory that is not empty", "file_delete", {"path": "src"}),
    Call("delete many files", "file_delete", {"path": "many", "pattern": "*.csv"}),
    Call("an unknown argument", "file_read", {"path": "ci.yaml", "lines": 3}),
    Call("an argument of the wrong type", "file_read", {"path": "ci.yaml", "offset": "3"}),
    Call("no argument", "file_read", {}),
    Call("a tool that does not exist", "read_file", {"path": "ci.yaml"}),
    *_BASH,
]
_PYTHON = [
    Call("print", "python_executor", {"code": "print(6 * 7)"}),
    Call("print nothing", "python_executor", {"code": "x = 1"}),
    Call("an error", "python_executor", {"code": "print('before')\n1 / 0"}),
    Call("a syntax error", "python_executor", {"code": "print("}),
    Call("exit", "python_executor", {"code": "import sys; sys.exit(3)"}),
    Call("output too long", "python_executor", {"code": "for n in range(300): print(n)"}),
    Call(
        "the rest of that output",
        "python_executor",
        {"code": "for n in range(300): print(n)", "cursor": CURSOR},
    ),
    Call("too slow", "python_executor", {"code": "while True: pass", "timeout": 1}),
    Call(
        "draw a plot",
        "python_executor",
        {"code": f"open('plot.png', 'wb').write(bytes.fromhex('{PLOT}'))"},
    ),
    Call("read the host", "python_executor", {"code": "print(open('/etc/passwd').read())"}),
    Call("no code", "python_executor", {"code": " "}),
]
_FILES = [
    *_reads("read_file", "path"),
    Call("read data that is long", "read_file", {"path": "long.json"}),
    Call("read the rest of it", "read_file", {"path": "long.json", "cursor": CURSOR}),
    Call("read the bytes of an image", "read_file", {"path": "logo.png", "encoding": "base64"}),
    Call("list the root", "list_directory", {"path": "src"}),
    Call("list a directory that is long", "list_directory", {"path": "many"}),
    Call("list the rest of it", "list_directory", {"path": "many", "cursor": CURSOR}),
    Call("whether a file exists", "exists", {"path": "ci.yaml"}),
    Call("whether a file is missing", "exists", {"path": "missing.txt"}),
    Call("the metadata of a file that is missing", "file_info", {"path": "missing.txt"}),
    Call("write", "write_file", {"path": "notes.txt", "content": "done\n"}),
    Call("write what exists", "write_file", {"path": "notes.txt", "content": "", "force": False}),
    Call("write outside", "write_file", {"path": "../b.txt", "content": "x"}),
    Call("write text as base64", "write_file", {"path": "b", "content": "***", "encoding": "base64"}),
    Call("create a directory", "create_directory", {"path": "new/sub"}),
    Call("create it again", "create_directory", {"path": "new/sub"}),
    Call("delete a directory that is not empty", "delete", {"path": "src"}),
    Call("delete a file", "delete", {"path": "notes.txt"}),
    Call("an unknown argument", "read_file", {"path": "ci.yaml", "lines": 3}),
    Call("a tool that does not exist", "bash", {"command": "ls"}),
]
_EDIT = "str_replace_based_edit_tool"
_EDITOR = [
    *_reads(_EDIT, "path", command="view"),
    Call("read lines", _EDIT, {"command": "view", "path": "long.txt", "view_range": [50, 52]}),
    Call("read lines beyond the end", _EDIT, {"command": "view", "path": "README.md", "view_range": [9, 10]}),
    Call("view a directory that is long", _EDIT, {"command": "view", "path": "."}),
    Call(
        "edit what was read",
        _EDIT,
        {"command": "str_replace", "path": "ci.yaml", "old_str": "1.10", "new_str": "1.11"},
    ),
    Call(
        "edit with stale text",
        _EDIT,
        {"command": "str_replace", "path": "ci.yaml", "old_str": "1.10", "new_str": "2"},
    ),
    Call(
        "edit what is there twice",
        _EDIT,
        {"command": "str_replace", "path": "src/util.py", "old_str": "TODO", "new_str": "X"},
    ),
    Call(
        "insert",
        _EDIT,
        {"command": "insert", "path": "README.md", "insert_line": 2, "insert_text": "New."},
    ),
    Call("create", _EDIT, {"command": "create", "path": "notes.txt", "file_text": "done\n"}),
    Call("create outside", _EDIT, {"command": "create", "path": "../b.txt", "file_text": "x"}),
    Call("an argument of another command", _EDIT, {"command": "view", "path": "src", "old_str": "x"}),
    Call("a command that does not exist", _EDIT, {"command": "undo_edit", "path": "ci.yaml"}),
    *_BASH,
    Call("restart", "bash", {"restart": True}),
]
_CODING = [
    *_reads("read", "file_path"),
    Call("read lines", "read", {"file_path": "long.txt", "view_range": [50, 52]}),
    Call("read lines beyond the end", "read", {"file_path": "README.md", "view_range": [9, 10]}),
    Call("find files", "glob", {"pattern": "**/*.py"}),
    Call("find too many files", "glob", {"pattern": "many/*"}),
    Call("find nothing", "glob", {"pattern": "*.rs"}),
    Call("search", "grep", {"pattern": "TODO|greet"}),
    Call("search with too many matches", "grep", {"pattern": "line"}),
    Call("search with a pattern that is not valid", "grep", {"pattern": "("}),
    Call("edit what was read", "edit", {"file_path": "ci.yaml", "old_string": "1.10", "new_string": "1.11"}),
    Call("edit with stale text", "edit", {"file_path": "ci.yaml", "old_string": "1.10", "new_string": "2"}),
    Call(
        "edit what is there twice",
        "edit",
        {"file_path": "src/util.py", "old_string": "TODO", "new_string": "X"},
    ),
    Call("write", "write", {"file_path": "notes.txt", "content": "done\n"}),
    Call("write outside", "write", {"file_path": "../b.txt", "content": "x"}),
    Call("an unknown argument", "read", {"file_path": "ci.yaml", "offset": 3}),
    *_BASH,
]
_MCP = [
    *_reads("read_text_file", "path"),
    Call("read from a line on", "read_text_file", {"path": "long.txt", "offset": 50}),
    Call("read some lines", "read_text_file", {"path": "long.txt", "offset": 50, "head": 2}),
    Call("read the last lines", "read_text_file", {"path": "long.txt", "tail": 2}),
    Call("read too many of the last lines", "read_text_file", {"path": "long.txt", "tail": 99}),
    Call("read media", "read_media_file", {"path": "logo.png"}),
    Call("read media that is none", "read_media_file", {"path": "data.zip"}),
    Call("read several files", "read_multiple_files", {"paths": ["ci.yaml", "missing.txt", "long.txt"]}),
    Call("list the root", "list_directory", {"path": "."}),
    Call("list a directory that is long", "list_directory", {"path": "many"}),
    Call("list with sizes", "list_directory_with_sizes", {"path": "src", "sortBy": "size"}),
    Call("show a tree", "directory_tree", {"path": "src"}),
    Call("show a tree that is too large", "directory_tree", {"path": "."}),
    Call("find files", "search_files", {"path": ".", "pattern": "**/*.py"}),
    Call("the directories", "list_allowed_directories", {}),
    Call(
        "edit what was read",
        "edit_file",
        {"path": "ci.yaml", "edits": [{"oldText": "1.10", "newText": "1.11"}]},
    ),
    Call(
        "edit with stale text",
        "edit_file",
        {"path": "ci.yaml", "edits": [{"oldText": "1.10", "newText": "2"}]},
    ),
    Call("write", "write_file", {"path": "notes.txt", "content": "done\n"}),
    Call("write outside", "write_file", {"path": "../b.txt", "content": "x"}),
    Call("move onto a file", "move_file", {"source": "notes.txt", "destination": "README.md"}),
    Call("an unknown argument", "read_text_file", {"path": "ci.yaml", "lines": 3}),
]
TRANSCRIPTS: Mapping[str, Transcript] = {
    "agent": Transcript("agent", _AGENT),
    "agent-python": Transcript("agent", _PYTHON),
    "agent-critic": Transcript(
        "agent",
        [
            Call("a tool that the role does not have", "file_write", {"path": "a", "content": "x"}),
            Call("a command that writes", "bash", {"command": "touch a"}),
        ],
        role="critic",
    ),
    "files": Transcript("files", _FILES),
    "editor": Transcript("editor", _EDITOR),
    "coding": Transcript("coding", _CODING),
    "mcp": Transcript("mcp", _MCP),
}
"""By name; `agent-python` needs the guest."""
