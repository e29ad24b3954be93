"""`SubRoot`: one directory of a root as a root of its own.

Not covered: that the directory is the one which had its name before. Whoever may write above it can put
another in its place, and that is the part from then on.
"""

from __future__ import annotations

import os

from carrel.errors import ClosedError
from carrel.fs.api import Account, Confinement
from carrel.fs.handle import Handle
from carrel.fs.local.lookup import PARENT, Lookup
from carrel.fs.local.resolve import Resolver
from carrel.fs.local.root import Root
from carrel.fs.local.root_reading import RootReading
from carrel.paths.parsed_path import ParsedPath


class SubRoot(Root):
    """The files beneath one directory of a root; a link to another part of it leads out.

    Its account, its scratch directories and the paths in its answers are those of the root. The directory is
    looked up at every operation, name by name and never through a link, so it is always the one that the
    paths speak of, and nothing is open in between.
    """

    def __init__(self, base: Root, names: tuple[str, ...]) -> None:
        """Show what is beneath the directory that *names* lead to in *base*; it need not be there yet."""
        self._way = _SubLookup(base._beneath, names)
        RootReading.__init__(self, self._way)
        self.account: Account = base.account
        self._scratch = base._scratch

    def _names(self, where: ParsedPath) -> Handle:
        """Where the root has its drafts, so that it finds those of a writer that was killed."""
        scratch = self._scratch
        return self._way.top(where) if scratch is None else scratch.drafts


class _SubLookup(Lookup):
    """The way to everything in one directory beneath another."""

    def __init__(self, base: Lookup, names: tuple[str, ...]) -> None:
        self._above: Lookup | None = base
        self._names = [os.fsencode(name) for name in names]
        # A root that is not confined, by the will of its operator, has parts that are.
        confined = base.resolver.confinement is not Confinement.NONE
        self.resolver = base.resolver if confined else Resolver()
        self._label = "".join(f"{name}/" for name in names)

    def close(self) -> None:
        """Let go of the directory above."""
        self._above = None

    def top(self, where: ParsedPath) -> Handle:
        """The directory of the whole root."""
        above = self._above
        if above is None:
            raise ClosedError(f"workspace is closed: {where.requested!r}", path=where.requested)
        return above.use(where)

    def use(self, where: ParsedPath) -> Handle:
        """The directory that has the names now."""
        here = self.top(where)
        for name in self._names:
            here = Handle(self.resolver.open(here.fd, name, PARENT | os.O_NOFOLLOW))
        return here
