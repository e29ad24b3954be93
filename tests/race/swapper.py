"""The attacker: a process that exchanges names with links to the outside until it is killed.

Run as `swapper.py COUNTER TRAP...`, each TRAP as `Trap.render` writes it. Its name is what the gate is asked
for, its spare a second name on the same file system where a link to the outside waits. Both are exchanged by
one atomic `renameat2`, so the name is never missing. What the gate itself removes or replaces is made again:
a trap that was sprung is set once more.

How long each state lasts is drawn at random, the honest one longer: an operation that finds the link at once
is refused at once, and it is in the middle of one that the exchange has to come.

A variable `PACE` lets every state last so many times as long, for operations that take longer.

The number of exchanges is kept in the first eight bytes of the file COUNTER.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass

RENAME_EXCHANGE = 2
AT_FDCWD = -100
PR_SET_PDEATHSIG = 1
LOOK_EVERY = 64
"""After so many turns every trap is looked at, whether it is still set."""
HONEST_SPINS, LINK_SPINS = 3000, 800
"""Most empty loops that a state is kept for; a thousand take some 15 microseconds."""


@dataclass(frozen=True, slots=True)
class Trap:
    """Two names that take turns."""

    name: bytes
    spare: bytes
    link: bytes
    honest_file: bool
    """Whether the honest thing is a file, which can be made again; a directory is the gate's business."""

    def render(self) -> str:
        """One argument for the command line, whatever the names hold."""
        kind = b"file" if self.honest_file else b"directory"
        return b"\0".join((self.name, self.spare, self.link, kind)).hex()

    @classmethod
    def parse(cls, text: str) -> Trap:
        """The trap that `render` wrote."""
        name, spare, link, kind = bytes.fromhex(text).split(b"\0")
        return cls(name, spare, link, kind == b"file")


def set_again(trap: Trap) -> None:
    """Make sure that one of the names is the link and the other is not."""
    kinds = [_kind(trap.name), _kind(trap.spare)]
    fresh = trap.spare + b".fresh"
    with suppress(OSError):
        if "link" not in kinds and kinds[0] == "none":
            os.symlink(trap.link, trap.name)
        elif "link" not in kinds:
            os.symlink(trap.link, fresh)
            os.rename(fresh, trap.spare)
        elif trap.honest_file and kinds.count("other") == 0:
            with open(fresh, "wb") as file:
                file.write(b"inside turn A\n")
            os.rename(fresh, trap.name if kinds[0] == "none" else trap.spare)
    with suppress(OSError):
        os.unlink(fresh)


def _kind(path: bytes) -> str:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "none"
    return "link" if stat.S_ISLNK(mode) else "other"


def swap_for_ever(traps: list[Trap], counter: mmap.mmap, pace: int) -> None:
    """Exchange the names of all traps, and soon again; every state lasts *pace* times as long."""
    exchange = ctypes.CDLL(None).renameat2
    exchange.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    dice = random.Random(0)  # the same every time; chance comes from the scheduler
    done = 0
    while True:
        for turn in range(LOOK_EVERY):
            for trap in traps:
                if exchange(AT_FDCWD, trap.name, AT_FDCWD, trap.spare, RENAME_EXCHANGE) == 0:
                    done += 1
                else:
                    set_again(trap)
            counter[:8] = done.to_bytes(8, "little")
            for _ in range(pace * dice.randrange(HONEST_SPINS if turn % 2 else LINK_SPINS)):
                pass
        for trap in traps:
            set_again(trap)
            if _kind(trap.name) == "link":
                exchange(AT_FDCWD, trap.name, AT_FDCWD, trap.spare, RENAME_EXCHANGE)


def main(counter_path: str, *traps: str) -> None:
    """Say `ready`, then swap until killed or until the parent is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with open(counter_path, "r+b") as file:
        counter = mmap.mmap(file.fileno(), 8)
    os.write(1, b"ready\n")
    swap_for_ever([Trap.parse(text) for text in traps], counter, int(os.environ.get("PACE", "1")))


if __name__ == "__main__":
    main(*sys.argv[1:])
