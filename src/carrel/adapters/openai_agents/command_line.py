"""Commands as the SDK gives them, which are lists of words, as lines for our shell."""

from __future__ import annotations

from collections.abc import Sequence

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "zsh"})
_ASKED = frozenset({"-c", "-lc", "-ic", "-lic"})


def line_of(words: Sequence[str]) -> str:
    """The line that does what *words* say.

    There is no `sh` that could be called: what it would be given is a line for our own shell, which says of
    what it does not have that it has not. Any other word stands for itself, whatever signs are in it.
    """
    if len(words) > 2 and words[0].rpartition("/")[2] in _SHELLS and words[1] in _ASKED:
        return words[2]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
