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
from carrel.fronts.cli.output import display, hint, print_error, print_json, render_time, stdout_colours

if TYPE_CHECKING:
    from carrel.audit.chain import JournalCheck
    from carrel.errors import CarrelError
    from carrel.sessions.sweeper import SweepResult
    from carrel.values import Limits

MAX_MB = 10**9
MAX_ENTRIES = 10**12
NO_SESSION_HINT = "there is no session yet; make one: carrel session create"

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(cls=Group)
def session() -> None:
    """Make, look at, prolong and remove sessions."""


# create


@session.command()
@click.argument("session_id", metavar="[ID]", required=False)
@click.option(
    "--ttl",
    callback=parse_duration,
    metavar="TIME|none",
    help="How long it may be idle: 90 or 90s, 15m, 24h, 7d, none for ever.",
)
@click.option(
    "--max-mb", callback=limit_parser(MAX_MB), metavar="N|none", help="Most MiB of files that it may hold."
)
@click.option(
    "--max-entries", callback=limit_parser(MAX_ENTRIES), metavar="N|none", help="Most files and directories."
)
@click.option("--max-file-mb", callback=limit_parser(MAX_MB), metavar="N|none", help="Most MiB of one file.")
@click.option(
    "--role",
    metavar="NAME",
    shell_complete=completers.roles,
    help="The role whose tools `carrel tool` offers in it.",
)
@click.option(
    "--label", "labels", multiple=True, metavar="NAME=TEXT", help="A note about it. May be repeated."
)
@json_option
@click.pass_obj
def create(
    place: CliContext,
    session_id: str | None,
    ttl: OptionValue | None,
    max_mb: OptionValue | None,
    max_entries: OptionValue | None,
    max_file_mb: OptionValue | None,
    role: str | None,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a new session, and print its id.

    Without ID, it gets a fresh one. What is not given is as configured. A session that nobody uses for its
    TTL has expired: it cannot be opened any more, and `session sweep` removes it.
    """
    from carrel.sessions.manager import new_id
    from carrel.storage.session_record import SessionRecord
    from carrel.values import UNSET

    try:
        # Makes nothing, but refuses what cannot be, before the sessions directory is made.
        wanted = SessionRecord(
            session_id=new_id() if session_id is None else session_id,
            created_ns=0,
            used_ns=0,
            role=role,
            limits=_limits(place, disk_bytes=_mib(max_mb), entries=max_entries, file_bytes=_mib(max_file_mb)),
            labels=_parse_labels(labels),
        )
    except ValueError as error:
        raise _usage(error) from None
    with place.manager() as manager:
        manager.create(
            wanted.session_id,
            ttl_seconds=UNSET if ttl is None else ttl.value,
            limits=wanted.limits,
            role=wanted.role,
            labels=wanted.labels,
        ).close()
    if as_json:
        _print_status(place, wanted.session_id)
    else:
        click.echo(wanted.session_id)
        hint(f"work in it: carrel sh {wanted.session_id}")


def _usage(error: ValueError) -> Exception:
    """The error itself if it is one of ours, else one that tells about bad usage."""
    from carrel.errors import CarrelError

    if isinstance(error, CarrelError):
        return error
    return click.UsageError(f"{error}.", click.get_current_context())


def _mib(amount: OptionValue | None) -> OptionValue | None:
    return amount and OptionValue(None if amount.value is None else amount.value * 2**20)


def _limits(place: CliContext, **given: OptionValue | None) -> Limits | None:
    """The configured ceilings with those that were *given*; `None` if none was."""
    from dataclasses import replace

    changes = {name: amount.value for name, amount in given.items() if amount is not None}
    return replace(place.limits(), **changes) if changes else None


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
    help="Only those whose ids come after this one.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@json_option
@click.pass_obj
def list_(place: CliContext, after: str | None, limit: int | None, as_json: bool) -> None:
    """List the sessions in the order of their ids.

    One that has expired is listed until it is removed. A directory that nobody has opened as a session yet
    is listed by its name alone; looking does not change that, and is no use of any session.
    """
    from carrel.paths.session_id import require_session_id

    if after is not None:
        require_session_id(after)
    manager = place.existing()
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
            click.echo(f"carrel: there are more; go on with --after {listing.next_after}", err=True)


# show


@session.command()
@click.argument("session_id", metavar="ID", shell_complete=completers.sessions)
@click.option("--journal", is_flag=True, help="Print what was changed and refused in it, one line a record.")
@click.option(
    "--since", type=click.IntRange(min=0), metavar="SEQUENCE", help="Only the records after this one."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N of these records.")
@click.option("--follow", is_flag=True, help="Wait for more records until the session is deleted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, or one a record.")
@click.pass_obj
def show(
    place: CliContext,
    session_id: str,
    journal: bool,
    since: int | None,
    limit: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show what is known about a session, or its journal.

    Looking is no use of the session: it expires as if nobody had looked. A line of the journal holds the
    sequence number, time, actor, operation, path, sizes before and after, and what became of it if it was
    refused or undone.
    """
    if not journal:
        if since is not None or limit is not None or follow:
            problem = "--since, --limit and --follow go with --journal only."
            raise click.UsageError(problem, click.get_current_context())
        _print_status(place, session_id, as_json=as_json)
        return
    from itertools import islice

    from carrel.fronts.cli.commands.session.journal import as_json as event_as_json
    from carrel.fronts.cli.commands.session.journal import events, line

    with closing(events(place, session_id, since=since or 0, follow=follow)) as found:
        for event in islice(found, limit):
            if as_json:
                print_json(event_as_json(event))
            else:
                click.echo(line(event))


def _print_status(place: CliContext, session_id: str, *, as_json: bool = True) -> None:
    from carrel.fronts.cli.commands.session.status import as_json as status_as_json
    from carrel.fronts.cli.commands.session.status import lines

    with place.around(session_id) as manager:
        status = manager.status(session_id)
    limits = status.record.limits or place.limits()
    if as_json:
        print_json(status_as_json(status, limits))
    else:
        click.echo("\n".join(lines(status, limits, stdout_colours())))


# verify


@session.command()
@click.argument("session_id", metavar="ID", shell_complete=completers.sessions)
@json_option
@click.pass_obj
def verify(place: CliContext, session_id: str, as_json: bool) -> int:
    """Check that no record of a session's journal was edited, removed or moved.

    Every record holds a digest of the one before it, and the latest are kept apart. Prints these heads, or
    the first record that is broken; the exit status is 1 then. Whoever can write all files of the journal can
    write another chain as well, so keep the heads elsewhere to compare. Checking is no use of the session.
    """
    from dataclasses import asdict

    from carrel.service.error_status import ExitStatus

    with place.around(session_id) as manager:
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
def extend(place: CliContext, session_id: str, ttl: OptionValue, as_json: bool) -> None:
    """Let a session be idle for TIME from now on, and print when it expires.

    TIME is 90 or 90s, 15m, 24h, 7d, or none for ever. Also a session that has expired can be extended, as
    long as it is not removed.
    """
    with place.around(session_id) as manager:
        expires_ns = manager.extend(session_id, ttl.value).expires_ns
    if as_json:
        _print_status(place, session_id)
    else:
        click.echo("never" if expires_ns is None else render_time(expires_ns))


# delete


@session.command()
@click.argument("session_ids", metavar="ID...", nargs=-1, required=True, shell_complete=completers.sessions)
@click.option("--missing-ok", is_flag=True, help="It is fine if there is no such session.")
@json_option
@click.pass_obj
def delete(place: CliContext, session_ids: tuple[str, ...], missing_ok: bool, as_json: bool) -> int:
    """Remove sessions with their files and journals, also while they are used.

    If one of them cannot be removed, the others are all the same. The exit status then tells of the worst
    problem.
    """
    from carrel.errors import SessionMissingError
    from carrel.paths.session_id import require_session_id
    from carrel.service.error_status import ExitStatus, error_status

    wanted = [require_session_id(each) for each in dict.fromkeys(session_ids)]
    document: dict[str, list[str]] = {"deleted": [], "missing": []}
    problems: list[CarrelError] = []
    for session_id, problem in _deleted(place, wanted):
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


def _deleted(place: CliContext, session_ids: list[str]) -> Iterator[tuple[str, CarrelError | None]]:
    """Delete each session; what went wrong with it, if anything."""
    from contextlib import nullcontext

    from carrel.errors import CarrelError, SessionMissingError

    with place.existing() or nullcontext() as manager:
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
@click.option("--dry-run", is_flag=True, help="Only tell what would be removed.")
@click.option(
    "--idle",
    callback=parse_finite_duration,
    metavar="TIME",
    help="Remove what was idle for so long, whatever its TTL: 90 or 90s, 15m, 24h, 7d.",
)
@click.option("-v", "--verbose", is_flag=True, help="Tell what became of each session.")
@json_option
@click.pass_obj
def sweep(place: CliContext, dry_run: bool, idle: OptionValue | None, verbose: bool, as_json: bool) -> int:
    """Remove every session that has expired and that nobody uses.

    Also removes what killed processes left behind. The exit status is 1 if a session could not be removed.
    """
    from carrel.service.error_status import ExitStatus
    from carrel.sessions.sweeper import SweepResult

    manager = place.existing()
    result = SweepResult(dry_run=dry_run)
    if manager is not None:
        with manager:
            result = manager.sweep(dry_run=dry_run, idle_seconds=None if idle is None else idle.value)
    if as_json:
        print_json(_swept_as_json(result))
    else:
        click.echo("\n".join([str(result), *(_swept(result) if verbose or place.verbose else ())]))
        for session_id, problem in result.errors.items():
            click.echo(f"carrel: {display(session_id)}: {display(problem)}", err=True)
    return ExitStatus.FAILED if result.errors else ExitStatus.DONE


def _swept(result: SweepResult) -> Iterator[str]:
    for session_id in result.deleted:
        yield f"{'would delete' if result.dry_run else 'deleted'} {display(session_id)}"
    for session_id, reason in result.skipped.items():
        yield f"skipped {display(session_id)}: {reason}"


def _swept_as_json(result: SweepResult) -> dict[str, Any]:
    return {
        "dry_run": result.dry_run,
        "deleted": result.deleted,
        "skipped": [{"session_id": each, "reason": why} for each, why in result.skipped.items()],
        "errors": [{"session_id": each, "problem": what} for each, what in result.errors.items()],
        "reclaimed_bytes": result.reclaimed_bytes,
        "containers": result.containers,
    }
