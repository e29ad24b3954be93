"""Lines in batches, without what ends them, for commands that look at very many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import AnyStr

from carrel.shell.budget import Meter


def batches(chunks: Iterable[AnyStr], end: AnyStr, meter: Meter) -> Iterator[list[AnyStr]]:
    """The lines of what comes in pieces; *end* is left out, and the last line need not have one."""
    held: list[AnyStr] = []
    nothing = end[:0]
    held_bytes = 0
    for chunk in chunks:
        lines = chunk.split(end)
        if held:
            if len(lines) == 1:
                held.append(chunk)
                held_bytes += len(chunk)
                meter.hold(len(chunk))
                continue
            held.append(lines[0])
            lines[0] = nothing.join(held)
            meter.hold(-held_bytes)
        last = lines.pop()
        held = [last] if last else []
        held_bytes = len(last)
        meter.hold(held_bytes)
        if lines:
            yield lines
    if held:
        meter.hold(-held_bytes)
        yield [nothing.join(held)]
