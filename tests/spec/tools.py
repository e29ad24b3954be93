"""Run a command line with the real tools of this machine."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.spec.case import Case, Printed, Spec


def run(spec: Spec, case: Case, near: Path | None = None) -> Printed:
    """Run *case* in a new tree in *near*, and return the output with that tree as `/workspace`."""
    with tempfile.TemporaryDirectory(dir=near) as scratch:
        top = Path(scratch).resolve() / "workspace"
        top.mkdir()
        spec.plant(top)
        return _run(case, top, spec.locale)


def _run(case: Case, top: Path, locale: str) -> Printed:
    ended = subprocess.run(
        ["bash", "-c", case.command.encode("utf-8", "surrogateescape")],
        cwd=top,
        input=case.stdin,
        capture_output=True,
        timeout=30,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": locale, "TZ": "UTC", "HOME": str(top)},
        check=False,
    )
    host = str(top).encode()
    return Printed(
        stdout=ended.stdout.replace(host, b"/workspace"),
        stderr=ended.stderr.replace(host, b"/workspace"),
        status=ended.returncode,
    )
