"""The variable `CARREL_DEBUG`, read outside the settings because it also applies to their errors."""

from __future__ import annotations

from collections.abc import Mapping

DEBUG_VARIABLE = "CARREL_DEBUG"
_OFF = ("", "0", "false", "no", "off")


def is_debug(environ: Mapping[str, str]) -> bool:
    """Whether errors are reported with full details."""
    return environ.get(DEBUG_VARIABLE, "").strip().lower() not in _OFF
