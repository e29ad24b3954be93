"""Click completers: sessions, their files, tools, roles, shell commands and local files.

Nothing is made, nothing is noted as a use of a session, and no database is opened. Whatever cannot be found
out is no candidate: completion never fails.
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
"""Most values that are looked at."""
WORKSPACE_PREFIXES = ("/workspace/", "/app/")
"""How a path in a session begins where a local one could be meant too."""

CompletionItems = list[CompletionItem[str]]
Completer = Callable[[click.Context, click.Parameter, str], CompletionItems]


def files(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """Local files: the shell knows best."""
    return [CompletionItem("", type="file")]


def directories(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """Local directories."""
    return [CompletionItem("", type="dir")]


def one_of(*values: str) -> Completer:
    """Those of *values* that fit."""
    return lambda ctx, param, word: [CompletionItem(each) for each in values if each.startswith(word)]


def sessions(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The sessions that are there, but for those that are already on the line."""
    given = ctx.params.get(param.name or "") or ()
    return [CompletionItem(name) for name in _session_ids(ctx) if name.startswith(word) and name not in given]


def _session_ids(ctx: click.Context) -> list[str]:
    from carrel.paths.session_id import id_problem

    with suppress(OSError, CarrelError), os.scandir(_place(ctx).sessions_dir) as found:
        names = (each.name for each in found if each.is_dir(follow_symlinks=False))
        return sorted(islice((name for name in names if id_problem(name) is None), MAX_CANDIDATES))
    return []


def _place(ctx: click.Context) -> CliContext:
    given = ctx.find_root().params.get("sessions_dir")
    return CliContext(given=Path(given) if given else None)


def session_files(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """Files and directories of the session that is named before; a directory ends in a slash."""
    return [CompletionItem(path) for path in paths_in(ctx, str(ctx.params.get("session") or ""), word)]


def paths_in(ctx: click.Context, session: str, word: str) -> Iterator[str]:
    """The paths in *session* that begin with *word*."""
    from carrel.fs.local.root import Root
    from carrel.paths.parsed_path import parse
    from carrel.paths.session_id import id_problem

    if id_problem(session) is not None:
        return
    above, slash, begin = word.rpartition("/")
    with suppress(OSError, CarrelError):
        with closing(Root.open(_place(ctx).sessions_dir / session)) as root:
            entries = root.list(parse(above or "."), limit=MAX_CANDIDATES)
        for entry in entries:
            # A hidden one only if that was typed.
            if entry.name.startswith(begin) and (begin or entry.name[0] != "."):
                yield f"{above}{slash}{entry.name}{'/' if entry.is_directory else ''}"


def roles(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The roles of the configuration."""
    return [CompletionItem(name) for name in _roles() if name.startswith(word)]


def _roles() -> Iterable[str]:
    from carrel.config.load import load

    with suppress(CarrelError):
        return load(os.environ).roles
    return ()


def tools(ctx: click.Context, param: click.Parameter, word: str) -> CompletionItems:
    """The tools of the profile and role that are named before, with what they do.

    Without a role all of them: that of the session is in a database.
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
    """The words of `carrel run`: a session, then a script here or in the session."""
    session = ctx.params.get("session")
    if session is None:
        return sessions(ctx, param, word)
    for prefix in WORKSPACE_PREFIXES:
        if word.startswith(prefix):
            inside = paths_in(ctx, session, word.removeprefix(prefix))
            return [CompletionItem(prefix + path) for path in inside]
    return files(ctx, param, word)
