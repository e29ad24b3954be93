"""`carrel session`: create, list, show, verify, extend, delete and sweep sessions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.help import Group
from carrel.fronts.cli.option_types import OptionValue, limit_parser, parse_duration, parse_finite_duration
from carrel.fronts.cli.output import (
    arrow,
    display,
    hint,
    print_error,
    print_json,
    render_time,
    stdout_colours,
)

if TYPE_CHECKING:
    from carrel.audit.chain import JournalCheck
    from carrel.errors import CarrelError
    from carrel.sessions.sweeper import SweepResult
    from carrel.values import Limits

MAX_MB = 10**9
"""Largest value of the size options, in MiB."""
MAX_ENTRIES = 10**12
NO_SESSION_HINT = "no sessions yet; create one with: carrel session create"

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(cls=Group)
def session() -> None:
    """Manage sessions."""


# create


@session.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option(
    "--ttl",
    callback=parse_duration,
    metavar="TIME|none",
    help="Idle time after which the session expires: 90 or 90s, 15m, 24h, 7d, or none for never.",
)
@click.option(
    "--max-mb",
    callback=limit_parser(MAX_MB),
    metavar="N|none",
    help="Maximum total size of its files, in MiB.",
)
@click.option(
    "--max-entries",
    callback=limit_parser(MAX_ENTRIES),
    metavar="N|none",
    help="Maximum number of files and directories.",
)
@click.option(
    "--max-file-mb",
    callback=limit_parser(MAX_MB),
    metavar="N|none",
    help="Maximum size of one file, in MiB.",
)
@click.option(
    "--role",
    metavar="NAME",
    shell_complete=completers.roles,
    help="Role whose tools `carrel tool` offers in the session.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=TEXT", help="Attach a label. May be repeated."
)
@json_option
@click.pass_obj
def create(
    context: CliContext,
    session_id: str | None,
    ttl: OptionValue | None,
    max_mb: OptionValue | None,
    max_entries: OptionValue | None,
    max_file_mb: OptionValue | None,
    role: str | None,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a session and print its id.

    Without ID, a new id is generated. Options that are not given default to the configuration. A session that
    is idle for longer than its TTL expires: it can no longer be opened, and `session sweep` removes it.
    """
    from carrel.sessions.manager import new_id
    from carrel.storage.session_record import SessionRecord
    from carrel.values import UNSET

    try:
        # Validates the arguments before the sessions directory is created.
        wanted = SessionRecord(
            session_id=new_id() if session_id is None else session_id,
            created_ns=0,
            used_ns=0,
            role=role,
            limits=_limits(
                context, disk_bytes=_mib(max_mb), entries=max_entries, file_bytes=_mib(max_file_mb)
            ),
            labels=_parse_labels(labels),
        )
    except ValueError as error:
        raise _as_usage_error(error) from None
    with context.manager() as manager:
        manager.create(
            wanted.session_id,
            ttl_seconds=UNSET if ttl is None else ttl.value,
            limits=wanted.limits,
            role=wanted.role,
            labels=wanted.labels,
        ).close()
    if as_json:
        _print_status(context, wanted.session_id)
    else:
        click.echo(wanted.session_id)
        hint(f"open a shell in it with: carrel sh {wanted.session_id}")


def _as_usage_error(error: ValueError) -> Exception:
    """The error itself if it is a `CarrelError`, else a usage error with its message."""
    from carrel.errors import CarrelError

    if isinstance(error, CarrelError):
        return error
    return click.UsageError(f"{error}.", click.get_current_context())


def _mib(amount: OptionValue | None) -> OptionValue | None:
    return amount and OptionValue(None if amount.value is None else amount.value * 2**20)


def _limits(context: CliContext, **given: OptionValue | None) -> Limits | None:
    """The configured limits with those *given* replaced; `None` if none was given."""
    from dataclasses import replace

    changes = {name: amount.value for name, amount in given.items() if amount is not None}
    return replace(context.limits(), **changes) if changes else None


