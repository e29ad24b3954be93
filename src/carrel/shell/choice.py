"""Options whose value is one of a few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from carrel.shell.flags import UsageError
from carrel.shell.quoting import cited


def one_of(option: str, words: Mapping[str, object]) -> Callable[[str], object]:
    """A reader of one of *words*, which may be cut short; several that mean the same count as one."""

    def read(text: str) -> object:
        if text in words:
            return words[text]
        found = {value for word, value in words.items() if word.startswith(text)}
        if len(found) == 1:
            return found.pop()
        problem = "ambiguous" if found else "invalid"
        raise UsageError(f"{problem} argument {cited(text)} for '{option}'\n{_listed(words)}", status=1)

    return read


def _listed(words: Mapping[str, object]) -> str:
    rows: dict[object, list[str]] = {}
    for word, value in words.items():
        rows.setdefault(value, []).append(f"'{word}'")
    return "\n".join(["Valid arguments are:", *(f"  - {', '.join(row)}" for row in rows.values())])
