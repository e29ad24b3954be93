"""The source text of the modules that a guest can import, by name.

They lie in the folder `sandbox_utils`. Nothing is read before somebody imports one.
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
    """The source of the module *name*; empty if there is none of that name."""
    file = _FILES.get(name)
    return b"" if file is None else _content(file)


@cache
def _content(file: str) -> bytes:
    return (Path(__file__).parent / PACKAGE / file).read_bytes()
