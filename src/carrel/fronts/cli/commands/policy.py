"""`carrel policy`: explain which rule decides about a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.help import Group
from carrel.fronts.cli.output import display, print_json

if TYPE_CHECKING:
    from carrel.policy.rules import Decision, PathRule

ACCESSES = ("read", "write")


@click.group(cls=Group)
def policy() -> None:
    """Explain the path rules."""


@policy.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("path", shell_complete=completers.session_files)
@click.option(
    "--access", type=click.Choice(ACCESSES), help="Check only this kind of access.  [default: both]"
)
@click.option(
    "--allow",
    multiple=True,
    metavar="PATH[:ro|rw]",
    shell_complete=completers.directories,
    help="Add a rule for a host directory, read-only unless it ends in :rw. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def explain(
    context: CliContext, session: str, path: str, access: str | None, allow: tuple[str, ...], as_json: bool
) -> int:
    """Show which rule decides about a path, and its decision.

    The exit status is 0 if every access checked is allowed, and 3 otherwise.
    """
    rules = [_parse_rule(text) for text in allow]
    with context.open(session, allow=rules) as workspace:
        decisions = [workspace.explain(path, each) for each in ((access,) if access else ACCESSES)]
    if as_json:
        print_json({"session_id": session, "path": path, "decisions": [_as_json(each) for each in decisions]})
    else:
        for each in decisions:
            click.echo(_line(each))
    from carrel.service.error_status import ExitStatus

    return ExitStatus.DONE if all(each.allowed for each in decisions) else ExitStatus.REFUSED


def _parse_rule(text: str) -> PathRule:
    from carrel.policy.rules import AccessMode, PathRule

    if not text:
        raise click.BadParameter("the path is empty.", param_hint="'--allow'")
    root, _, mode = text.rpartition(":")
    if root and mode in tuple(AccessMode):
        return PathRule(root, AccessMode(mode))
    return PathRule(text)


def _line(decision: Decision) -> str:
    answer = "allowed" if decision.allowed else "denied"
    reason = "" if decision.reason is None else f": {decision.reason}"
    return f"{decision.access:<5} {answer:<7} by {_rule(decision)}{reason}"


def _rule(decision: Decision) -> str:
    if decision.rule is None:
        return "no rule"
    name = "the workspace" if decision.index == 0 else display(decision.rule.root)
    return f"rule {decision.index}, {name} ({decision.rule.mode})"


def _as_json(decision: Decision) -> dict[str, Any]:
    rule = decision.rule
    return {
        "access": decision.access,
        "allowed": decision.allowed,
        "reason": decision.reason,
        "rule": None
        if rule is None
        else {
            "index": decision.index,
            "root": "/workspace" if decision.index == 0 else rule.root,
            "mode": rule.mode,
        },
    }
