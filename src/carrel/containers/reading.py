"""The half of `ContainerFiles` that changes nothing."""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from carrel.containers.reader import ContainerReader
from carrel.containers.shell_steps import PIECE_BYTES
from carrel.containers.steps import (
    Found,
    Held,
    Met,
    Parts,
    Piece,
    Reached,
    Steps,
    SwappedError,
    failure,
    reach,
)
from carrel.containers.walk import Entry, Level, Visit, by_name
from carrel.errors import ClosedError
from carrel.fs.api import Content, Enter, Links, Unreadable, Wants
from carrel.fs.cancel import checkpoint
from carrel.fs.rules import counted_bytes, not_a_file, too_large
from carrel.fs.translate import translated, translating
from carrel.fs.tree import SOME, info_of, too_many, too_many_listed
from carrel.paths.rel import Where, child, parse
from carrel.values import FileInfo, Limits, Named, Usage

TRIES = 64
"""How often an operation begins again when somebody in the container swaps what it uses."""

_TOP = parse(".")

Params = ParamSpec("Params")
Self = TypeVar("Self")
Answer = TypeVar("Answer")


def retried(
    method: Callable[Concatenate[Self, Where, Params], Answer],
) -> Callable[Concatenate[Self, Where, Params], Answer]:
    """Begin again while others swap what is used, at most `TRIES` times."""

    @wraps(method)
    def call(self: Self, where: Where, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        for _ in range(TRIES):
            try:
                return method(self, where, *args, **kwargs)
            except SwappedError:
                continue
        raise failure(errno.EAGAIN)

    return call


def steady(
    method: Callable[Concatenate[Self, Where, Params], Answer],
) -> Callable[Concatenate[Self, Where, Params], Answer]:
    """The same, and raise errors of ours only."""
    return translated(retried(method))


class ContainerReading:
    """Everything that can be told about files in a container."""

    def __init__(self, steps: Steps) -> None:
        self._steps: Steps | None = steps
        self._confinement = steps.confinement
        self._drafts: set[bytes] = set()
        """Those that are being written just now; nobody else is shown them."""

    @property
    def confinement(self) -> str:
        """Names are walked one by one in the container."""
        return self._confinement

    # Reading

    def read(self, where: Where, *, limit: int | None, offset: int = 0, length: int | None = None) -> bytes:
        """Content of a regular file, whole or a window of it."""
        return self._read(where, limit, offset, length)[1]

    def read_with_info(
        self, where: Where, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """The same with what the file was just before."""
        found, data = self._read(where, limit, offset, length)
        return info_of(where.text, found), data

    @steady
    def _read(
        self, where: Where, limit: int | None, offset: int, length: int | None
    ) -> tuple[os.stat_result, bytes]:
        steps = self._use(where)
        if where.must_dir:
            raise self._no_file(where)
        first = PIECE_BYTES if length is None else min(length, PIECE_BYTES)
        first = first if limit is None else min(first, limit + 1)
        reached: Reached[Piece | Found] = reach(
            lambda parts: steps.read(parts, offset, first), encoded(where)
        )
        found, data = self._require_file(reached, where)
        wanted = max(0, found.st_size - offset)
        if length is not None:
            wanted = min(wanted, length)
        if limit is not None and wanted > limit:
            raise too_large("read_bytes", limit, wanted, where)
        if len(data) < wanted:
            data = self._rest(steps, reached.parts, found, offset, data, wanted)
        return found, data[:wanted]

    def _rest(
        self, steps: Steps, parts: Parts, found: os.stat_result, offset: int, data: bytes, wanted: int
    ) -> bytes:
        """The same content and what follows it, up to so much or to the end of the file."""
        held = steps.hold(parts)
        if isinstance(held, Met | Found):
            raise SwappedError
        try:
            if identity(held.stat) != identity(found):
                raise SwappedError
            pieces, size = [data], len(data)
            while size < wanted and (data := steps.read_held(held, offset + size, wanted - size)):
                pieces.append(data)
                size += len(data)
            return b"".join(pieces)
        finally:
            steps.drop(held)

    def _require_file(self, reached: Reached[Piece | Found], where: Where) -> tuple[os.stat_result, bytes]:
        result = reached.result
        is_file = not isinstance(result, Found)
        if reached.must_dir and (is_file or not stat.S_ISDIR(result[0].st_mode)):
            raise failure(errno.ENOTDIR)
        if isinstance(result, Found):
            raise not_a_file(result.stat, where)
        return result

    def _no_file(self, where: Where) -> Exception:
        """Why something that ends in a slash or in dots is no file."""
        self._directory(where, encoded(where))
        return failure(errno.EISDIR)

    @steady
    def reader(self, where: Where) -> ContainerReader:
        """Open a regular file to be read by chunks."""
        steps = self._use(where)
        if where.must_dir:
            raise self._no_file(where)
        reached = self._look(where, Links.FOLLOW)
        if not stat.S_ISREG(reached.result.stat.st_mode):
            raise not_a_file(reached.result.stat, where)
        if reached.result.stat.st_size <= PIECE_BYTES:
            opened: Piece | Held | Found | Met = steps.read(reached.parts, 0, PIECE_BYTES)
        else:
            opened = steps.hold(reached.parts)
        if isinstance(opened, Met | Found):
            raise SwappedError
        return ContainerReader(steps, reached.parts, opened, info_of(where.text, opened[0]), where)

    # Looking

    @steady
    def stat(self, where: Where, links: Links) -> FileInfo:
        """What is there; a link that is kept shows its text."""
        found = self._look(where, links).result
        target = None if found.text is None else os.fsdecode(found.text)
        return info_of(where.text, found.stat, target)

    @steady
    def list(self, where: Where, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        prefix = _prefix(where)
        _, entries = self._listed(self._use(where), encoded(where), prefix, limit)
        return [info_of(prefix + os.fsdecode(entry.name), entry.stat) for entry in entries]

    def names(self, where: Where, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """The names in a directory, each with its kind."""
        infos = self.list(where, limit=limit)
        named = [(info.name, info.kind) for info in infos]
        return iter([named[at : at + SOME] for at in range(0, len(named), SOME)])

    @steady
    def walk(
        self,
        where: Where,
        limits: Limits,
        *,
        unreadable: Unreadable = Unreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Everything beneath a directory, parents first, never through a link."""
        steps = self._use(where)
        prefix = _prefix(where)
        parts, entries = self._listed(steps, encoded(where), prefix, limits.list_entries)
        visit = Visit(partial(self._entered, steps), limits, unreadable, enter)
        return translating(visit.run(Level(parts, prefix, iter(entries))), where)

    def read_tree(
        self,
        where: Where,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """The regular files beneath a directory, names in order, never through a link."""
        go_in = None if enter is None else lambda info: enter(info.name)
        found = self.walk(where, limits, enter=go_in)
        skip = len(_prefix(where))
        return (
            Content(info.path, _Pieces(partial(self.reader, child(where, info.path[skip:])), chunk_bytes))
            for info in found
            if info.is_file and (wants is None or wants(info.name))
        )

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything, each inode once."""
        return self._measure(_TOP, limit)

    @steady
    def _measure(self, where: Where, limit: int | None) -> Usage:
        return self._counted(self._use(where), (), limit, shut=Unreadable.SKIP)[0]

    def _counted(
        self, steps: Steps, parts: Parts, limit: int | None, *, shut: Unreadable
    ) -> tuple[Usage, builtins.list[Parts]]:
        """What is beneath *parts*, and the directories there, each before those in it."""
        disk_bytes = entries = 0
        seen: set[tuple[int, int]] = set()
        directories: builtins.list[Parts] = []
        todo = [parts]
        while todo:
            checkpoint()
            here = todo.pop()
            directories.append(here)
            for name, found in self._entered_if(steps, here, shut) or ():
                if entries == limit:
                    raise too_many(limit, "")
                entries += 1
                if stat.S_ISDIR(found.st_mode):
                    todo.append((*here, name))
                elif stat.S_ISREG(found.st_mode) and identity(found) not in seen:
                    disk_bytes += counted_bytes(found.st_size, found.st_blocks)
                    if found.st_nlink > 1:
                        seen.add(identity(found))
        return Usage(disk_bytes=disk_bytes, entries=entries), directories

    def _entered_if(self, steps: Steps, parts: Parts, shut: Unreadable) -> builtins.list[Entry] | None:
        try:
            return self._entered(steps, parts, "", None)
        except PermissionError:
            if shut is Unreadable.REFUSE:
                raise
            return None

    # The way to things

    def _use(self, where: Where) -> Steps:
        steps = self._steps
        if steps is None:
            raise ClosedError(f"workspace is closed: {where.asked!r}", path=where.asked)
        return steps

    def _look(self, where: Where, links: Links) -> Reached[Found]:
        """What *where* leads to."""
        steps = self._use(where)
        if where.must_dir:
            links = Links.FOLLOW
        reached = reach(lambda parts: steps.look(parts, links), encoded(where), must_dir=where.must_dir)
        if reached.result is None:
            raise failure(errno.ENOENT)
        if reached.must_dir and not stat.S_ISDIR(reached.result.stat.st_mode):
            raise failure(errno.ENOTDIR)
        return Reached(reached.parts, reached.must_dir, reached.result)

    def _directory(self, where: Where, parts: Parts) -> Parts:
        """The names that lead to a directory without links."""
        steps = self._use(where)
        reached = reach(lambda names: steps.look(names, Links.FOLLOW), parts)
        if reached.result is None:
            raise failure(errno.ENOENT)
        if not stat.S_ISDIR(reached.result.stat.st_mode):
            raise failure(errno.ENOTDIR)
        return reached.parts

    def _listed(
        self, steps: Steps, parts: Parts, prefix: str, limit: int | None
    ) -> tuple[Parts, builtins.list[Entry]]:
        """The entries of a directory by name, and the names that lead to it without links."""
        reached = reach(lambda names: self._list(steps, names, prefix, limit), parts)
        return reached.parts, reached.result

    def _list(self, steps: Steps, parts: Parts, prefix: str, limit: int | None) -> builtins.list[Entry] | Met:
        """The entries of a directory by name, but for drafts of ours."""
        drafts = len(self._drafts)
        try:
            listed = steps.list(parts, None if limit is None else limit + drafts)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            listed = None
        if isinstance(listed, Met):
            return listed
        found = [Entry(*each) for each in listed or () if parts or each[0] not in self._drafts]
        if listed is None or (limit is not None and len(found) > limit):
            raise too_many_listed(limit or 0, prefix)
        return sorted(found, key=by_name)

    def _entered(
        self, steps: Steps, parts: Parts, prefix: str, limit: int | None
    ) -> builtins.list[Entry] | None:
        """The entries of a directory that a walk found; `None` if it is gone or something else now."""
        for _ in range(TRIES):
            try:
                found = self._list(steps, parts, prefix, limit)
            except SwappedError:
                continue
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if isinstance(found, Met) else found
        raise failure(errno.EAGAIN)


class _Pieces:
    """The content of a file that is opened when somebody reads it."""

    def __init__(self, opener: Callable[[], ContainerReader], chunk_bytes: int) -> None:
        self._opener = opener
        self._chunk_bytes = chunk_bytes

    def __iter__(self) -> Iterator[bytes]:
        return self._opener().chunks(self._chunk_bytes)


def encoded(where: Where) -> Parts:
    """The parts of a path as the container has them."""
    return tuple(map(os.fsencode, where.parts))


def _prefix(where: Where) -> str:
    return where.text + "/" if where.parts else ""


def identity(found: os.stat_result) -> tuple[int, int]:
    """What tells a file from every other."""
    return found.st_dev, found.st_ino
