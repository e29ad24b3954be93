"""One attack: a tree, a request, and how it has to end.

Layouts are trees as `carrel.testing.tree` reads them, lines parted by `; `. `$OUT` is a directory outside
(`secret`, `dir/secret`), `$WS` the workspace itself; it is called ROOT, and beside it stands
`ROOT-evil/secret`. Names in guillemets stand for what no line can show (`tests/attack/special.py`).

Required endings: `ok`, `ok:` and the text that comes back, `ValueError` for a path that is refused, `notreg`
for something that is no regular file, the name of an errno; `or` between those that will do. Whatever the
ending, nothing outside may change or come back.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple


class Request(NamedTuple):
    """An operation of the table and what it is given."""

    operation: str
    arguments: tuple[str, ...]
    options: dict[str, object]


@dataclass(frozen=True, slots=True)
class Row:
    """One attack, or one plain request that the guard must not spoil."""

    kind: str
    layout: str
    call: str
    required: str
    reason: str
    """Who was hurt by this before, or what it shows."""
    leaves: str | None = None
    """The layout of the workspace afterwards; by default that of before, if the request is refused."""
    gives: object = None
    """What comes back."""
    proves: bool = True
    """Whether plain calls of `os` would end otherwise; a row that they pass proves nothing of the guard."""

    @property
    def request(self) -> Request:
        """The call, taken apart."""
        call = ast.parse(self.call, mode="eval").body
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        return Request(
            call.func.id,
            tuple(ast.literal_eval(argument) for argument in call.args),
            {str(option.arg): ast.literal_eval(option.value) for option in call.keywords},
        )

    @property
    def endings(self) -> frozenset[str]:
        """Every ending that will do."""
        return frozenset(self.required.split(" or "))

    @property
    def is_refused(self) -> bool:
        """Whether the request must not succeed."""
        return not any(ending.startswith("ok") for ending in self.endings)

    def __str__(self) -> str:
        call = self.call if len(self.call) < 60 else f"{self.call[:40]}..."
        return f"{self.layout}: {call}"
