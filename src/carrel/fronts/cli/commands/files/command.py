"""`carrel files`: list, read, write and remove the files of a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli import local_files
from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.help import Group
from carrel.fronts.cli.output import display, hint, print_json, print_left_out, render_time

if TYPE_CHECKING:
    from carrel.errors import LimitError
    from carrel.values import FileInfo
    from carrel.workspace.archive.create import LeftOut
    from carrel.workspace.archive.extract import Extracted
    from carrel.workspace.workspace import Workspace

FORMATS = ("tar", "tar.gz", "tar.bz2", "tar.xz", "zip")
"""The values of `ArchiveFormat`, repeated here so that `--help` does not import it."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def _parse_lines(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int | None] | None:
    """Parse START:COUNT; without COUNT, all lines from START on."""
    if value is None:
        return None
    start, colon, count = value.partition(":")
    try:
        lines = int(start), int(count) if colon else None
    except ValueError:
        lines = 0, None
    if lines[0] < 1 or (lines[1] or 0) < 0:
        raise click.BadParameter(f"{value!r} is not START:COUNT with lines counted from 1, such as 10:5.")
    return lines


@click.group(cls=Group)
def files() -> None:
    """List, read, write and remove the files of a session."""


@files.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("path", default=".", shell_complete=completers.session_files)
@click.option("-r", "--recursive", is_flag=True, help="List subdirectories recursively.")
@click.option(
    "--pattern",
    metavar="GLOB",
    help="List only matching entries: by name, or if GLOB has a slash, by path below PATH.",
)
@click.option("-l", "--long", is_flag=True, help="Show kind, size and modification time.")
@json_option
@click.pass_obj
def ls(
    context: CliContext,
    session: str,
    path: str,
    recursive: bool,
    pattern: str | None,
    long: bool,
    as_json: bool,
) -> None:
    """List a directory.

    Paths are printed as the other commands accept them, except that directories end in a slash and names with
    unprintable characters are quoted. Links are listed, not followed.
    """
    from carrel.errors import LimitError

    with context.open(session) as workspace:
        listing = _listing(workspace, path, recursive=recursive, pattern=pattern)
        if not as_json:
            render = _long_line if long else _line
            first = next(listing, None)
            if first is None:
                hint(f"nothing to list; copy a file into the session with: carrel files put {session} FILE")
                return
            sys.stdout.writelines(render(info) + "\n" for info in chain([first], listing))
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
    """The matching entries of the directory, or with *recursive* of the whole tree."""
    from carrel.paths.glob import Pattern

    wanted = None if pattern is None else Pattern(pattern)
    top = workspace.stat(path).path
    start = 0 if top == "." else len(top) + 1
    found: Iterable[FileInfo] = workspace.walk(path) if recursive else workspace.list(path)
    for info in found:
        if wanted is None or wanted.matches(info.path[start:]):
            yield info


def _line(info: FileInfo) -> str:
    return display(info.path + "/" if info.is_directory else info.path)


def _long_line(info: FileInfo) -> str:
    return f"{info.kind:<9} {info.size_bytes:>12} {render_time(info.modified_ns):<20} {_line(info)}"


def _as_json(info: FileInfo) -> dict[str, Any]:
    return {
        "path": info.path,
        "kind": info.kind,
        "size_bytes": info.size_bytes,
        "modified_ns": info.modified_ns,
        "mode": f"{info.mode:04o}",
    }


@files.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("path", shell_complete=completers.session_files)
@click.option(
    "--lines",
    metavar="START:COUNT",
    callback=_parse_lines,
    help="Print only COUNT lines, beginning with line START; lines are counted from 1.",
)
@click.option(
    "--encoding",
    metavar="utf-8|ascii|latin-1|base64",
    shell_complete=completers.one_of("utf-8", "ascii", "latin-1", "base64"),
    help="Decode the file with this encoding and print it as UTF-8; base64 prints any bytes as text.",
)
@click.pass_obj
def cat(
    context: CliContext, session: str, path: str, lines: tuple[int, int | None] | None, encoding: str | None
) -> None:
    """Print the content of a file, byte for byte."""
    with context.open(session) as workspace:
        for chunk in _content(workspace, path, lines=lines, encoding=encoding):
            sys.stdout.buffer.write(chunk)


