"""Read settings from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SESSIONS_DIR = ("CARREL_SESSIONS_DIR", "SHANNON_SESSION_WORKSPACES_DIR")
"""The variable that names the sessions directory, and the alias it is also read from."""
DEFAULT_SESSIONS_DIR = "workspace"


def sessions_dir(environ: Mapping[str, str]) -> Path:
    """The directory that holds all workspaces."""
    for name in SESSIONS_DIR:
        if value := environ.get(name):
            return Path(value).expanduser()
    return Path(DEFAULT_SESSIONS_DIR)
