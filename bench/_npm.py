"""Programs from npm, each in a directory of its own that is kept for the next run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from bench._errors import UnmeasuredError
from bench._install import install


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """A package of one version, and the file in it that node runs."""

    package: str
    version: str
    script: str

    def command(self, directory: Path) -> list[str | Path]:
        """What starts it; it is installed beneath *directory* if it is missing.

        Raises:
            UnmeasuredError: It cannot be had.
        """
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None:
            raise UnmeasuredError("it needs node and npm, and they are not here")
        place = directory / f"{self.package.rpartition('/')[2]}-{self.version}"
        script = place / "node_modules" / self.package / self.script
        if not script.exists():
            place.mkdir(parents=True, exist_ok=True)
            flags = ("--no-audit", "--no-fund", "--silent", "--prefix", str(place))
            install([npm, "install", *flags, f"{self.package}@{self.version}"], place)
        return [node, script]
