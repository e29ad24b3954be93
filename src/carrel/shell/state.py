"""Variables of a shell: valid names, and those that the shell sets itself."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ_AT_START = frozenset({"CARREL_WORKSPACE", "SWEBASH_WORKSPACE"})

SHELL_ONLY = frozenset({"HOME", "LANG", "OLDPWD", "PATH", "PWD"})
"""Those that the shell sets for itself; the guest has its own."""


def is_variable_name(text: str) -> bool:
    """Whether *text* can be the name of a variable."""
    return _NAME.fullmatch(text) is not None


def assignment_warning(name: str) -> str | None:
    """What to tell one who sets the variable *name*, if anything."""
    if name in _READ_AT_START:
        return f"warning: {name} is read only when a shell starts; the workspace stays as it is"
    return None