def _parse_labels(words: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{word!r} is not NAME=TEXT.", param_hint="'--label'")
        if name in labels:
            raise click.BadParameter(f"{name!r} is given twice.", param_hint="'--label'")
        labels[name] = text
    return labels


# list


@session.command("list")
@click.option(
    "--after",
    metavar="ID",
    shell_complete=completers.sessions,
    help="List only sessions whose ids sort after this one.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List at most N sessions.")
@json_option
@click.pass_obj
def list_(context: CliContext, after: str | None, limit: int | None, as_json: bool) -> None:
    """List sessions, sorted by id.

    Expired sessions are listed until they are removed. A directory that was never opened as a session is
    listed by name only. Listing changes nothing and does not count as use of a session.
    """
    from carrel.paths.session_id import require_session_id

    if after is not None:
        require_session_id(after)
    manager = context.manager_if_present()
    if manager is None:
        if as_json:
            print_json({"sessions": [], "next_after": None})
        else:
            hint(NO_SESSION_HINT)
        return
    from carrel.fronts.cli.commands.session.listing import SessionPage

    with manager:
        listing = SessionPage(manager, after=after, limit=limit)
        if as_json:
            rows = [row.as_json() for row in listing.rows()]
            print_json({"sessions": rows, "next_after": listing.next_after})
            return
        sys.stdout.writelines(f"{line}\n" for line in listing.lines(stdout_colours()))
        if listing.is_empty and after is None:
            hint(NO_SESSION_HINT)
        if listing.next_after is not None:
            click.echo(f"carrel: more sessions follow; use --after {listing.next_after}", err=True)


# show


@session.command()
@click.argument("session_id", metavar="ID", shell_complete=completers.sessions)
@click.option(
    "--journal", is_flag=True, help="Print the journal of changes and refusals, one record per line."
)
@click.option(
    "--since", type=click.IntRange(min=0), metavar="SEQUENCE", help="Print only records after this one."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Print at most N records.")
@click.option("--follow", is_flag=True, help="Wait for new records until the session is deleted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, or one per record.")
@click.pass_obj
def show(
    context: CliContext,
    session_id: str,
    journal: bool,
    since: int | None,
    limit: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the status of a session, or its journal.

    This does not count as use of the session. Times of the status are local. A line of the journal holds the
    sequence number, time (UTC), actor, operation, path, what was changed, and whether the operation was
    refused or undone.
    """
    if not journal:
        if since is not None or limit is not None or follow:
            problem = "--since, --limit and --follow require --journal."
            raise click.UsageError(problem, click.get_current_context())
        _print_status(context, session_id, as_json=as_json)
        return
    from itertools import islice

    from carrel.fronts.cli.commands.session.journal import as_json as event_as_json
    from carrel.fronts.cli.commands.session.journal import events, line

    sign = arrow(sys.stdout)
    with closing(events(context, session_id, since=since or 0, follow=follow)) as found:
        for event in islice(found, limit):
            if as_json:
                print_json(event_as_json(event))
            else:
                click.echo(line(event, sign))


def _print_status(context: CliContext, session_id: str, *, as_json: bool = True) -> None:
    from carrel.fronts.cli.commands.session.status import as_json as status_as_json
    from carrel.fronts.cli.commands.session.status import lines

    with context.manager_of(session_id) as manager:
        status = manager.status(session_id)
    limits = status.record.limits or context.limits()
    if as_json:
        print_json(status_as_json(status, limits))
    else:
        click.echo("\n".join(lines(status, limits, stdout_colours())))


# verify


@session.command()
@click.argument("session_id", metavar="ID", shell_complete=completers.sessions)
@json_option
@click.pass_obj
def verify(context: CliContext, session_id: str, as_json: bool) -> int:
    """Verify that no record of a session's journal was edited, removed or moved.

    Every record holds a digest of the record before it; the digests of the latest records, the heads, are
    stored separately. Prints the heads, or the first broken record with exit status 1. Anyone who can write
    all files of the journal can also forge a whole chain, so store the heads elsewhere to compare. Verifying
    does not count as use of the session.
    """
    from dataclasses import asdict

    from carrel.service.error_status import ExitStatus

    with context.manager_of(session_id) as manager:
        found = manager.verify(session_id)
    if as_json:
        print_json({"is_whole": found.is_whole, **asdict(found)})
    else:
        _print_check(found)
    return ExitStatus.DONE if found.is_whole else ExitStatus.FAILED


def _print_check(found: JournalCheck) -> None:
    if found.problem is None:
        click.echo(f"whole: {found.records} records")
    else:
        click.echo(f"broken: record {found.broken}: {found.problem}")
    if found.unchained:
        click.echo(f"not checked: {found.unchained} older records, from before records were chained")
    if found.problem is None:
        for name, head in (("changes", found.changes), ("refusals", found.refusals)):
            if head.sequence:
                click.echo(f"head of {name}: {head.sequence} {head.digest}")


# extend


@session.command()
@click.argument("session_id", metavar="ID", shell_complete=completers.sessions)
@click.argument("ttl", metavar="TIME|none", callback=parse_duration)
@json_option
@click.pass_obj
def extend(context: CliContext, session_id: str, ttl: OptionValue, as_json: bool) -> None:
    """Set the TTL of a session and print when it expires.

    TIME, counted from now, is 90 or 90s, 15m, 24h, 7d, or none for never. An expired session can be extended
    until it is removed.
    """
    with context.manager_of(session_id) as manager:
        expires_ns = manager.extend(session_id, ttl.value).expires_ns
    if as_json:
        _print_status(context, session_id)
    else:
        click.echo("never" if expires_ns is None else render_time(expires_ns))


# delete


@session.command()
@click.argument("session_ids", metavar="ID...", nargs=-1, required=True, shell_complete=completers.sessions)
@click.option("--missing-ok", is_flag=True, help="Ignore missing sessions.")
@json_option
@click.pass_obj
def delete(context: CliContext, session_ids: tuple[str, ...], missing_ok: bool, as_json: bool) -> int:
    """Delete sessions with their files and journals, even while they are in use.

    If a session cannot be deleted, the others are deleted nevertheless; the exit status is the highest of all
    errors.
    """
    from carrel.errors import SessionMissingError
    from carrel.paths.session_id import require_session_id
    from carrel.service.error_status import ExitStatus, error_status

    wanted = [require_session_id(each) for each in dict.fromkeys(session_ids)]
    document: dict[str, list[str]] = {"deleted": [], "missing": []}
    problems: list[CarrelError] = []
    for session_id, problem in _delete_each(context, wanted):
        if problem is None:
            document["deleted"].append(session_id)
        elif isinstance(problem, SessionMissingError):
            document["missing"].append(session_id)
        if problem is not None and not (missing_ok and isinstance(problem, SessionMissingError)):
            problems.append(problem)
    if as_json:
        print_json(document)
    for problem in problems:
        print_error(problem.code, problem.message, as_json=as_json)
    return max((error_status(each.code).exit_status for each in problems), default=ExitStatus.DONE)


def _delete_each(context: CliContext, session_ids: list[str]) -> Iterator[tuple[str, CarrelError | None]]:
    """Delete each session and yield its id, with the error if it could not be deleted."""
    from contextlib import nullcontext

    from carrel.errors import CarrelError, SessionMissingError

    with context.manager_if_present() or nullcontext() as manager:
        for session_id in session_ids:
            problem: CarrelError | None = None
            try:
                if manager is None or not manager.delete_workspace(session_id):
                    problem = SessionMissingError(f"no such session: {session_id!r}")
            except CarrelError as error:
                problem = error
            yield session_id, problem


# sweep


@session.command()
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option(
    "--idle",
    callback=parse_finite_duration,
    metavar="TIME",
    help="Remove sessions idle for this long, regardless of their TTL: 90 or 90s, 15m, 24h, 7d.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print a line for every session.")
@json_option
@click.pass_obj
def sweep(context: CliContext, dry_run: bool, idle: OptionValue | None, verbose: bool, as_json: bool) -> int:
    """Remove expired sessions that are not in use.

    Also removes leftovers of killed processes. The exit status is 1 if a session could not be removed.
    """
    from carrel.service.error_status import ExitStatus
    from carrel.sessions.sweeper import SweepResult

    manager = context.manager_if_present()
    result = SweepResult(dry_run=dry_run)
    if manager is not None:
        with manager:
            result = manager.sweep(dry_run=dry_run, idle_seconds=None if idle is None else idle.value)
    if as_json:
        print_json(_sweep_as_json(result))
    else:
        click.echo("\n".join([str(result), *(_sweep_lines(result) if verbose or context.verbose else ())]))
        for session_id, problem in result.errors.items():
            click.echo(f"carrel: {display(session_id)}: {display(problem)}", err=True)
    return ExitStatus.FAILED if result.errors else ExitStatus.DONE


def _sweep_lines(result: SweepResult) -> Iterator[str]:
    for session_id in result.deleted:
        yield f"{'would delete' if result.dry_run else 'deleted'} {display(session_id)}"
    for session_id, reason in result.skipped.items():
        yield f"skipped {display(session_id)}: {reason}"


def _sweep_as_json(result: SweepResult) -> dict[str, Any]:
    return {
        "dry_run": result.dry_run,
        "deleted": result.deleted,
        "skipped": [{"session_id": each, "reason": why} for each, why in result.skipped.items()],
        "errors": [{"session_id": each, "problem": what} for each, what in result.errors.items()],
        "reclaimed_bytes": result.reclaimed_bytes,
        "containers": result.containers,
    }
