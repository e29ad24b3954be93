"""The languages that code can be written in, and the packages that it can import."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from carrel.runtimes.wasm.build.installed import find_installed
from carrel.runtimes.wasm.guest.sources import PACKAGE

PYTHON = "python"
_ABOUT = re.compile(r"([^/]+)-([^/-]+)\.dist-info/")


@cache
def python_version() -> str:
    """Return the version of the guest's Python.

    Raises:
        RuntimeMissingError: It is not installed.
    """
    manifest = find_installed().package / "artifacts" / "MANIFEST"
    with manifest.open(encoding="utf-8") as lines:
        return next(line.split()[1] for line in lines if line.startswith("python "))


@cache
def packages() -> dict[str, str | None]:
    """Return the packages besides the standard library, with their versions if they have any.

    Raises:
        RuntimeMissingError: The guest is not installed.
    """
    from zipfile import ZipFile

    with ZipFile(find_installed().package / "artifacts" / "python-stdlib.zip") as archive:
        found = {match[1]: match[2] for name in archive.namelist() if (match := _ABOUT.match(name))}
    return {name: found.get(name) for name in sorted([*found, PACKAGE], key=str.lower)}


def runtimes() -> list[dict[str, Any]]:  # Any: any JSON
    """Return the available languages.

    Raises:
        RuntimeMissingError: The guest is not installed.
    """
    return [{"language": PYTHON, "version": python_version()}]
