"""Copy files and directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.choice import one_of
from carrel.shell.context import Context
from carrel.shell.copying import Copying, Existing
from carrel.shell.destination import pairs, target_touches
from carrel.shell.flags import Opt, UsageError
from carrel.shell.touch import Touch, looks_at

USAGE = "[OPTION]... SOURCE... TARGET"
NOTES = """
Permissions are always kept. Of what -p and -a keep besides, there is only the time of the last change.
"""


_KEPT = ("mode", "timestamps", "ownership", "links", "context", "xattr", "all")


def _keeps_times(text: str) -> bool:
    read = one_of("--preserve", {word: word for word in _KEPT})
    return not text or bool({"timestamps", "all"} & {read(word) for word in text.split(",")})


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `cp`."""

    recursive: Annotated[
        bool, Opt("-r", "-R", "--recursive", help="copy directories with everything in them")
    ] = False
    archive: Annotated[bool, Opt("-a", "--archive", help="the same as -dR -p")] = False
    force: Annotated[bool, Opt("-f", "--force", help="remove a target that cannot be written")] = False
    existing: Annotated[
        Existing,
        Opt("-n", "--no-clobber", to=Existing.KEEP, help="do not replace what is there"),
        Opt("-u", "--update", to=Existing.OLDER, help="replace only what is older"),
    ] = Existing.REPLACE
    ask: Annotated[bool, Opt("-i", "--interactive", help="not possible: nobody can be asked here")] = False
    verbose: Annotated[bool, Opt("-v", "--verbose", help="tell what is copied")] = False
    times: Annotated[
        bool,
        Opt("-p", help="keep the time of the last change"),
        Opt("--preserve", metavar="[LIST]", help="the same, if LIST has timestamps", read=_keeps_times),
    ] = False
    links: Annotated[
        str | None,
        Opt("-P", "-d", "--no-dereference", to="keep", help="copy links as links"),
        Opt("-L", "--dereference", to="follow", help="copy what links lead to"),
        Opt("-H", to="operands", help="copy what links lead to that are operands"),
    ] = None
    directory: Annotated[
        str | None, Opt("-t", "--target-directory", metavar="DIRECTORY", help="copy everything there")
    ] = None
    plain_target: Annotated[
        bool, Opt("-T", "--no-target-directory", help="take the last operand for the copy itself")
    ] = False


def touches(flags: Flags, operands: Sequence[str]) -> Iterable[Touch]:
    """It would read the sources and change the target."""
    sources, targets = target_touches(operands, flags.directory)
    yield from looks_at(sources)
    yield from targets


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Copy each source."""
    if flags.ask:
        raise UsageError("nobody can be asked here; leave out -i", hint=False)
    recursive = flags.recursive or flags.archive
    links = flags.links or ("keep" if recursive else "follow")
    copying = Copying(
        ctx=ctx,
        recursive=recursive,
        follow_operands=links != "keep",
        follow_inside=links == "follow",
        existing=flags.existing,
        force=flags.force,
        times=flags.times or flags.archive,
        verbose=flags.verbose,
    )
    for pair in pairs(ctx, operands, directory=flags.directory, plain_target=flags.plain_target):
        copying.copy(pair)
    return ctx.status
