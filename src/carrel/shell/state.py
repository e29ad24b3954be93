"""The state of a shell: working directory, variables and the last exit status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from carrel.errors import LimitError, MissingError

MAX_VARIABLES_CHARACTERS = 2**20
"""Most characters in all variables of a shell together, names included."""
SHELL_VARIABLES = frozenset({"HOME", "LANG", "OLDPWD", "PATH", "PWD"})
"""Variables that the shell maintains itself; guest code has its own values for them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ_AT_START = frozenset({"CARREL_WORKSPACE", "SWEBASH_WORKSPACE"})


@dataclass(slots=True)
class ShellState:
    """State that a shell keeps from one command line to the next."""

    cwd: str
    """Absolute path of the working directory, as the guest sees it."""
    variables: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    status: int = 0
    """The exit status of the last command."""
    pipefail: bool = False

    def path(self, operand: str, mount: str) -> str:
        """Return *operand* as a path that the workspace mounted at *mount* accepts.

        Raises:
            MissingError: The operand is empty.
        """
        if not operand:
            raise MissingError("no such file or directory: ''", path=operand)
        if operand[0] == "/" or self.cwd == mount:
            return operand
        return f"{self.cwd}/{operand}"

    def assign(self, values: Mapping[str, str]) -> None:
        """Set variables, all of them or none.

        Raises:
            LimitError: The variables would be too long together.
        """
        after = {**self.variables, **values}
        size = sum(map(len, after)) + sum(map(len, after.values()))
        if size > MAX_VARIABLES_CHARACTERS:
            raise LimitError(
                "variables",
                limit=MAX_VARIABLES_CHARACTERS,
                asked=size,
                message=f"variables would take {size} characters, the limit is {MAX_VARIABLES_CHARACTERS}",
                path=next(iter(values), None),
            )
        self.variables.update(values)

    def environment(self) -> dict[str, str]:
        """Return the exported variables, ordered by name."""
        return {name: self.variables[name] for name in sorted(self.exported & self.variables.keys())}

    def copy(self) -> ShellState:
        """Return a copy, for a command that runs in a subshell environment."""
        return ShellState(self.cwd, dict(self.variables), set(self.exported), self.status, self.pipefail)


def is_variable_name(text: str) -> bool:
    """Whether *text* is a valid variable name."""
    return _NAME.fullmatch(text) is not None


def assignment_warning(name: str) -> str | None:
    """Return a warning to print when the variable *name* is set, or `None`."""
    if name in _READ_AT_START:
        return f"warning: {name} is read only when a shell starts; the workspace stays as it is"
    return None
