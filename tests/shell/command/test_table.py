"""Every command has a row in the table, a module and a help text."""

from __future__ import annotations

from pathlib import Path

import pytest

import carrel.shell.commands
from carrel.shell.command.table import COMMANDS, CommandSpec
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace

EVERY = [pytest.param(command, id=name) for name, command in COMMANDS.items()]


@pytest.mark.parametrize("command", EVERY)
def test_a_file_says_what_its_row_says(command: CommandSpec) -> None:
    module = command.load()
    if not command.module:
        assert module.__doc__ == command.summary[0].upper() + command.summary[1:] + "."
    assert isinstance(module.USAGE, str)
    assert callable(module.run)


@pytest.mark.parametrize("command", EVERY)
def test_every_command_has_a_help_text(command: CommandSpec, tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        result = BareShell(workspace).run(f"{command.name} --help")
        assert BareShell(workspace).run(f"help '{command.name}'").stdout == result.stdout
    assert (result.exit_code, result.stderr) == (0, b"")
    assert result.stdout.decode().startswith(f"Usage: {command.name}")
    assert command.summary[1:] in result.stdout.decode()
    assert list(tmp_path.iterdir()) == []


def test_rows_are_in_order_and_every_file_has_one() -> None:
    assert list(COMMANDS) == sorted(COMMANDS)
    top = Path(carrel.shell.commands.__path__[0])
    files = {path.stem for path in top.glob("*.py")} - {"__init__"}
    files |= {path.parent.name for path in top.glob("*/command.py")}
    assert {command.module or command.name for command in COMMANDS.values()} == files
