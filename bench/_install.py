"""Install the alternatives, with their own installers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench._errors import UnmeasuredError
from bench._lines import last_line

LONGEST_SECONDS = 600


def install(command: Sequence[str], cwd: Path | None = None) -> None:
    """Run a step of an installation; uv trusts what the machine trusts, and asks the index that pip asks.

    Raises:
        UnmeasuredError: It failed.
    """
    env = {"UV_SYSTEM_CERTS": "1", **os.environ}
    if index := env.get("PIP_INDEX_URL"):
        env.setdefault("UV_DEFAULT_INDEX", index)
    try:
        subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, check=True, timeout=LONGEST_SECONDS
        )
    except subprocess.CalledProcessError as error:
        raise UnmeasuredError(f"it could not be installed: {last_line(error.stderr)}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnmeasuredError(f"it could not be installed: {type(error).__name__}") from None
