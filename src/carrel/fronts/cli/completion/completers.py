"""Click completers: sessions, their files, tools, roles, shell commands and local files.

Completion creates nothing, does not count as use of a session and opens no database. It never fails: a value
that cannot be looked up is not offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from carrel.errors import CarrelError
from carrel.fronts.cli.context import CliContext

MAX_CANDIDATES = 1_000
"""Maximum number of values looked up."""
WORKSPACE_PREFIXES = ("/workspace/", "/app/")
"""Prefixes that mark a path in a session where a local path is accepted, too."""

CompletionItems = list[CompletionItem[str]]
Completer = Callable[[click.Context, click.Parameter, str], CompletionItems]


def files(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """Local files, completed by the shell."""
    return [CompletionItem("", type="file")]


def directories(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """Local directories, completed by the shell."""
    return [CompletionItem("", type="dir")]


def one_of(*values: str) -> Completer:
    """A completer for a fixed list of values."""
    return lambda ctx, param, word: [CompletionItem(each) for each in values if each.startswith(word)]


def sessions(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The existing sessions, without those already on the line."""
    typed = ctx.params.get(param.name or "") or ()
    return [CompletionItem(name) for name in _session_ids(ctx) if name.startswith(word) and name not in typed]


def _session_ids(ctx: click.Context) -> list[str]:
    from carrel.paths.session_id import id_problem

    with suppress(OSError, CarrelError), os.scandir(_context(ctx).sessions_dir) as found:
        names = (each.name for each in found if each.is_dir(follow_symlinks=False))
        return sorted(islice((name for name in names if id_problem(name) is None), MAX_CANDIDATES))
    return []


def _context(ctx: click.Context) -> CliContext:
    sessions_dir = ctx.find_root().params.get("sessions_dir")
    return CliContext(sessions_dir_option=Path(sessions_dir) if sessions_dir else None)


def session_files(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """Files and directories of the session named earlier on the line; directories end in a slash."""
    return [CompletionItem(path) for path in paths_in(ctx, str(ctx.params.get("session") or ""), word)]


def paths_in(ctx: click.Context, session: str, word: str) -> Iterator[str]:
    """The paths in *session* that begin with *word*."""
    from carrel.fs.local.root import Root
    from carrel.paths.parsed_path import parse
    from carrel.paths.session_id import id_problem

    if id_problem(session) is not None:
        return
    parent, slash, prefix = word.rpartition("/")
    with suppress(OSError, CarrelError):
        with closing(Root.open(_context(ctx).sessions_dir / session)) as root:
            entries = root.list(parse(parent or "."), limit=MAX_CANDIDATES)
        for entry in entries:
            # Hidden files are offered only after a dot was typed.
            if entry.name.startswith(prefix) and (prefix or entry.name[0] != "."):
                yield f"{parent}{slash}{entry.name}{'/' if entry.is_directory else ''}"


def roles(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The configured roles."""
    return [CompletionItem(name) for name in _roles() if name.startswith(word)]


def _roles() -> Iterable[str]:
    from carrel.config.load import load

    with suppress(CarrelError):
        return load(os.environ).roles
    return ()


def tools(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The tools of the profile and role given earlier on the line, with their summaries.

    Without a role, all tools of the profile: the role of the session is in a database.
    """
    from carrel.config.load import load
    from carrel.policy.roles import Role
    from carrel.tools.core.spec import Profile
    from carrel.tools.core.table import TOOLS, tools_of

    name = ctx.params.get("role")
    try:
        profile = Profile(ctx.params.get("profile") or "agent")
        offered = (
            TOOLS[profile] if name is None else tools_of(Role.find(name, load(os.environ).roles), profile)
        )
    except (CarrelError, ValueError):
        return []
    return [
        CompletionItem(name, help=each.summary) for name, each in offered.items() if name.startswith(word)
    ]


def shell_words(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The words of `carrel sh`: a session, then a command, then its operands."""
    session, words = ctx.params.get("session"), ctx.params.get("words") or ()
    if session is None:
        return sessions(ctx, param, word)
    if words:
        return [CompletionItem(path) for path in paths_in(ctx, session, word)]
    from carrel.shell.command.table import COMMANDS

    return [
        CompletionItem(name, help=each.summary) for name, each in COMMANDS.items() if name.startswith(word)
    ]


def script_words(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The words of `carrel run`: a session, then a local script or one in the session."""
    session = ctx.params.get("session")
    if session is None:
        return sessions(ctx, param, word)
    for prefix in WORKSPACE_PREFIXES:
        if word.startswith(prefix):
            paths = paths_in(ctx, session, word.removeprefix(prefix))
            return [CompletionItem(prefix + path) for path in paths]
    return files(ctx, param, word)
