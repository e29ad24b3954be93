"""The variables that guest code sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Environment(Mapping[str, str]):
    """Variables by name: a copy of its own that nobody changes, and whose values are not printed."""

    __slots__ = ("_variables",)

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)

    def __getitem__(self, name: str) -> str:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __hash__(self) -> int:
        return hash(frozenset(self._variables.items()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {list(self._variables)}>"


DEFAULT_ENVIRONMENT = Environment(
    {
        "PYTHONUTF8": "1",
        "LC_ALL": "C.UTF-8",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp",  # noqa: S108  # the guest's own, in memory
        "TMPDIR": "/tmp",  # noqa: S108  # the guest's own, in memory
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108  # the guest's own, in memory
    }
)
"""Text is UTF-8 everywhere, runs repeat exactly, and what programs keep for themselves goes to `/tmp`."""
