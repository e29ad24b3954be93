"""Every command of the shell that takes a path, for any one path."""

from __future__ import annotations

import shlex

from carrel.shell.budget import Budget
from carrel.shell.command.table import COMMANDS as TABLE
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace
from tests.attack.operations import AWAY, MINE, MINE_DIRECTORY

READING = (
    "cat {}",
    "cat < {}",
    "cd {} && pwd && ls -la && cat secret",
    "cut -c 1-80 {}",
    "diff {} mine",
    "diff -r mine-directory {}",
    "du -a {}",
    "find {}",
    "find {} -type f -size +0 -printf '%s %p\\n'",
    "find . -newer {}",
    "grep -r '' {}",
    "grep -c . {}",
    "grep -f {} mine",
    "head -c 100 {}",
    "ls -la {}",
    "ls -R {}",
    "ls {}/*",
    "ls {}/**/*",
    "nl {}",
    "realpath {}",
    "sed -n p {}",
    "sort {}",
    "stat -c '%s %F' {}",
    "tac {}",
    "tail -c 100 {}",
    "test -s {}",
    "tree {}",
    "uniq {}",
    "wc {}",
)
"""What changes nothing."""

CHANGING = (
    "cat mine > {}",
    "cat mine >> {}",
    "cat nothing 2> {}",
    "cp -r {} away",
    "cp mine {}",
    "cp -r mine-directory {}",
    "cp -t {} mine",
    "find {} -delete",
    "mkdir {}",
    "mkdir -p {}/new/newer",
    "mv {} away",
    "mv mine {}",
    "mv -f mine-directory {}",
    "rm {}",
    "rm -rf {}",
    "rmdir {}",
    "sed -i s/i/o/ {}",
    "sort mine -o {}",
    "tee {} < mine",
    "tee -a {} < mine",
    "touch {}",
    "touch -d 2001-01-01 {}",
    "touch -r {} mine",
    "uniq mine {}",
)
"""What may change the workspace."""

COMMANDS = tuple(
    text.replace("away", AWAY).replace("mine-directory", MINE_DIRECTORY).replace("mine", MINE)
    for text in (*READING, *CHANGING)
)

for _command in TABLE.values():
    _command.load()  # imported late by the shell, perhaps as a user who may not read it


def run(workspace: Workspace, command: str, path: str) -> tuple[bytes, bytes]:
    """Run *command* on *path*; what it printed until its time was over."""
    shell = BareShell(workspace, pipelines=True, budget=Budget(seconds=0.5))
    result = shell.run(command.replace("{}", shlex.quote(path)))
    return result.stdout[: 2**16], result.stderr
