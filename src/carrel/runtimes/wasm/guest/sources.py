"""The source text of the modules that a guest can import, by name.

They are in the folder `sandbox_utils`, and read when a guest first imports them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

PACKAGE = "sandbox_utils"
_FILES = {
    PACKAGE: "__init__.py",
    **{f"{PACKAGE}.{name}": f"{name}.py" for name in ("data", "files", "formats", "paths", "shell", "text")},
}


def source(name: str) -> bytes:
    """Return the source of the module *name*; empty if it does not exist."""
    file = _FILES.get(name)
    return b"" if file is None else _content(file)


@cache
def _content(file: str) -> bytes:
    return (Path(__file__).parent / PACKAGE / file).read_bytes()
