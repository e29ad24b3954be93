"""Where the guarantees can be given."""

from __future__ import annotations

import sys

from carrel.errors import UnavailableError


def require_platform() -> None:
    """Refuse to start where the guarantees cannot be given.

    Raises:
        UnavailableError: The platform is not Linux, or file names are not UTF-8 for Python.
    """
    if sys.platform != "linux":
        raise UnavailableError(f"carrel cannot confine files on {sys.platform}, only on Linux")
    if sys.getfilesystemencoding() != "utf-8":
        raise UnavailableError(
            "carrel needs UTF-8 file names; start Python with PYTHONUTF8=1 or in a UTF-8 locale"
        )
