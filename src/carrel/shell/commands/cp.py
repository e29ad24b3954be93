"""Copy files and directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from carrel.errors import HostDeniedError, MissingError, NotDirectoryError
from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.destination import (
    SourceTarget,
    is_directory,
    is_same_file,
    source_targets,
    stat_if_exists,
    target_accesses,
)
from carrel.shell.command.flags import Opt, UsageError, one_of
from carrel.shell.command.paths import Missing, base_name, join, resolve
from carrel.shell.text.quoting import quote
from carrel.values import FileInfo, FileKind


class ExistingTarget(Enum):
    """What to do with an existing target."""

    REPLACE = "replace"
    KEEP = "keep"
    OLDER = "older"
    """Replace it if it is older than the source."""


@dataclass(slots=True, kw_only=True)
class Copier:
    """Copies the operands of one `cp`."""

    ctx: Context
    recursive: bool
    follow_operands: bool
    """Whether to copy the target of a link operand, rather than the link."""
    follow_inside: bool
    """The same for links inside directories."""
    existing: ExistingTarget
    force: bool
    """Whether to remove a target that cannot be written."""
    times: bool
    """Whether to keep modification times."""
    verbose: bool
    _ancestors: list[str] = field(default_factory=list)
    """Resolved paths of the directories being copied, to detect links that form a cycle."""

    def copy(self, pair: SourceTarget) -> None:
        """Copy one operand; report what cannot be copied."""
        ctx = self.ctx
        info = None
        with ctx.reporting(pair.source, f"cannot stat {quote(pair.source)}"):
            info = ctx.stat(pair.source, follow=self.follow_operands)
        if info is None:
            return
        if info.is_directory and not self.recursive:
            ctx.error(f"-r not specified; omitting directory {quote(pair.source)}")
        elif info.is_directory:
            self._copy_tree(pair, info)
        else:
            self._copy_entry(pair, info, has_parent=False)

    # One file or link

    def _copy_entry(self, pair: SourceTarget, info: FileInfo, *, has_parent: bool = True) -> None:
        source, target = pair
        ctx = self.ctx
        with ctx.reporting(target, f"cannot stat {quote(target)}"):
            before = stat_if_exists(ctx, target, follow=False) if target else None
            if before is not None and not self._may_replace(pair, info, before):
                return
            with ctx.reporting(target, f"cannot create {_kind_name(info)} {quote(target)}"):
                if self.verbose and before is not None and info.kind is FileKind.LINK:
                    self.ctx.write_line(f"removed {quote(target)}")
                self._report_copied(pair)
                if before is None and not has_parent:
                    self._require_parent(target)
                self._write(source, target, info)
                if self.times and info.is_file:
                    ctx.workspace.touch(ctx.path(target), modified_ns=info.modified_ns)

    def _may_replace(self, pair: SourceTarget, info: FileInfo, before: FileInfo) -> bool:
        """Whether the copy may replace the existing target; if not, report why."""
        if self.existing is ExistingTarget.KEEP:
            return False
        ctx = self.ctx
        source, target = quote(pair.source), quote(pair.target)
        existing = before
        if before.kind is FileKind.LINK:
            found = stat_if_exists(ctx, pair.target, follow=True)
            if found is None and info.kind is not FileKind.LINK:
                ctx.error(f"not writing through dangling symlink {target}")
                return False
            existing = found or before
        if self._is_one_file(pair, info, before, existing):
            ctx.error(f"{source} and {target} are the same file")
        elif existing.is_directory:
            ctx.error(f"cannot overwrite directory {target} with non-directory")
        else:
            is_newer = existing.modified_ns >= info.modified_ns
            return self.existing is ExistingTarget.REPLACE or not is_newer
        return False

    def _is_one_file(self, pair: SourceTarget, info: FileInfo, before: FileInfo, existing: FileInfo) -> bool:
        if is_same_file(info, before) or is_same_file(info, existing):
            return True
        if info.kind is not FileKind.LINK:
            return False
        found = stat_if_exists(self.ctx, pair.source, follow=True)
        return found is not None and is_same_file(found, before)

    def _require_parent(self, target: str) -> None:
        """Require that the parent directory exists: `copy` of the workspace would create it."""
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

    def _report_copied(self, pair: SourceTarget) -> None:
        if self.verbose:
            self.ctx.write_line(f"{quote(pair.source)} -> {quote(pair.target)}")

    # A directory

    def _copy_tree(self, pair: SourceTarget, info: FileInfo) -> None:
        """Copy a directory into its target, which is created if it does not exist."""
        with self.ctx.reporting(pair.target, f"cannot create directory {quote(pair.target)}"):
            if (
                not self._can_be_directory(pair)
                or self._is_into_itself(pair)
                or not self._make_directory(pair)
            ):
                return
            self._ancestors.append(resolve(self.ctx, pair.source))
            copied = self._copy_content(pair)
            self._ancestors.pop()
            for path, found in reversed([(pair.target, info), *copied] if self.times else []):
                self.ctx.workspace.touch(self.ctx.path(path), modified_ns=found.modified_ns)

    def _copy_content(self, pair: SourceTarget) -> list[tuple[str, FileInfo]]:
        """Copy the content of a directory, and return the subdirectories that were created or filled."""
        skip = len(join(pair.source, ""))
        copied: dict[str, FileInfo] = {}
        for path, info in self.ctx.walk(pair.source, lambda path, _: path in copied):
            copy = SourceTarget(path, join(pair.target, path[skip:]))
            if not info.is_directory:
                self._copy_inside(copy, info)
                continue
            with self.ctx.reporting(copy.target, f"cannot create directory {quote(copy.target)}"):
                if self._make_directory(copy):
                    copied[path] = info
        return [(join(pair.target, path[skip:]), info) for path, info in copied.items()]

    def _copy_inside(self, pair: SourceTarget, info: FileInfo) -> None:
        if info.kind is not FileKind.LINK or not self.follow_inside:
            self._copy_entry(pair, info)
            return
        with self.ctx.reporting(pair.source, f"cannot stat {quote(pair.source)}"):
            found = self.ctx.stat(pair.source)
            if not found.is_directory:
                self._copy_entry(pair, found)
            elif _contains_any(resolve(self.ctx, pair.source), self._ancestors):
                self.ctx.error(f"cannot copy cyclic symbolic link {quote(pair.source)}")
            else:
                self._copy_tree(pair, found)

    def _is_into_itself(self, pair: SourceTarget) -> bool:
        """Whether the target lies inside the source; if so, report it."""
        source, target = pair
        source_path = resolve(self.ctx, source)
        target_path = resolve(self.ctx, target, Missing.ALL)
        if source_path == target_path:
            self.ctx.error(f"{quote(source)} and {quote(target)} are the same file")
        elif target_path.startswith(source_path + "/"):
            self.ctx.error(f"cannot copy a directory, {quote(source)}, into itself, {quote(target)}")
        else:
            return False
        return True

    def _can_be_directory(self, pair: SourceTarget) -> bool:
        """Whether the target is a directory or does not exist; if not, report it."""
        if stat_if_exists(self.ctx, pair.target, follow=False) is None or is_directory(self.ctx, pair.target):
            return True
        target, source = quote(pair.target), quote(pair.source)
        self.ctx.error(f"cannot overwrite non-directory {target} with directory {source}")
        return False

    def _make_directory(self, pair: SourceTarget) -> bool:
        """Create the target directory if needed, and return whether it exists now."""
        if not self._can_be_directory(pair):
            return False
        if stat_if_exists(self.ctx, pair.target, follow=True) is None:
            self.ctx.workspace.mkdir(self.ctx.path(pair.target), parents=False)
            self._report_copied(pair)
        return True


def _kind_name(info: FileInfo) -> str:
    return "symbolic link" if info.kind is FileKind.LINK else "regular file"


def _contains_any(path: str, directories: list[str]) -> bool:
    """Whether one of *directories* is *path* or lies inside it."""
    return any(each == path or each.startswith(path + "/") for each in directories)


USAGE = "[OPTION]... SOURCE... TARGET"
NOTES = """
Permissions are always preserved. Of the other attributes that -p and -a preserve, only the modification time
exists here.
"""


_ATTRIBUTES = ("mode", "timestamps", "ownership", "links", "context", "xattr", "all")


def _preserves_times(text: str) -> bool:
    parse = one_of("--preserve", {word: word for word in _ATTRIBUTES})
    return not text or bool({"timestamps", "all"} & {parse(word) for word in text.split(",")})


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `cp`."""

    recursive: Annotated[bool, Opt("-r", "-R", "--recursive", help="copy directories recursively")] = False
    archive: Annotated[bool, Opt("-a", "--archive", help="same as -dR -p")] = False
    force: Annotated[bool, Opt("-f", "--force", help="remove a target that cannot be written")] = False
    existing: Annotated[
        ExistingTarget,
        Opt("-n", "--no-clobber", const=ExistingTarget.KEEP, help="do not overwrite existing files"),
        Opt("-u", "--update", const=ExistingTarget.OLDER, help="overwrite only older files"),
    ] = ExistingTarget.REPLACE
    ask: Annotated[bool, Opt("-i", "--interactive", help="not supported: there are no prompts")] = False
    verbose: Annotated[bool, Opt("-v", "--verbose", help="print each copied file")] = False
    times: Annotated[
        bool,
        Opt("-p", help="preserve modification times"),
        Opt("--preserve", metavar="[LIST]", help="the same, if LIST has timestamps", parse=_preserves_times),
    ] = False
    links: Annotated[
        str | None,
        Opt("-P", "-d", "--no-dereference", const="keep", help="copy links as links"),
        Opt("-L", "--dereference", const="follow", help="copy the targets of links"),
        Opt("-H", const="operands", help="copy the targets of links that are operands"),
    ] = None
    directory: Annotated[
        str | None,
        Opt("-t", "--target-directory", metavar="DIRECTORY", help="copy all sources into DIRECTORY"),
    ] = None
    plain_target: Annotated[
        bool, Opt("-T", "--no-target-directory", help="treat TARGET as a file, not a directory")
    ] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the sources that are read and the targets that are written."""
    sources, targets = target_accesses(operands, flags.directory)
    yield from inspects(sources)
    yield from targets


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Copy each source."""
    if flags.ask:
        raise UsageError("prompting is not supported; leave out -i", hint=False)
    recursive = flags.recursive or flags.archive
    links = flags.links or ("keep" if recursive else "follow")
    copier = Copier(
        ctx=ctx,
        recursive=recursive,
        follow_operands=links != "keep",
        follow_inside=links == "follow",
        existing=flags.existing,
        force=flags.force,
        times=flags.times or flags.archive,
        verbose=flags.verbose,
    )
    for pair in source_targets(ctx, operands, directory=flags.directory, plain_target=flags.plain_target):
        copier.copy(pair)
    return ctx.status
