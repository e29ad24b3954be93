"""Without its extra the adapter says how to install it."""

from __future__ import annotations

import subprocess
import sys


def test_without_its_extra_one_error_says_how_to_install_it() -> None:
    probe = "import sys; sys.modules['agents'] = None; import carrel.adapters.openai_agents"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: agents is not installed: pip install 'carrel[openai-agents]'"
    )
