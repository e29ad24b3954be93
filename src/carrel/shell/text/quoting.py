"""Quote names in messages so that they can be pasted back, as GNU tools do in the C locale."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\x00-\x20\x7f!\"#$&'()*;<=>?\[\\\]^`{|}~\ud800-\udfff]+")
_SAFE_INSIDE = re.compile(r"[^]!\"#$&()*;<=>?\[\\^`{|}~]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff]+")
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}
_C_ESCAPES = _ESCAPES | {"\\": "\\\\", "'": "\\'"}


def quote_if_needed(name: str) -> str:
    """Return a name for a message, quoted only if necessary."""
    return name if _is_plain(name) else quote(name)


def _is_plain(name: str) -> bool:
    # `#` and `~` are special only at the start, `{` and `}` only alone.
    if name in ("{", "}"):
        return False
    relaxed = name[:1].replace("#", "!").replace("~", "!") + re.sub("[#~{}]", "x", name[1:])
    relaxed = re.sub("^[{}]", "x", relaxed)
    return bool(_PLAIN.fullmatch(relaxed))


def quote(name: str) -> str:
    """Return a name for a message, always quoted."""
    if _PLAIN.fullmatch(name):
        return f"'{name}'"
    if "'" in name and not _CONTROL.search(name) and _SAFE_INSIDE.fullmatch(name):
        return f'"{name}"'
    parts: list[str] = []
    at = 0
    for run in _CONTROL.finditer(name):
        if run.start() > at or not parts:
            parts.append(_single_quote(name[at : run.start()]))
        parts.append("$'" + "".join(_escape(character) for character in run[0]) + "'")
        at = run.end()
    if at < len(name) or not parts:
        parts.append(_single_quote(name[at:]))
    return "".join(parts)


def _single_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _escape(character: str) -> str:
    return _ESCAPES.get(character) or "".join(f"\\{byte:03o}" for byte in encode(character))


def quote_argument(text: str) -> str:
    """Return an argument for a usage message, quoted with C escapes."""
    escaped = "".join(
        _C_ESCAPES.get(character) or (character if " " <= character <= "~" else _escape(character))
        for character in text
    )
    return f"'{escaped}'"


def encode(text: str) -> bytes:
    """Encode a name or an argument; bytes that were not UTF-8 are restored."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Decode a name or an argument from any bytes."""
    return data.decode("utf-8", "surrogateescape")


_BACKSLASHED = re.compile(r"[\s'\"\\|&;()<>!{}*\[\]?^$`,]")


def quote_for_shell(text: str) -> str:
    """Quote *text* so that a command line parses it as one word, as bash's `printf %q` does."""
    if not text:
        return "''"
    if not text.isprintable():
        return "$'" + "".join(_c_escape(character) for character in text) + "'"
    start = "\\" if text[0] in "#~" else ""
    return start + _BACKSLASHED.sub(r"\\\g<0>", text)


def _c_escape(character: str) -> str:
    if character == "\x1b":
        return "\\E"
    return _C_ESCAPES.get(character) or (character if character.isprintable() else _escape(character))
