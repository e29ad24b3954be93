"""Listings with a line for each file and all that is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from carrel.shell.human import ceil_divide, human
from carrel.shell.listing.entry import Entry, Indicator, Style, sign, written
from carrel.shell.mode import OWNER, letters
from carrel.shell.moment import SECOND_NS, render, render_full
from carrel.values import FileKind

_MINUTE_NS = 60 * SECOND_NS
_HALF_YEAR_NS = 31_556_952 // 2 * SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns there are, and how they are written."""

    inode: bool
    blocks: bool
    owner: bool
    group: bool
    numeric: bool
    base: int | None
    """What a unit of sizes is made of, where they are to be read by people."""
    time_style: str
    indicator: Indicator
    style: Style
    now_ns: int

    def cells(self, entries: Sequence[Entry], *, aligned: bool) -> list[bytes]:
        """The names, with inodes and blocks before them if wanted."""
        lead = self._lead(entries, entries if aligned else ())
        return [
            before + written(entry.name, self.style) + sign(entry.info, self.indicator)
            for before, entry in zip(lead, entries, strict=True)
        ]

    def lines(self, entries: Sequence[Entry], measured: Sequence[Entry]) -> bytes:
        """A long line for each entry, with room for the numbers of those in *measured*."""
        sizes = [self._size(entry.info.host_bytes) for entry in entries]
        size_width = _width(self._size(entry.info.host_bytes) for entry in measured)
        link_width = _width(str(entry.info.links) for entry in measured)
        who = ("0" if self.numeric else OWNER) + " "
        owners = who * (self.owner + self.group)
        return b"".join(
            lead
            + f"{letters(entry.info)} {entry.info.links:>{link_width}} {owners}{size:>{size_width}} ".encode()
            + self._time(entry.info.modified_ns).encode("utf-8", "surrogateescape")
            + b" "
            + self._name(entry)
            for lead, entry, size in zip(self._lead(entries, measured), entries, sizes, strict=True)
        )

    def total(self, entries: Sequence[Entry]) -> bytes:
        """How much space all of it takes."""
        return f"total {self._blocks(sum(entry.info.blocks for entry in entries))}\n".encode()

    def _lead(self, entries: Sequence[Entry], measured: Sequence[Entry]) -> list[bytes]:
        """What stands before the names or the long lines."""
        numbers: list[Callable[[Entry], str]] = []
        if self.inode:
            numbers.append(lambda entry: str(entry.info.inode))
        if self.blocks:
            numbers.append(lambda entry: self._blocks(entry.info.blocks))
        if not numbers:
            return [b""] * len(entries)
        widths = [_width(map(number, measured)) for number in numbers]
        columns = list(zip(numbers, widths, strict=True))
        return ["".join(f"{n(entry):>{width}} " for n, width in columns).encode() for entry in entries]

    def _blocks(self, blocks: int) -> str:
        return human(blocks * 512, self.base) if self.base else str(ceil_divide(blocks, 2))

    def _size(self, size: int) -> str:
        return human(size, self.base) if self.base else str(size)

    def _time(self, when_ns: int) -> str:
        style = self.time_style
        if style == "full-iso":
            return render_full(when_ns)
        if style.startswith("+"):
            return _by_age(style[1:].split("\n", 1), self._is_recent(when_ns), when_ns)
        if style == "long-iso":
            return render("%Y-%m-%d %H:%M", when_ns)
        forms = ["%Y-%m-%d ", "%m-%d %H:%M"] if style == "iso" else ["%b %e  %Y", "%b %e %H:%M"]
        # To the minute, so that files which were changed together are rendered once.
        return _by_age(forms, self._is_recent(when_ns), when_ns - when_ns % _MINUTE_NS)

    def _is_recent(self, when_ns: int) -> bool:
        return self.now_ns - _HALF_YEAR_NS < when_ns < self.now_ns

    def _name(self, entry: Entry) -> bytes:
        name = written(entry.name, self.style)
        if entry.info.kind is not FileKind.LINK:
            return name + sign(entry.info, self.indicator) + b"\n"
        end = sign(entry.leads_to, self.indicator) if entry.leads_to else b""
        return name + b" -> " + written(entry.info.target or "", self.style) + end + b"\n"


def _by_age(forms: Sequence[str], is_recent: bool, when_ns: int) -> str:
    """The first form is for what is old, the last one for the rest."""
    return render(forms[-1 if is_recent else 0], when_ns)


def _width(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)
