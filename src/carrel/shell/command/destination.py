"""Sources and targets of `cp` and `mv`: the last operand, or a directory named by an option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from carrel.errors import CarrelError, MissingError
from carrel.shell.command.access import PathAccess, writes
from carrel.shell.command.context import Context
from carrel.shell.command.errors import is_denied, strerror
from carrel.shell.command.flags import UsageError
from carrel.shell.command.paths import base_name, join
from carrel.shell.text.quoting import quote
from carrel.values import FileInfo


class SourceTarget(NamedTuple):
    """One source to copy or move, and its target."""

    source: str
    target: str


def source_targets(
    ctx: Context, operands: Sequence[str], *, directory: str | None, plain_target: bool
) -> Iterator[SourceTarget]:
    """Yield each source with its target.

    With *directory*, all operands are sources that go into it. With *plain_target*, the last operand is the
    target even if it is a directory.

    Raises:
        UsageError: There are too few or too many operands, or the target must be a directory and is not.
    """
    if directory is not None:
        if plain_target:
            message = "cannot combine --target-directory (-t) and --no-target-directory (-T)"
            raise UsageError(message, status=1, hint=False)
        if not operands:
            raise UsageError("missing file operand", status=1)
        _require_directory(ctx, directory, "target directory")
        return _targets_in(ctx, operands, directory)
    _require_operands(operands)
    *sources, last = operands
    if plain_target:
        if len(sources) > 1:
            raise UsageError(f"extra operand {quote(operands[2])}", status=1)
        return iter([SourceTarget(sources[0], last)])
    if len(sources) == 1 and not is_directory(ctx, last):
        return iter([SourceTarget(sources[0], last)])
    _require_directory(ctx, last, "target")
    return _targets_in(ctx, sources, last)


def _require_operands(operands: Sequence[str]) -> None:
    if not operands:
        raise UsageError("missing file operand", status=1)
    if len(operands) == 1:
        raise UsageError(f"missing destination file operand after {quote(operands[0])}", status=1)


def _require_directory(ctx: Context, operand: str, what: str) -> None:
    try:
        info = ctx.stat(operand)
    except CarrelError as error:
        if is_denied(error):
            raise
        raise UsageError(f"{what} {quote(operand)}: {strerror(error)}", status=1, hint=False) from None
    if not info.is_directory:
        raise UsageError(f"{what} {quote(operand)}: Not a directory", status=1, hint=False)


def _targets_in(ctx: Context, sources: Sequence[str], directory: str) -> Iterator[SourceTarget]:
    """Yield targets named as their sources; of sources with one name, only the first that succeeds."""
    created: dict[str, str] = {}
    for source in sources:
        target = join(directory, base_name(source))
        earlier = created.get(target)
        if earlier is None or not ctx.exists(source):
            status, ctx.status = ctx.status, 0
            yield SourceTarget(source, target)
            if not ctx.status:
                created[target] = source
            ctx.status = max(ctx.status, status)
        elif earlier == source:
            kind = "directory" if is_directory(ctx, source) else "file"
            ctx.write_error_line(
                f"{ctx.name}: warning: source {kind} {quote(source)} specified more than once"
            )
        else:
            ctx.error(f"will not overwrite just-created {quote(target)} with {quote(source)}")


def is_directory(ctx: Context, operand: str) -> bool:
    """Whether *operand* is a directory, or a link to one."""
    try:
        return ctx.stat(operand).is_directory
    except CarrelError:
        return False


def stat_if_exists(ctx: Context, operand: str, *, follow: bool) -> FileInfo | None:
    """Return the entry at *operand*; `None` if it does not exist.

    Raises:
        CarrelError: It cannot be examined.
    """
    try:
        return ctx.stat(operand, follow=follow)
    except MissingError:
        return None


def is_same_file(one: FileInfo, other: FileInfo) -> bool:
    """Whether two entries are the same file; as devices are unknown, more than the inode is compared."""
    return one.version == other.version and one.kind is other.kind


def target_accesses(
    operands: Sequence[str], directory: str | None
) -> tuple[Sequence[str], Iterator[PathAccess]]:
    """Return the source operands, and the declared writes."""
    if directory is not None:
        return operands, writes([directory])
    return operands[:-1], writes(operands[-1:])
