"""Other packages, each in a virtual environment of its own that is kept for the next run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench._errors import UnmeasuredError
from bench._install import install

_SUITS = """
import ensurepip, sys, sysconfig, venv

sys.exit(not (
    sys.implementation.name == "cpython"
    and sys.version_info >= tuple(map(int, sys.argv[1].split(".")))
    and sys.version_info.releaselevel == "final"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
))
"""


@dataclass(frozen=True, slots=True)
class Package:
    """A package of one version, whose names are those that the benchmark calls."""

    name: str
    version: str
    oldest_python: str

    def python(self, directory: Path) -> Path:
        """The Python of its environment beneath *directory*, which is created if it is missing.

        Raises:
            UnmeasuredError: It cannot be created.
        """
        venv = directory / f"{self.name}-{self.version}"
        python = venv / "bin/python"
        stamp = venv / ".installed"
        if not (stamp.exists() and python.exists()):
            self._install(venv, python)
            stamp.touch()
        return python

    def _install(self, venv: Path, python: Path) -> None:
        venv.parent.mkdir(parents=True, exist_ok=True)
        install([self._base(), "-m", "venv", "--clear", str(venv)])
        requirement = f"{self.name}=={self.version}"
        if uv := _uv():
            try:
                return install([uv, "pip", "install", "--quiet", "--python", str(python), requirement])
            except UnmeasuredError:
                print(f"uv did not manage to install {requirement}; trying pip", file=sys.stderr)
        return install([str(python), "-m", "pip", "install", "--quiet", requirement])

    def _base(self) -> str:
        for python in _pythons():
            command = [python, "-I", "-c", _SUITS, self.oldest_python]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return python
        raise UnmeasuredError(f"it needs Python {self.oldest_python} or newer, and none was found")


def packages_directory() -> Path:
    """The default directory of the environments."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "carrel/bench"


def _pythons() -> Iterator[str]:
    """Where Pythons may be; some may not run."""
    yield sys.executable
    for directory in map(Path, os.get_exec_path()):
        found = [path for path in directory.glob("python3.*") if re.fullmatch(r"python3\.\d+", path.name)]
        yield from map(str, sorted(found))
    if pyenv := shutil.which("pyenv"):
        told = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip()
        # Beside the program too: with another HOME, `pyenv root` names a directory that is not there.
        for root in dict.fromkeys((Path(told), Path(pyenv).resolve().parent.parent)):
            yield from map(str, sorted(root.glob("versions/3.*/bin/python3")))


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")