def _content(
    workspace: Workspace, path: str, *, lines: tuple[int, int | None] | None, encoding: str | None
) -> Iterator[bytes]:
    if lines is not None:
        start, count = lines
        # latin-1 maps every byte to a character, so the lines keep their bytes.
        window = workspace.read_lines(path, start=start, count=count, encoding=encoding or "latin-1")
        yield window.text.encode("utf-8" if encoding else "latin-1")
    elif encoding is not None:
        yield workspace.read_text(path, encoding=encoding).encode()
    else:
        yield from workspace.read_chunks(path)


@files.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("local_path", metavar="LOCAL|-", shell_complete=completers.files)
@click.argument("path", required=False, shell_complete=completers.session_files)
@click.option("--extract", is_flag=True, help="Extract the archive LOCAL into the directory PATH.")
@click.option("--no-overwrite", is_flag=True, help="Fail if PATH exists.")
@json_option
@click.pass_obj
def put(
    context: CliContext,
    session: str,
    local_path: str,
    path: str | None,
    extract: bool,
    no_overwrite: bool,
    as_json: bool,
) -> None:
    """Copy a local file or directory, or standard input, into a session.

    The session and the parent directories of PATH are created if they are missing. Without PATH, the file or
    directory keeps its name, and an archive is extracted to the top of the workspace. Files are written
    atomically.

    A directory, or an archive with --extract, is copied completely or not at all. Links in a directory are
    kept if they point inside it, and left out otherwise.
    """
    is_tree = local_path != local_files.STREAM and os.path.isdir(local_path)
    store = _put_archive if extract else _put_tree if is_tree else _put_file
    document = store(context, session, local_path, path, overwrite=not no_overwrite)
    if as_json:
        print_json(document)
    else:
        print_left_out(document.get("left_out", ()))


def _put_file(
    context: CliContext, session: str, local_file: str, path: str | None, *, overwrite: bool
) -> dict[str, Any]:
    if path is None:
        path = _local_name("" if local_file == local_files.STREAM else local_file)
    with local_files.open_source(local_file) as source, context.open_or_create(session) as workspace:
        info = workspace.write_chunks(path, local_files.read_chunks(source, local_file), overwrite=overwrite)
    return _as_json(info)


def _put_archive(
    context: CliContext, session: str, local_file: str, path: str | None, *, overwrite: bool
) -> dict[str, Any]:
    path = "." if path is None else path
    with local_files.open_source(local_file) as source, context.open_or_create(session) as workspace:
        extracted = workspace.extract(local_files.read_chunks(source, local_file), path, overwrite=overwrite)
    return _extracted_as_json(path, extracted)


def _put_tree(
    context: CliContext, session: str, local_directory: str, path: str | None, *, overwrite: bool
) -> dict[str, Any]:
    from carrel.fronts.cli.commands.files.local_directory import UNLIMITED_ARCHIVE, pack_directory

    path = _local_name(os.path.abspath(local_directory)) if path is None else path
    left_out: list[dict[str, str]] = []
    with context.open_or_create(session) as workspace:
        content = pack_directory(local_directory, _append_to(left_out))
        extracted = workspace.extract(
            content, path, format="tar", overwrite=overwrite, limits=UNLIMITED_ARCHIVE
        )
    return {**_extracted_as_json(path, extracted), "left_out": left_out}


def _local_name(local_path: str) -> str:
    """The base name of a local path, which the copy keeps."""
    name = os.path.basename(local_path)
    if not name:
        raise click.UsageError(
            "PATH is required: LOCAL has no name that the copy could keep.", click.get_current_context()
        )
    return name


