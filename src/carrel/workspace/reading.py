"""`ReadOperations`: the operations of `Workspace` that change nothing."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from carrel.errors import LimitError, LoopError, MissingError, NotDirectoryError, PathError
from carrel.fs.api import Content, Links, Reader, Wants
from carrel.fs.cancellable import uncancellable
from carrel.paths.glob import Pattern
from carrel.paths.parsed_path import ParsedPath, StrPath
from carrel.policy.rules import Access, Decision
from carrel.values import FileInfo, FileKind, LineWindow, Named, Position, SearchResult, Usage
from carrel.workspace import search as search_module
from carrel.workspace import text as texts
from carrel.workspace.chunks import CHUNK_BYTES
from carrel.workspace.gate import Gate, gated
from carrel.workspace.search import Query, Search, SearchBudget

if TYPE_CHECKING:
    from carrel.workspace.archive.create import ArchiveFormat, LeftOut


class ReadOperations:
    """The operations of a workspace that change nothing; all state is in its gate."""

    gate: Gate

    @gated("read")
    def read(self, path: StrPath, *, offset: int = 0, length: int | None = None) -> bytes:
        """Return the content of a file, or *length* bytes from *offset*."""
        _require_window(offset, length)
        files, parsed = self.gate.permit(Access.READ, path)
        data = files.read(parsed, limit=self.gate.limits.read_bytes, offset=offset, length=length)
        self.gate.log("read", parsed, size_bytes=len(data))
        return data

    @gated("read")
    def read_with_info(
        self, path: StrPath, *, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """Return the metadata of a file when it was opened, and its content as `read` does.

        A later write with `if_version` set to that version overwrites only what was read.
        """
        _require_window(offset, length)
        files, parsed = self.gate.permit(Access.READ, path)
        limit = self.gate.limits.read_bytes
        info, data = files.read_with_info(parsed, limit=limit, offset=offset, length=length)
        self.gate.log("read", parsed, size_bytes=len(data))
        return info, data

    def read_text(self, path: StrPath, *, encoding: str = "utf-8") -> str:
        """Return the content of a file as text: utf-8, ascii, latin-1, or any bytes as base64."""
        path = os.fspath(path)
        return texts.decode(self.read(path), encoding, path)

    @gated("read")
    def read_lines(
        self, path: StrPath, *, start: int = 1, count: int | None = None, encoding: str = "utf-8"
    ) -> LineWindow:
        """Return *count* lines from line *start*, counted from 1; the file need not fit in memory.

        Raises:
            LimitError: The file or the requested lines exceed the limits.
        """
        files, parsed = self.gate.permit(Access.READ, path)
        reader = files.reader(parsed)
        self._require_scannable(reader.info, parsed)
        window = texts.line_window(
            reader.chunks(CHUNK_BYTES),
            start=start,
            count=count,
            encoding=encoding,
            limit=self.gate.limits.read_bytes,
            path=parsed.requested,
        )
        self.gate.log("read", parsed, size_bytes=window.size_bytes)
        return window

    def _require_scannable(self, info: FileInfo, parsed: ParsedPath) -> None:
        limit = self.gate.limits.scan_bytes
        if limit is not None and info.size_bytes > limit:
            raise LimitError(
                "scan_bytes",
                limit=limit,
                asked=info.size_bytes,
                message=f"{parsed.requested!r} is too large to count its lines: {info.size_bytes} bytes,"
                f" the limit is {limit}",
                path=parsed.requested,
            )

    def read_chunks(self, path: StrPath, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Iterate over the content in chunks, for files larger than memory; the file is opened at once."""
        if chunk_bytes < 1:
            raise ValueError(f"chunk_bytes must be at least 1, not {chunk_bytes}")
        return self.reader(path).chunks(chunk_bytes)

    @gated("read")
    def reader(self, path: StrPath) -> Reader:
        """Open a file for reading in chunks from any offset."""
        files, parsed = self.gate.permit(Access.READ, path)
        reader = files.reader(parsed)
        self.gate.log("read", parsed, size_bytes=reader.info.size_bytes)
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
        """Iterate over the regular files beneath a directory with their content, sorted, following no links.

        A directory is skipped if *enter* returns false for its name, a file if *wants* does. The error of a
        file that cannot be read is raised when its content is read.

        Raises:
            LimitError: While iterating, as `walk`.
        """
        files, parsed = self.gate.permit(Access.READ, path)
        self.gate.log("list", parsed)
        return files.read_tree(parsed, self.gate.limits, enter=enter, wants=wants, chunk_bytes=chunk_bytes)

    @gated("archive")
    def archive(
        self,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str = "tar",
        left_out: Callable[[LeftOut], None] | None = None,
    ) -> Iterator[bytes]:
        """Stream a directory or a file as an archive: `tar`, `tar.gz`, `tar.bz2`, `tar.xz` or `zip`.

        The tree is walked before this returns; its files are read while the archive is iterated. *left_out*
        is called for entries that cannot be in the archive: links that could lead out, FIFOs and the like,
        and names that are ambiguous to some readers.

        Raises:
            LimitError: There are more entries or levels than the limits of a walk allow.
            PathError: A name is not UTF-8, which a zip archive cannot hold.
            ChangedError: While iterating: a large file shrank, so that a tar archive cannot be finished.
        """
        # Imported here, because it is slow to import and few workspaces need it.
        from carrel.workspace.archive.create import archive

        return archive(self, path, format, left_out=left_out)

    @gated("stat")
    def stat(self, path: StrPath, *, follow_symlinks: bool = True) -> FileInfo:
        """Return the metadata of *path*; with `follow_symlinks=False`, of a link itself, with its target."""
        files, parsed = self.gate.permit(Access.READ, path)
        return files.stat(parsed, Links.FOLLOW if follow_symlinks else Links.KEEP)

    @gated("exists")
    def exists(self, path: StrPath) -> bool:
        """Whether *path* exists; false for a link without a target in the workspace."""
        files, parsed = self.gate.permit(Access.READ, path)
        try:
            files.stat(parsed, Links.FOLLOW)
        except (MissingError, NotDirectoryError, LoopError):
            return False
        return True

    @gated("list")
    def list(self, path: StrPath = ".") -> builtins.list[FileInfo]:
        """Return the entries of a directory, sorted by name; links are not followed."""
        files, parsed = self.gate.permit(Access.READ, path)
        found = files.list(parsed, limit=self.gate.limits.list_entries)
        self.gate.log("list", parsed, file_count=len(found))
        return found

    @gated("list")
    def list_names(self, path: StrPath = ".") -> builtins.list[Named]:
        """Return the sorted names in a directory with their kinds, without the metadata that `list` reads."""
        files, parsed = self.gate.permit(Access.READ, path)
        found = sorted(chain.from_iterable(files.names(parsed, limit=self.gate.limits.list_entries)))
        self.gate.log("list", parsed, file_count=len(found))
        return found

    @gated("walk")
    def walk(
        self, path: StrPath = ".", *, enter: Callable[[FileInfo], bool] | None = None
    ) -> Iterator[FileInfo]:
        """Iterate over everything beneath a directory, parents first, following no links.

        A directory is not entered if *enter* returns false for it.

        Raises:
            LimitError: While iterating: there are more entries or levels than the limits allow. Entries that
                are too deep are skipped, and the error is raised at the end.
        """
        files, parsed = self.gate.permit(Access.READ, path)
        self.gate.log("list", parsed)
        return files.walk(parsed, self.gate.limits, enter=enter)

    @gated("glob")
    def glob(self, pattern: str, *, hidden: bool = False) -> builtins.list[str]:
        """Return the sorted paths that match *pattern*; hidden ones with *hidden* or if it names one.

        A pattern without a slash matches names at any depth, one with a slash the whole path; `**` matches
        any number of directories.
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
        """Return the sorted paths of all regular files, including hidden ones, that match *pattern*."""
        compiled = None if pattern is None else Pattern(pattern)
        found = sorted(info.path for info in self._matching(compiled) if info.kind is FileKind.FILE)
        self.gate.log_listing(pattern or "**", len(found))
        return found

    def _matching(self, pattern: Pattern | None) -> Iterator[FileInfo]:
        top = "/".join(pattern.literal_parent) if pattern and pattern.literal_parent else "."
        files, parsed = self.gate.permit(Access.READ, top)
        return search_module.matching(files, parsed, pattern, self.gate.limits)

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
        """Find lines that match *query*, an RE2 regular expression or, with `regex=False`, plain text.

        In a directory, files that match one of *include* are searched, or all files without it. Binary files
        are skipped, and hidden ones unless *hidden*, and those for whose name *wants* returns false. A search
        that exhausts its *budget* is `truncated`; pass its `next` as *start* to continue.
        """
        search = Search(
            Query(text=query, regex=regex, ignore_case=ignore_case, context=context),
            budget or SearchBudget(),
        )
        files, parsed = self.gate.permit(Access.READ, path)
        patterns = [Pattern(each) for each in ([include] if isinstance(include, str) else include)]
        found = search_module.searchable(
            files, parsed, patterns, self.gate.limits, hidden=hidden, wants=wants
        )
        result = search.run(found, start)
        self.gate.log("search", parsed, match_count=len(result.matches))
        return result

    @gated("usage")
    def usage(self) -> Usage:
        """Return the usage of the workspace; without a quota, the files are counted now."""
        self.gate.permit(Access.READ, ".")
        return self.gate.ledger.usage()

    @gated("usage")
    def recount(self) -> Usage:
        """Count the files again, including changes that did not come through the gate; return the usage."""
        self.gate.permit(Access.READ, ".")
        return self.gate.ledger.recount()

    def explain(self, path: StrPath, access: Access | str = Access.READ) -> Decision:
        """Return the decision about *path* and the rule behind it; nothing is read, changed or recorded."""
        decision, files, parsed = self.gate.explain(Access(access), path)
        if files is None:
            return decision
        try:
            files.stat(parsed, Links.FOLLOW)
        except PathError:
            return replace(decision, index=None, rule=None, reason="outside workspace")
        except OSError:
            return decision
        return decision

    @gated("stat")
    def host_path(self, path: StrPath) -> Path:
        """Return the current host path of *path*. A later open of that path may reach another file."""
        files, parsed = self.gate.permit(Access.READ, path)
        return Path(uncancellable(files).host_path(parsed))


def _require_window(offset: int, length: int | None) -> None:
    if offset < 0 or (length is not None and length < 0):
        raise ValueError(f"offset and length cannot be negative: {offset}, {length}")
