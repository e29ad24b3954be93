"""The operations of `Workspace` that change nothing."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from carrel.errors import LimitError, LoopError, MissingError, NotDirectoryError, PathError
from carrel.fs.api import Content, Files, Links, Reader, Wants
from carrel.fs.cancellable import uncancellable
from carrel.paths.glob import Pattern
from carrel.paths.parsed_path import ParsedPath, StrPath
from carrel.policy.rules import Access, Decision, SandboxPolicy
from carrel.values import FileInfo, FileKind, Limits, LineWindow, Named, Position, SearchResult, Usage
from carrel.workspace import search as search_module
from carrel.workspace import text as texts
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.gate import Gate, gated
from carrel.workspace.search import Query, Search, SearchBudget

if TYPE_CHECKING:
    from carrel.workspace.archive.create import ArchiveFormat, LeftOut


class Reading:
    """Everything a workspace can tell."""

    def __init__(self, files: Files, gate: Gate, mount: str) -> None:
        self.gate = gate
        self.mount = mount
        """What those inside call the workspace."""
        self.created_ns: int | None = None
        """When its session was made, which tells it from an earlier one with the same id."""
        self._files = files

    @property
    def session_id(self) -> str | None:
        """The session whose files these are."""
        return self.gate.session_id

    @property
    def limits(self) -> Limits:
        """The ceilings in force."""
        return self.gate.limits

    @property
    def policy(self) -> SandboxPolicy:
        """The rules in force."""
        return self.gate.policy

    @property
    def within(self) -> tuple[str, ...] | None:
        """The directories that alone can be used in a view of the workspace; `None` for all of it."""
        names = self.gate.within
        return None if names is None else tuple(map("/".join, names))

    @property
    def confinement(self) -> str:
        """How paths are kept inside: `kernel`, `walk`, `memory`, or `none` for a policy switched off."""
        return self._files.confinement

    @gated("read")
    def read(self, path: StrPath, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or *length* bytes of it from *offset* on."""
        _require_window(offset, length)
        files, where = self.gate.permit(Access.READ, path)
        data = files.read(where, limit=self.gate.limits.read_bytes, offset=offset, length=length)
        self.gate.log("read", where, size_bytes=len(data))
        return data

    @gated("read")
    def read_with_info(
        self, path: StrPath, *, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """What `read` gives, and what the file was when it was opened.

        Whoever writes later with the version of that never overwrites what they have not read.
        """
        _require_window(offset, length)
        files, where = self.gate.permit(Access.READ, path)
        limit = self.gate.limits.read_bytes
        info, data = files.read_with_info(where, limit=limit, offset=offset, length=length)
        self.gate.log("read", where, size_bytes=len(data))
        return info, data

    def read_text(self, path: StrPath, *, encoding: str = "utf-8") -> str:
        """The content of a file as text: utf-8, ascii, latin-1, or any bytes as base64."""
        path = os.fspath(path)
        return texts.decode(self.read(path), encoding, path)

    @gated("read")
    def read_lines(
        self, path: StrPath, *, start: int = 1, count: int | None = None, encoding: str = "utf-8"
    ) -> LineWindow:
        """Lines *start* to *start* + *count* - 1, counted from 1, of a file that need not fit into memory.

        Raises:
            LimitError: The file or the lines asked for are larger than the limits.
        """
        files, where = self.gate.permit(Access.READ, path)
        reader = files.reader(where)
        self._require_scannable(reader.info, where)
        window = texts.line_window(
            reader.chunks(CHUNK_BYTES),
            start=start,
            count=count,
            encoding=encoding,
            limit=self.gate.limits.read_bytes,
            path=where.requested,
        )
        self.gate.log("read", where, size_bytes=window.size_bytes)
        return window

    def _require_scannable(self, info: FileInfo, where: ParsedPath) -> None:
        limit = self.gate.limits.scan_bytes
        if limit is not None and info.size_bytes > limit:
            raise LimitError(
                "scan_bytes",
                limit=limit,
                asked=info.size_bytes,
                message=f"{where.requested!r} is too large to count its lines: {info.size_bytes} bytes,"
                f" the limit is {limit}",
                path=where.requested,
            )

    def read_chunks(self, path: StrPath, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The content piece by piece, for files larger than memory; the file is opened at once."""
        if chunk_bytes < 1:
            raise ValueError(f"chunk_bytes must be at least 1, not {chunk_bytes}")
        return self.reader(path).chunks(chunk_bytes)

    @gated("read")
    def reader(self, path: StrPath) -> Reader:
        """Open a file to be read by chunks from any place, with what it was when it was opened."""
        files, where = self.gate.permit(Access.READ, path)
        reader = files.reader(where)
        self.gate.log("read", where, size_bytes=reader.info.size_bytes)
        return reader

    @gated("read")
    def read_tree(
        self,
        path: StrPath = ".",
        *,
        enter: Wants | None = None,
        wants: Wants | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> Iterator[Content]:
        """The regular files beneath a directory with their content, names in order, never through a link.

        What is in a directory is left out if *enter* says no to its name, a file if *wants* does. A file that
        cannot be read says so when its content is asked for.

        Raises:
            LimitError: While iterating, as `walk`.
        """
        files, where = self.gate.permit(Access.READ, path)
        self.gate.log("list", where)
        return files.read_tree(where, self.gate.limits, enter=enter, wants=wants, chunk_bytes=chunk_bytes)

    @gated("archive")
    def archive(
        self,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str = "tar",
        left_out: Callable[[LeftOut], None] | None = None,
    ) -> Iterator[bytes]:
        """A directory or a file as the pieces of an archive: `tar`, `tar.gz`, `tar.bz2`, `tar.xz` or `zip`.

        The tree is looked through before this returns; its files are read while the pieces are asked for.
        *left_out* is called with what cannot be in the archive: links that could lead out, FIFOs and the
        like, names that could lead a reader astray.

        Raises:
            LimitError: There are more entries or levels than the limits of a walk allow.
            PathError: A name is not UTF-8, which a zip archive cannot hold.
            ChangedError: While iterating: a large file shrank, so that a tar archive cannot be finished.
        """
        # Late: what packs archives takes long to import, and few workspaces need it.
        from carrel.workspace.archive.create import archive

        return archive(self, path, format, left_out=left_out)

    @gated("stat")
    def stat(self, path: StrPath, *, follow_symlinks: bool = True) -> FileInfo:
        """What is at *path*; with `follow_symlinks=False` a link itself, with its text."""
        files, where = self.gate.permit(Access.READ, path)
        return files.stat(where, Links.FOLLOW if follow_symlinks else Links.KEEP)

    @gated("exists")
    def exists(self, path: StrPath) -> bool:
        """Whether there is anything; a link that leads nowhere inside is nothing."""
        files, where = self.gate.permit(Access.READ, path)
        try:
            files.stat(where, Links.FOLLOW)
        except (MissingError, NotDirectoryError, LoopError):
            return False
        return True

    @gated("list")
    def list(self, path: StrPath = ".") -> builtins.list[FileInfo]:
        """The entries of one directory, sorted by name; links are shown as links."""
        files, where = self.gate.permit(Access.READ, path)
        found = files.list(where, limit=self.gate.limits.list_entries)
        self.gate.log("list", where, file_count=len(found))
        return found

    @gated("list")
    def list_names(self, path: StrPath = ".") -> builtins.list[Named]:
        """The names in one directory, sorted, each with its kind; no entry is looked at, as `list` does."""
        files, where = self.gate.permit(Access.READ, path)
        found = sorted(chain.from_iterable(files.names(where, limit=self.gate.limits.list_entries)))
        self.gate.log("list", where, file_count=len(found))
        return found

    @gated("walk")
    def walk(
        self, path: StrPath = ".", *, enter: Callable[[FileInfo], bool] | None = None
    ) -> Iterator[FileInfo]:
        """Everything beneath a directory, parents first, never through a link.

        What is in a directory is left out if *enter* says no to it.

        Raises:
            LimitError: While iterating: there are more entries or levels than the limits allow. What lies
                deeper is left out and told at the end.
        """
        files, where = self.gate.permit(Access.READ, path)
        self.gate.log("list", where)
        return files.walk(where, self.gate.limits, enter=enter)

    @gated("glob")
    def glob(self, pattern: str, *, hidden: bool = False) -> builtins.list[str]:
        """The paths that match *pattern*, sorted; hidden ones only if asked for or named.

        A pattern without a slash matches names at any depth, one with a slash the whole path; `**` stands
        for any number of directories.
        """
        compiled = Pattern(pattern)
        hidden = hidden or search_module.is_hidden(pattern)
        found = sorted(
            info.path for info in self._matching(compiled) if hidden or not search_module.is_hidden(info.path)
        )
        self.gate.log_listing(pattern, len(found))
        return found

    @gated("list")
    def list_files(self, pattern: str | None = None) -> builtins.list[str]:
        """The paths of all regular files, hidden ones too, sorted; or of those that match *pattern*."""
        compiled = None if pattern is None else Pattern(pattern)
        found = sorted(info.path for info in self._matching(compiled) if info.kind is FileKind.FILE)
        self.gate.log_listing(pattern or "**", len(found))
        return found

    def _matching(self, pattern: Pattern | None) -> Iterator[FileInfo]:
        top = "/".join(pattern.literal_parent) if pattern and pattern.literal_parent else "."
        files, where = self.gate.permit(Access.READ, top)
        return search_module.matching(files, where, pattern, self.gate.limits)

    @gated("search")
    def search(
        self,
        query: str,
        path: StrPath = ".",
        *,
        regex: bool = True,
        ignore_case: bool = False,
        include: str | Sequence[str] = (),
        hidden: bool = False,
        context: int = 0,
        wants: Wants | None = None,
        start: Position | None = None,
        budget: SearchBudget | None = None,
    ) -> SearchResult:
        """Find lines that match *query*, a regular expression of RE2 or, with `regex=False`, plain text.

        Of a directory, the files are searched that one of *include* matches, or all if there is none. Binary
        files are skipped, hidden ones unless *hidden*, and those to whose name *wants* says no. The
        search ends with its budget and then says `truncated`; another one with its `next` as *start* goes on.
        """
        search = Search(
            Query(text=query, regex=regex, ignore_case=ignore_case, context=context),
            budget or SearchBudget(),
        )
        files, where = self.gate.permit(Access.READ, path)
        patterns = [Pattern(each) for each in ([include] if isinstance(include, str) else include)]
        found = search_module.searchable(files, where, patterns, self.gate.limits, hidden=hidden, wants=wants)
        result = search.run(found, start)
        self.gate.log("search", where, match_count=len(result.matches))
        return result

    @gated("usage")
    def usage(self) -> Usage:
        """How much the workspace holds: as it is counted, or counted now where nothing is limited."""
        self.gate.permit(Access.READ, ".")
        return self.gate.ledger.usage()

    @gated("usage")
    def recount(self) -> Usage:
        """Count again how much the workspace holds, also what did not come through the gate."""
        self.gate.permit(Access.READ, ".")
        return self.gate.ledger.recount()

    def explain(self, path: StrPath, access: Access | str = Access.READ) -> Decision:
        """Which rule decides about *path*, and what it says; nothing is read, changed or recorded."""
        decision, files, where = self.gate.explain(Access(access), path)
        if files is None:
            return decision
        try:
            files.stat(where, Links.FOLLOW)
        except PathError:
            return replace(decision, index=None, rule=None, reason="outside workspace")
        except OSError:
            return decision
        return decision

    @gated("stat")
    def host_path(self, path: StrPath) -> Path:
        """Where a path of the workspace lies on the host now; what is opened by it later may be another."""
        files, where = self.gate.permit(Access.READ, path)
        return Path(uncancellable(files).host_path(where))


def _require_window(offset: int, length: int | None) -> None:
    if offset < 0 or (length is not None and length < 0):
        raise ValueError(f"offset and length cannot be negative: {offset}, {length}")
