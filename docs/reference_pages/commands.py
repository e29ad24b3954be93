"""The page about the commands of the shell."""

from __future__ import annotations

from carrel.shell.command.invocation import help_text
from carrel.shell.command.table import COMMANDS
from docs.reference_pages.markdown import page, table


def make() -> str:
    """The page about the commands of the shell."""
    loaded = [(command, command.load()) for command in COMMANDS.values()]
    return page(
        "Commands of the shell",
        """
        The commands of `Shell.run` and `carrel sh`; see [use the shell](../how-to/use-the-shell.md).
        `NAME --help` prints the same. `--` ends the options. Long options may be abbreviated as long as they
        are unambiguous, and options may follow operands unless the usage says otherwise.
        """,
        table(
            ("command", "does", "effect"),
            [
                (f"[`{command.name}`](#{_anchor(command.name)})", command.summary, command.effect)
                for command, _ in loaded
            ],
        ),
        """
        The effect is the strongest one that a command can have: it uses no files (`none`), reads files
        (`read`), changes them (`write`), changes the shell itself (`shell`) or runs guest code (`run`).
        """,
        *(
            f"## {_anchor(command.name)}\n\n```text\n{help_text(command, module).rstrip()}\n```"
            for command, module in loaded
        ),
    )


def _anchor(name: str) -> str:
    """What the heading of a command is called; signs make no anchor."""
    return {":": "colon", "[": "bracket"}.get(name, name)
