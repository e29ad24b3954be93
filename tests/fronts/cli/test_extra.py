"""Commands whose packages are not installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = """
import sys
sys.modules[{missing!r}] = None
from carrel.fronts.cli.main import run
sys.exit(run({words!r}))
"""


@pytest.mark.parametrize(
    ("missing", "extra", "words"),
    [
        ("uvicorn", "serve", ["serve"]),
        ("mcp", "mcp", ["mcp"]),
        ("grpc", "client", ["tool", "s1", "file_list"]),
    ],
)
def test_what_is_not_installed_is_told_with_what_to_do(missing: str, extra: str, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(missing=missing, words=words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CARREL_SANDBOX_ADDR": "127.0.0.1:1"},
    )
    assert done.returncode == 5
    assert done.stderr == f"carrel: {missing} is not installed: pip install 'carrel[{extra}]'\n"
