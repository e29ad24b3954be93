"""The page about settings."""

from __future__ import annotations

import json
import textwrap

from carrel.config.file import NAME as FILE_NAME
from carrel.config.key import Key
from carrel.config.kind import NONE
from carrel.config.table import CONFIG_VARIABLE, DEFAULT_ROLES, KEYS, ROLE_TOOLS, TIMEOUT_MS
from docs.reference_pages.markdown import page, table

EXAMPLE_FILE = """
    [session]
    directory = "~/sessions"
    max_workspace_mb = 500
    ttl_seconds = 3600

    [files]
    max_file_size = "20MB"

    [roles.reader]
    tools = ["file_read", "file_list"]

    [workspace]
    mode = "rw"

    [[workspace.allow]]
    path = "~/projects"
    mode = "rw"

    [[workspace.allow]]
    path = "/usr/share/dict"
"""


def make() -> str:
    """The page about settings."""
    return page(
        "Settings",
        f"""
        An environment variable overrides the file, and the file overrides the default. An argument or an
        option overrides all of them: `workspace_root=` in Python, `--sessions-dir` on the command line.
        `carrel doctor --settings` prints the effective values and where each came from.

        The file is TOML. It is the one that `{CONFIG_VARIABLE}` names, else
        `$XDG_CONFIG_HOME/{FILE_NAME}`, else `~/.config/{FILE_NAME}`. It may be missing, unless
        `{CONFIG_VARIABLE}` names it.
        """,
        table(
            ("setting, variable, aliases", "must be, default", "meaning"),
            [setting_row(key) for key in KEYS],
        ),
        f"""
        - An empty variable counts as not set. If a variable and its alias are both set, the variable is
          used. An alias like `{TIMEOUT_MS.file_alias}` is another name in the file.
        - A switch is `true` or `false` in the file; a variable may also be `1`, `0`, `yes`, `no`, `on` or
          `off`.
        - MB are MiB (2**20 bytes), KB and GB accordingly. `"{NONE}"` means no limit.
        - `~` in a path is the directory that `HOME` names.
        - A mode may also be written `readonly`, `read-only`, `readwrite` or `read-write`; a path without a
          mode is read-only.
        """,
        "## Roles",
        table(
            ("role", "tools"),
            [
                (f"`{name}`", ", ".join(f"`{tool}`" for tool in tools))
                for name, tools in DEFAULT_ROLES.items()
            ],
        ),
        "## Example",
        f"```toml\n{textwrap.dedent(EXAMPLE_FILE).strip()}\n```",
        "## Errors",
        """
        An invalid setting is an error that names the file, the line and the setting, or the variable; its
        code is `config.invalid`. This covers a file that cannot be read or is not TOML, unknown keys, and
        values of another type or out of range.

        The command line then does nothing, and a service does not start. The operator's shell
        (`carrel sh` without a session) starts in any case: it warns, and continues without the file or, if a
        variable is invalid, with the defaults only, which are the strictest.
        """,
        "## The sessions directory",
        """
        The directory is created with mode 0700 if it is missing. It is refused if it is a link, belongs to
        another user, or is writable by others. carrel's own state is in `.carrel` inside it: the registry of
        sessions, removed trees, and for each session its count, its journal and unfinished files. No session
        can have that name.
        """,
    )


def setting_row(key: Key[object]) -> tuple[str, ...]:
    """A row for one setting; its names stand one below the other, and so do its kind and its default."""
    default = "not set" if key.default is None else f"`{json.dumps(key.default)}`"
    shown = "as below" if key.name == ROLE_TOOLS.name else default
    names = [name for name in (key.name, key.variable, key.alias, key.file_alias) if name]
    return (
        "<br>".join(f"`{name}`" for name in names),
        f"{key.kind.says}<br>{shown}",
        key.meaning if key.is_used else f"{key.meaning} **Not used yet.**",
    )
