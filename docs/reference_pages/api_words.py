"""What the page about the Python API says beyond the docstrings."""

from __future__ import annotations

from docs.reference_pages.markdown import table

INTRODUCTION = """
    Everything here is imported from `carrel`, unless another module is named. Names load on first use, so
    `import carrel` is light. An operation raises the [errors](errors.md) of `carrel.errors`, and `ValueError`
    or `TypeError` for arguments that make no sense.
"""

NOTES = {
    "Files of a session by its id": """
        They take a session id and relative paths; absolute ones are refused, `/workspace` too.
        `workspace_root` is the sessions directory, by default the [configured](settings.md) one.

        A session id is 1 to 128 letters, digits, `-`, `_` and single dots inside; it begins with a letter, a
        digit or `_`, and is no device name of Windows.
    """,
    "Running code": """
        [Run Python in a session](../how-to/run-python.md) shows it; the extra `python` has the engine.
    """,
    "Workspace": """
        Use it in a `with` statement, or `close` it.

        A path is `str` or a path object that gives one. `\\` separates names like `/`, and `mount` is the
        absolute path that stands for the workspace: `/workspace`. A pattern without a slash matches names at
        any depth, one with a slash the whole path; `**` stands for any number of directories.

        With `if_version`, only that version of a file is changed, removed or moved, so that nobody undoes
        what somebody else did meanwhile; otherwise it is `ChangedError`, whose `version` is the one that the
        file has now, or `None` if it is gone. A version comes from a `FileInfo`: for `remove` and `move` from
        `stat(path, follow_symlinks=False)`, because they take a link itself. The version of a directory
        changes with the names in it, not with what lies deeper.
    """,
    "AsyncWorkspace": """
        Open it with `await AsyncWorkspace.open(directory)`, or wrap an open workspace, which it then has as
        `workspace`. Its operations are awaited.
    """,
    "Limits": "[Limits](limits.md) lists them with those of a search, a command line and an archive.",
    "WorkspaceManager": """
        A session has a workspace, a journal, a quota, and a lifetime: it expires when nobody has used it for
        its `ttl_seconds`. [The life of a session](../how-to/life-of-a-session.md) shows it. Use the manager
        in a `with` statement, or `close` it.
    """,
    "BaseSandbox": """
        What every sandbox offers. It has its `runtime`, its `session_id` and its `policy`.
    """,
    "ContainerSandbox": """
        [Use containers](../how-to/use-containers.md) shows it. `reset` ends what runs in the container and
        empties its `/tmp`. A policy with `fuel_budget` or `mount_data_dir` is refused.

        The files of a program are counted while it runs, so the quota of the session may be passed by what is
        written between two looks; then it is ended (`quota_exceeded`), and nothing more is written or run
        until something is removed. The size of one file, memory (the policy's or the container's, whichever
        is less), processes and `/tmp` are exact.
    """,
    "Shell": """
        [Use the shell](../how-to/use-the-shell.md) shows it, and [commands](commands.md) lists the commands.
        It leaves the workspace open in the end; where an `operator` changed the rules, `workspace` is another
        one. `pipelines` and `budget` are what is in force.
    """,
    "Budget": "The defaults are among the [limits](limits.md#budget-of-a-command-line).",
    "Toolbox": """
        [Use the tools](../how-to/use-the-tools.md) shows it, and [tools](tools.md) lists the tools. The role
        is the name of one that is [configured](settings.md#roles), or a `Role`; the profile is `agent`,
        `files`, `editor`, `coding` or `mcp`. `role` and `profile` say whose tools they are, and under which
        names. Many threads may call at the same time.
    """,
    "Client": """
        [Use sessions of a service](../how-to/use-the-client.md) shows it. Use it in a `with` statement, or
        `close` it. `UnreachableError` says that no service answers.
    """,
    "AsyncClient": "Every call is awaited, and what it opens is an `AsyncRemoteWorkspace`.",
    "RemoteWorkspace": """
        What a `Client` opens, from `carrel.remote.workspace`. `shell`, `sandbox` and `toolbox` give what is
        used like a [`Shell`](#shell), a [`PythonSandbox`](#pythonsandbox) and a [`Toolbox`](#toolbox).
    """,
    "SandboxPolicy": "[Rules](../explanation/policy.md) says how they are read.",
    "SandboxLogger": """
        [Logging](../how-to/logging.md) shows it, and [events](events.md) lists what is logged.
    """,
    "CarrelError": """
        Every error of an operation derives from it; it has `code`, `message` and `path`. [Errors](errors.md)
        lists them.
    """,
}
"""By the title of a group or by a public name."""

OPTIONS = "These are given by name, one by one: `Workspace.open(directory, limits=Limits(...))`."

RESULTS = "They are not imported from `carrel`, since hardly anybody makes one."

ELSEWHERE = table(
    ("module", "holds"),
    [
        ("`carrel.errors`", "The tree of errors."),
        ("`carrel.audit.journal`", "`FileJournal` and `MemoryJournal`, to be given as `journal=`."),
        (
            "`carrel.containers.engine`",
            "`Engine.connect(address=None)`: the Docker engine; `facts()`, `has_image(name)`, `pull(name)`,"
            " `close()`.",
        ),
        (
            "`carrel.containers.manager`",
            "`Containers(engine, directory)`: one container for each name, however many want it: `register`,"
            " `ensure`, `start`, `stop`, `status`, `remove`, `known`, `sweep`, `close`.",
        ),
        (
            "`carrel.containers.spec`",
            "`ContainerSpec`, what a container is made of, locked down by default; `Bind` and `Volume`, what"
            " is at its `/workspace`.",
        ),
        (
            "`carrel.containers.files`",
            "`ContainerFiles(container)`: files that live only in a container, to be given to `Workspace`.",
        ),
        (
            "`carrel.workspace.container_workspaces`",
            "`ContainerWorkspaces(engine, directory, *, image, in_memory=False)`: workspaces whose files are"
            " in a volume each: `open(key, **options)`, `container(key)`, `delete(key)`, `close()`.",
        ),
    ],
)
