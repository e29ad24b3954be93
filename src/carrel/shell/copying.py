"""Copies of files and whole trees, name by name, so that each can be told, kept or refused for itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from carrel.errors import HostDeniedError, MissingError, NotDirectoryError
from carrel.shell.context import Context
from carrel.shell.destination import Pair, base_name, is_directory, is_same, join, there
from carrel.shell.quoting import quoted
from carrel.shell.resolution import Missing, resolve
from carrel.values import FileInfo, FileKind


class Existing(Enum):
    """What to do with a file that is in the way."""

    REPLACE = "replace"
    KEEP = "keep"
    OLDER = "older"
    """Replace it if it is older than the source."""


@dataclass(slots=True, kw_only=True)
class Copying:
    """All that one `cp` copies."""

    ctx: Context
    recursive: bool
    follow_operands: bool
    """Whether to copy what a link leads to, rather than the link."""
    follow_inside: bool
    """The same for links inside a directory."""
    existing: Existing
    force: bool
    """Whether to remove a target that cannot be written."""
    times: bool
    """Whether to keep the time of the last change."""
    verbose: bool
    _trail: list[str] = field(default_factory=list)
    """The directories that are being copied, of which links may lead to each other."""

    def copy(self, pair: Pair) -> None:
        """Copy one operand; what cannot be copied is reported."""
        ctx = self.ctx
        info = None
        with ctx.reporting(pair.source, f"cannot stat {quoted(pair.source)}"):
            info = ctx.stat(pair.source, follow=self.follow_operands)
        if info is None:
            return
        if info.is_directory and not self.recursive:
            ctx.complain(f"-r not specified; omitting directory {quoted(pair.source)}")
        elif info.is_directory:
            self._copy_tree(pair, info)
        else:
            self._copy_entry(pair, info, has_parent=False)

    # One file or link

    def _copy_entry(self, pair: Pair, info: FileInfo, *, has_parent: bool = True) -> None:
        source, target = pair
        ctx = self.ctx
        with ctx.reporting(target, f"cannot stat {quoted(target)}"):
            before = there(ctx, target, follow=False) if target else None
            if before is not None and not self._may_replace(pair, info, before):
                return
            with ctx.reporting(target, f"cannot create {_kind(info)} {quoted(target)}"):
                if self.verbose and before is not None and info.kind is FileKind.LINK:
                    self.ctx.say(f"removed {quoted(target)}")
                self._tell(pair)
                if before is None and not has_parent:
                    self._require_parent(target)
                self._write(source, target, info)
                if self.times and info.is_file:
                    ctx.workspace.touch(ctx.path(target), modified_ns=info.modified_ns)

    def _may_replace(self, pair: Pair, info: FileInfo, before: FileInfo) -> bool:
        """Whether the copy may take the place of what is there."""
        if self.existing is Existing.KEEP:
            return False
        ctx = self.ctx
        source, target = quoted(pair.source), quoted(pair.target)
        existing = before
        if before.kind is FileKind.LINK:
            found = there(ctx, pair.target, follow=True)
            if found is None and info.kind is not FileKind.LINK:
                ctx.complain(f"not writing through dangling symlink {target}")
                return False
            existing = found or before
        if self._is_one_file(pair, info, before, existing):
            ctx.complain(f"{source} and {target} are the same file")
        elif existing.is_directory:
            ctx.complain(f"cannot overwrite directory {target} with non-directory")
        else:
            is_newer = existing.modified_ns >= info.modified_ns
            return self.existing is Existing.REPLACE or not is_newer
        return False

    def _is_one_file(self, pair: Pair, info: FileInfo, before: FileInfo, existing: FileInfo) -> bool:
        if is_same(info, before) or is_same(info, existing):
            return True
        if info.kind is not FileKind.LINK:
            return False
        found = there(self.ctx, pair.source, follow=True)
        return found is not None and is_same(found, before)

    def _require_parent(self, target: str) -> None:
        """Refuse to make a file where there is no directory, which the gate would make."""
        if not target:
            raise MissingError("no such file or directory: ''", path=target)
        if target.endswith("/"):
            raise NotDirectoryError(f"{target!r} is not a directory", path=target)
        self.ctx.stat(target[: -len(base_name(target))] or ".")

    def _write(self, source: str, target: str, info: FileInfo) -> None:
        workspace, path = self.ctx.workspace, self.ctx.path
        is_link = info.kind is FileKind.LINK
        try:
            workspace.copy(path(source), path(target), overwrite=True, recursive=is_link)
        except HostDeniedError:
            if not self.force:
                raise
            workspace.remove(path(target))
            workspace.copy(path(source), path(target), recursive=is_link)

    def _tell(self, pair: Pair) -> None:
        if self.verbose:
            self.ctx.say(f"{quoted(pair.source)} -> {quoted(pair.target)}")

    # A directory

    def _copy_tree(self, pair: Pair, info: FileInfo) -> None:
        """Copy a directory into one that is there already or is made."""
        with self.ctx.reporting(pair.target, f"cannot create directory {quoted(pair.target)}"):
            if not self._may_fill(pair) or self._goes_into_itself(pair) or not self._make(pair):
                return
            self._trail.append(resolve(self.ctx, pair.source))
            made = self._copy_content(pair)
            self._trail.pop()
            for path, found in reversed([(pair.target, info), *made] if self.times else []):
                self.ctx.workspace.touch(self.ctx.path(path), modified_ns=found.modified_ns)

    def _copy_content(self, pair: Pair) -> list[tuple[str, FileInfo]]:
        """Copy what is in a directory, and return the directories that were made or filled."""
        skip = len(join(pair.source, ""))
        made: dict[str, FileInfo] = {}
        for path, info in self.ctx.walk(pair.source, lambda path, _: path in made):
            copy = Pair(path, join(pair.target, path[skip:]))
            if not info.is_directory:
                self._copy_inside(copy, info)
                continue
            with self.ctx.reporting(copy.target, f"cannot create directory {quoted(copy.target)}"):
                if self._make(copy):
                    made[path] = info
        return [(join(pair.target, path[skip:]), info) for path, info in made.items()]

    def _copy_inside(self, pair: Pair, info: FileInfo) -> None:
        if info.kind is not FileKind.LINK or not self.follow_inside:
            self._copy_entry(pair, info)
            return
        with self.ctx.reporting(pair.source, f"cannot stat {quoted(pair.source)}"):
            found = self.ctx.stat(pair.source)
            if not found.is_directory:
                self._copy_entry(pair, found)
            elif _is_above(resolve(self.ctx, pair.source), self._trail):
                self.ctx.complain(f"cannot copy cyclic symbolic link {quoted(pair.source)}")
            else:
                self._copy_tree(pair, found)

    def _goes_into_itself(self, pair: Pair) -> bool:
        """Whether the copy would lie in what is copied; if so, that is told."""
        source, target = pair
        above = resolve(self.ctx, source)
        below = resolve(self.ctx, target, Missing.ALL)
        if above == below:
            self.ctx.complain(f"{quoted(source)} and {quoted(target)} are the same file")
        elif below.startswith(above + "/"):
            self.ctx.complain(f"cannot copy a directory, {quoted(source)}, into itself, {quoted(target)}")
        else:
            return False
        return True

    def _may_fill(self, pair: Pair) -> bool:
        """Whether the target of a directory is one too, or missing."""
        if there(self.ctx, pair.target, follow=False) is None or is_directory(self.ctx, pair.target):
            return True
        target, source = quoted(pair.target), quoted(pair.source)
        self.ctx.complain(f"cannot overwrite non-directory {target} with directory {source}")
        return False

    def _make(self, pair: Pair) -> bool:
        """Make the directory for a copy; whether there is one now."""
        if not self._may_fill(pair):
            return False
        if there(self.ctx, pair.target, follow=True) is None:
            self.ctx.workspace.mkdir(self.ctx.path(pair.target), parents=False)
            self._tell(pair)
        return True


def _kind(info: FileInfo) -> str:
    return "symbolic link" if info.kind is FileKind.LINK else "regular file"


def _is_above(path: str, trail: list[str]) -> bool:
    """Whether one of the directories of *trail* is *path* or lies in it."""
    return any(each == path or each.startswith(path + "/") for each in trail)
