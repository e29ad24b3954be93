"""`carrel files`: list, read, write and remove the files of a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli import local
from carrel.fronts.cli.place import Place
from carrel.fronts.cli.report import print_json, shown

if TYPE_CHECKING:
    from carrel.errors import LimitError
    from carrel.values import FileInfo
    from carrel.workspace.workspace import Workspace

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def _window(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int | None] | None:
    """Parse START:COUNT; without COUNT, all lines from START on."""
    if value is None:
        return None
    start, colon, count = value.partition(":")
    try:
        window = int(start), int(count) if colon else None
    except ValueError:
        window = 0, None
    if window[0] < 1 or (window[1] or 0) < 0:
        raise click.BadParameter("it must be START:COUNT, with lines counted from 1, like 10:5.")
    return window


@click.group(no_args_is_help=False)
def files() -> None:
    """Files of a session."""


@files.command()
@click.argument("session")
@click.argument("path", default=".")
@click.option("-r", "--recursive", is_flag=True, help="Also list what is in directories.")
@click.option(
    "--pattern", metavar="GLOB", help="Only what matches: a name, or with a slash a path below PATH."
)
@click.option("-l", "--long", is_flag=True, help="Show kind, size and time of change.")
@json_option
@click.pass_obj
def ls(
    place: Place, session: str, path: str, recursive: bool, pattern: str | None, long: bool, as_json: bool
) -> None:
    """List a directory.

    Every path is printed as the other commands take it, but a directory ends in a slash, and a name that does
    not print is quoted. Links are listed, not followed.
    """
    from carrel.errors import LimitError

    with place.open(session) as workspace:
        listing = _listing(workspace, path, recursive=recursive, pattern=pattern)
        if not as_json:
            render = _long_line if long else _line
            sys.stdout.writelines(render(info) + "\n" for info in listing)
            return
        entries: list[dict[str, Any]] = []
        problem: LimitError | None = None
        try:
            entries.extend(_as_json(info) for info in listing)
        except LimitError as error:
            problem = error
        print_json({"path": path, "entries": entries, "complete": problem is None})
        if problem is not None:
            raise problem


def _listing(workspace: Workspace, path: str, *, recursive: bool, pattern: str | None) -> Iterator[FileInfo]:
    """What is in the directory, or beneath it, as far as it matches."""
    from carrel.paths.match import Pattern

    wanted = None if pattern is None else Pattern(pattern)
    top = workspace.stat(path).path
    start = 0 if top == "." else len(top) + 1
    found: Iterable[FileInfo] = workspace.walk(path) if recursive else workspace.list(path)
    for info in found:
        if wanted is None or wanted.matches(info.path[start:]):
            yield info


def _line(info: FileInfo) -> str:
    return shown(info.path + "/" if info.is_directory else info.path)


def _long_line(info: FileInfo) -> str:
    return f"{info.kind:<9} {info.size_bytes:>12} {_time(info.modified_ns // 10**9):<20} {_line(info)}"


def _time(seconds: int) -> str:
    """The time in UTC, or its bare number if a file claims to be from beyond the calendar."""
    from datetime import UTC, datetime

    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"@{seconds}"


def _as_json(info: FileInfo) -> dict[str, Any]:
    return {
        "path": info.path,
        "kind": info.kind,
        "size_bytes": info.size_bytes,
        "modified_ns": info.modified_ns,
        "mode": f"{info.mode:04o}",
    }


@files.command()
@click.argument("session")
@click.argument("path")
@click.option(
    "--lines",
    metavar="START:COUNT",
    callback=_window,
    help="Only COUNT lines from line START on, counted from 1.",
)
@click.option(
    "--encoding",
    metavar="utf-8|ascii|latin-1|base64",
    help="Read the bytes as text in this encoding and print UTF-8; base64 prints any bytes as text.",
)
@click.pass_obj
def cat(
    place: Place, session: str, path: str, lines: tuple[int, int | None] | None, encoding: str | None
) -> None:
    """Print the content of a file, byte for byte."""
    with place.open(session) as workspace:
        for chunk in _content(workspace, path, lines=lines, encoding=encoding):
            sys.stdout.buffer.write(chunk)


def _content(
    workspace: Workspace, path: str, *, lines: tuple[int, int | None] | None, encoding: str | None
) -> Iterator[bytes]:
    if lines is not None:
        start, count = lines
        # latin-1 gives every byte a character, so that the lines come out as they are in the file.
        window = workspace.read_lines(path, start=start, count=count, encoding=encoding or "latin-1")
        yield window.text.encode("utf-8" if encoding else "latin-1")
    elif encoding is not None:
        yield workspace.read_text(path, encoding=encoding).encode()
    else:
        yield from workspace.read_chunks(path)


@files.command()
@click.argument("session")
@click.argument("local_file", metavar="LOCAL|-")
@click.argument("path", required=False)
@click.option("--no-overwrite", is_flag=True, help="Fail if something has that name already.")
@json_option
@click.pass_obj
def put(
    place: Place, session: str, local_file: str, path: str | None, no_overwrite: bool, as_json: bool
) -> None:
    """Store a local file, or standard input, in a session.

    The session and the directories above PATH are made if they are missing. Without PATH, the file keeps its
    name. It appears complete or not at all.
    """
    if path is None:
        if local_file == local.STREAM:
            raise click.UsageError("PATH must be given for standard input.", click.get_current_context())
        path = os.path.basename(local_file)
    with local.open_source(local_file) as source, place.ensure(session) as workspace:
        content = local.chunks(source, local_file)
        info = workspace.write_chunks(path, content, overwrite=not no_overwrite)
    if as_json:
        print_json(_as_json(info))


@files.command()
@click.argument("session")
@click.argument("path")
@click.argument("local_file", metavar="[LOCAL|-]", required=False)
@click.option("--force", is_flag=True, help="Replace the local file if there is one.")
@click.pass_obj
def get(place: Place, session: str, path: str, local_file: str | None, force: bool) -> None:
    """Copy a file of a session to a local file, or to standard output.

    Without LOCAL, the file keeps its name and is put here. It appears complete or not at all.
    """
    with place.open(session) as workspace:
        content = workspace.read_chunks(path)
        if local_file == local.STREAM:
            for chunk in content:
                sys.stdout.buffer.write(chunk)
            return
        name = path.replace("\\", "/").rpartition("/")[2] if local_file is None else local_file
        local.Target(name, replace=force).write(content)


@files.command()
@click.argument("session")
@click.argument("path")
@click.option("-r", "--recursive", is_flag=True, help="Remove a directory with everything in it.")
@click.option("-f", "--force", is_flag=True, help="It is fine if there is nothing.")
@json_option
@click.pass_obj
def rm(place: Place, session: str, path: str, recursive: bool, force: bool, as_json: bool) -> None:
    """Remove a file, a link (never its target) or a directory."""
    from carrel.errors import MissingError

    removed = True
    with place.open(session) as workspace:
        try:
            workspace.remove(path, recursive=recursive)
        except MissingError:
            if not force:
                raise
            removed = False
    if as_json:
        print_json({"path": path, "removed": removed})
