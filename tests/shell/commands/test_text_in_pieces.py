"""Commands print the same for any division of their input into chunks."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace

TEXT = (
    b"one two  three\n\n\n\tfour 'five six' \xc3\xa9\xe6\x97\xa5\x00x\nfour\nfour\r\n10 b\n9 a\n\\:\n"
    b" a\\ b \naabbcc--dd--\n1K\n  last one"
)
COMMANDS = [
    "cat",
    "cat -A",
    "cat -nsE",
    "head -n 3",
    "head -n -3",
    "head -c 20",
    "head -c -20",
    "head -z -n 1",
    "tail -n 3",
    "tail -n +3",
    "tail -c 20",
    "tail -c +20",
    "tail -z -n 1",
    "tac",
    "tac -s --",
    "tac -b -s four",
    "wc -lwmcL",
    "sort",
    "sort -k 2n",
    "sort -z",
    "sort -m",
    "uniq -c",
    "uniq -D",
    "cut -d ' ' -f 2",
    "cut -b 2-4",
    "tr a-z A-Z",
    "tr -s 'a-z\\n '",
    "tr -cs 'a-z' '\\n'",
    "nl",
    "nl -ba",
    "tee copy",
    "xargs -n 1 echo",
    "xargs -L 2 echo",
    "xargs -I {} echo [{}]",
    "xargs -0 -n 1 echo",
    "xargs -d e echo",
]


@pytest.mark.parametrize("text", [TEXT, TEXT + b"\n"], ids=["open", "ended"])
@pytest.mark.parametrize("command", COMMANDS)
def test_output_does_not_depend_on_chunks(command: str, text: bytes, tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        shell = BareShell(workspace)
        whole = shell.run(command, stdin=text)
        for size in (1, 2, 3, 7):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            result = shell.run(command, stdin=pieces)
            assert (result.stdout, result.stderr) == (whole.stdout, whole.stderr)
    assert whole.stdout
