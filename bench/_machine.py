"""The environment of a run: the machine, and the versions of what is measured."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path


def machine(directory: Path) -> dict[str, object]:
    """The machine, and the file system that holds *directory*; not its name."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "file_system": _file_system(directory),
        "python": platform.python_version(),
    }


def load() -> float:
    """Mean number of runnable processes in the last minute."""
    return round(os.getloadavg()[0], 2)


def packages(*names: str) -> dict[str, str]:
    """The versions of packages of this environment."""
    return {name: version(name) for name in names}


def programs(**names: str) -> dict[str, str]:
    """The versions of packages as reported by one program of each; only of those that are installed."""
    return {name: _told(program) for name, program in names.items() if shutil.which(program)}


def _told(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return found[0] if found else "unknown"


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(directory: Path) -> str:
    """The type of the file system that holds *directory*, by the longest mount point above it."""
    best, kind = "", "unknown"
    for line in _lines("/proc/self/mounts"):
        _, point, found, *_ = line.split(" ")
        if directory.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind


def _lines(path: str) -> Iterator[str]:
    yield from Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
