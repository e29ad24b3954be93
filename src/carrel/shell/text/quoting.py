"""Quote names in messages so that they can be pasted back, as GNU tools do in the C locale."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\x00-\x20\x7f!\"#$&'()*;<=>?\[\\\]^`{|}~\ud800-\udfff]+")
_SAFE_INSIDE = re.compile(r"[^]!\"#$&()*;<=>?\[\\^`{|}~]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff]+")
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}
_C_ESCAPES = _ESCAPES | {"\\": "\\\\", "'": "\\'"}


def quote_if_needed(name: str) -> str:
    """A name in a message, in quotes only if it needs them."""
    return name if _is_plain(name) else quote(name)


def _is_plain(name: str) -> bool:
    # `#` and `~` are special only in front; `{` and `}` only if they stand alone.
    if name in ("{", "}"):
        return False
    relaxed = name[:1].replace("#", "!").replace("~", "!") + re.sub("[#~{}]", "x", name[1:])
    relaxed = re.sub("^[{}]", "x", relaxed)
    return bool(_PLAIN.fullmatch(relaxed))


def quote(name: str) -> str:
    """A name in a message, always in quotes."""
    if _PLAIN.fullmatch(name):
        return f"'{name}'"
    if "'" in name and not _CONTROL.search(name) and _SAFE_INSIDE.fullmatch(name):
        return f'"{name}"'
    parts: list[str] = []
    at = 0
    for run in _CONTROL.finditer(name):
        if run.start() > at or not parts:
            parts.append(_single(name[at : run.start()]))
        parts.append("$'" + "".join(_escape(character) for character in run[0]) + "'")
        at = run.end()
    if at < len(name) or not parts:
        parts.append(_single(name[at:]))
    return "".join(parts)


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _escape(character: str) -> str:
    return _ESCAPES.get(character) or "".join(f"\\{byte:03o}" for byte in encode(character))


def quote_argument(text: str) -> str:
    """An argument in a message about how a command was called, with escapes as in C."""
    escaped = "".join(
        _C_ESCAPES.get(each) or (each if " " <= each <= "~" else _escape(each)) for each in text
    )
    return f"'{escaped}'"


def encode(text: str) -> bytes:
    """The bytes of a name or an argument; those that are not UTF-8 come back as they were."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """A name or an argument from its bytes, whatever they are."""
    return data.decode("utf-8", "surrogateescape")


_BACKSLASHED = re.compile(r"[\s'\"\\|&;()<>!{}*\[\]?^$`,]")


def quote_for_shell(text: str) -> str:
    """A text that a command line takes for one word again, as bash's `printf %q` writes it."""
    if not text:
        return "''"
    if not text.isprintable():
        return "$'" + "".join(_c_escaped(character) for character in text) + "'"
    start = "\\" if text[0] in "#~" else ""
    return start + _BACKSLASHED.sub(r"\\\g<0>", text)


def _c_escaped(character: str) -> str:
    if character == "\x1b":
        return "\\E"
    return _C_ESCAPES.get(character) or (character if character.isprintable() else _escape(character))