def _append_to(rows: list[dict[str, str]]) -> Callable[[LeftOut], None]:
    """A callback that appends each entry left out to *rows*."""
    return lambda item: rows.append({"path": item.path, "reason": item.reason})


def _extracted_as_json(path: str, extracted: Extracted) -> dict[str, Any]:
    return {
        "path": path,
        "files": extracted.files,
        "directories": extracted.directories,
        "links": extracted.links,
        "size_bytes": extracted.size_bytes,
    }


@files.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("path", shell_complete=completers.session_files)
@click.argument("local_path", metavar="[LOCAL|-]", required=False, shell_complete=completers.files)
@click.option(
    "--archive",
    "archive_format",
    type=click.Choice(FORMATS),
    help="Write the file or directory as an archive.",
)
@click.option("--force", is_flag=True, help="Replace existing local files.")
@json_option
@click.pass_obj
def get(
    context: CliContext,
    session: str,
    path: str,
    local_path: str | None,
    archive_format: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Copy a file or directory of a session to a local path, or to standard output.

    Without LOCAL, the copy keeps its name and goes to the current directory. It is complete or absent; only
    with --force, files of a directory that were replaced before an error stay replaced.

    Links in a directory are kept if they point inside it, and left out otherwise. A directory that goes to
    standard output, or holds more than 1 GiB, needs --archive.
    """
    if as_json and local_path == local_files.STREAM:
        problem = "--json cannot be combined with -: standard output takes the content itself."
        raise click.UsageError(problem, click.get_current_context())
    left_out: list[dict[str, str]] = []
    note = _append_to(left_out)
    with context.open(session) as workspace:
        if archive_format is not None:
            local_path = local_path or f"{_base_name(path) or session}.{archive_format}"
            archive = workspace.archive(path, format=archive_format, left_out=note)
            _write_local(archive, local_path, force=force)
        else:
            local_path = local_path or _default_local_path(path, session)
            if workspace.stat(path).is_directory:
                _get_tree(workspace.archive(path, left_out=note), local_path, force=force)
            else:
                _write_local(workspace.read_chunks(path), local_path, force=force)
    if as_json:
        print_json({"path": path, "local": local_path, "left_out": left_out})
    else:
        print_left_out(left_out)


def _base_name(path: str) -> str:
    """The base name of a path in a session; empty if it has none."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return "" if name in (".", "..") else name


def _default_local_path(path: str, session: str) -> str:
    """The local path of a copy of *path*; a whole workspace gets the name of its session."""
    name = _base_name(path) or session
    return os.path.join(os.curdir, name) if name == local_files.STREAM else name


def _get_tree(content: Iterable[bytes], local_directory: str, *, force: bool) -> None:
    if local_directory == local_files.STREAM:
        problem = "A directory can go to standard output only with --archive."
        raise click.UsageError(problem, click.get_current_context())
    from carrel.fronts.cli.commands.files.local_directory import LocalDirectoryWriter

    LocalDirectoryWriter(local_directory, fill=force).write(content)


def _write_local(content: Iterable[bytes], local_file: str, *, force: bool) -> None:
    if local_file != local_files.STREAM:
        local_files.LocalFileWriter(local_file, replace=force).write(content)
        return
    for chunk in content:
        sys.stdout.buffer.write(chunk)


@files.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("path", shell_complete=completers.session_files)
@click.option("-r", "--recursive", is_flag=True, help="Remove a directory and its contents.")
@click.option("-f", "--force", is_flag=True, help="Ignore a missing PATH.")
@json_option
@click.pass_obj
def rm(context: CliContext, session: str, path: str, recursive: bool, force: bool, as_json: bool) -> None:
    """Remove a file, a directory, or a link but not its target."""
    from carrel.errors import MissingError

    removed = True
    with context.open(session) as workspace:
        try:
            workspace.remove(path, recursive=recursive)
        except MissingError:
            if not force:
                raise
            removed = False
    if as_json:
        print_json({"path": path, "removed": removed})
