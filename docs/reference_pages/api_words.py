"""What the page about the Python API says beyond the docstrings."""

from __future__ import annotations

from docs.reference_pages.markdown import table

INTRODUCTION = """
    Everything here is imported from `carrel`, unless another module is named. Names load on first use, so
    `import carrel` is light. An operation raises the [errors](errors.md) of `carrel.errors`, and `ValueError`
    or `TypeError` for invalid arguments.
"""

NOTES = {
    "Files of a session by its id": """
        They take a session id and relative paths; absolute paths are rejected, including `/workspace`.
        `workspace_root` is the sessions directory, by default the [configured](settings.md) one.

        A session id is 1 to 128 letters, digits, `-`, `_` and single dots inside; it begins with a letter, a
        digit or `_`, and is not a Windows device name.
    """,
    "Running code": """
        See [run Python in a session](../how-to/run-python.md); the extra `python` has the engine.
    """,
    "Workspace": """
        Use it in a `with` statement, or `close` it.

        A path is a `str` or a path object. `\\` separates names like `/`, and `mount` is the absolute path
        that stands for the workspace: `/workspace`. A pattern without a slash matches names at any depth,
        one with a slash the whole path; `**` stands for any number of directories.

        With `if_version`, only that version of a file is changed, removed or moved, which prevents lost
        updates; otherwise the call raises `ChangedError`, whose `version` is the current one, or `None` if
        the file is gone. A version comes from a `FileInfo`: for `remove` and `move` from `stat(path,
        follow_symlinks=False)`, because they take a link itself. The version of a directory changes with
        the names in it, not with what lies deeper.
    """,
    "AsyncWorkspace": """
        Open it with `await AsyncWorkspace.open(directory)`, or wrap an open workspace, which is then its
        attribute `workspace`. Its operations are awaitable.
    """,
    "Limits": "[Limits](limits.md) lists them with those of a search, a command line and an archive.",
    "WorkspaceManager": """
        A session has a workspace, a journal, a quota, and a lifetime: it expires when it has not been used
        for its `ttl_seconds`. See [manage sessions](../how-to/life-of-a-session.md). Use the manager in a
        `with` statement, or `close` it.
    """,
    "AsyncWorkspaceManager": """
        Its operations are awaitable; `create`, `open` and `get_workspace` return an `AsyncWorkspace`. The
        manager that it uses is its attribute `manager`.
    """,
    "BaseSandbox": """
        The interface of every sandbox. It has a `runtime`, a `session_id` and a `policy`.
    """,
    "ContainerSandbox": """
        See [use containers](../how-to/use-containers.md). `reset` ends all programs in the container and
        empties its `/tmp`. A policy with `fuel_budget` or `mount_data_dir` is rejected.

        The files of a program are measured while it runs, so it may exceed the quota of the session by what
        is written between two measurements; then it is ended (`quota_exceeded`), and nothing more can be
        written or run until something is removed. The limits on the size of one file, memory (the policy's or
        the container's, whichever is less), processes and `/tmp` are exact.
    """,
    "Shell": """
        See [use the shell](../how-to/use-the-shell.md); [commands](commands.md) lists the commands. Closing
        it leaves the workspace open; after an `operator` changed the rules, `workspace` is another object.
        `pipelines` and `budget` are the effective values.
    """,
    "Budget": "The defaults are among the [limits](limits.md#budget-of-a-command-line).",
    "Toolbox": """
        See [use the tools](../how-to/use-the-tools.md); [tools](tools.md) lists the tools. The role is the
        name of a [configured](settings.md#roles) one, or a `Role`; the profile, `agent`, `files`, `editor`,
        `coding` or `mcp`, determines the names of the tools. A toolbox is thread-safe.
    """,
    "Client": """
        See [use the service from Python](../how-to/use-the-client.md). Use it in a `with` statement, or
        `close` it. `UnreachableError` means that no service answers.
    """,
    "AsyncClient": "Every call is awaitable, and it opens an `AsyncRemoteWorkspace`.",
    "RemoteWorkspace": """
        The workspace that a `Client` opens, from `carrel.remote.workspace`. `shell`, `sandbox` and `toolbox`
        return objects that are used like a [`Shell`](#shell), a [`PythonSandbox`](#pythonsandbox) and a
        [`Toolbox`](#toolbox).
    """,
    "SandboxPolicy": "See [rules](../explanation/policy.md).",
    "SandboxLogger": """
        See [set up logging](../how-to/logging.md); [events](events.md) lists the events.
    """,
    "CarrelError": """
        Every error of an operation derives from it; it has `code`, `message` and `path`. [Errors](errors.md)
        lists them.
    """,
}
"""By the title of a group or by a public name."""

OPTIONS = "Pass these as keyword arguments: `Workspace.open(directory, limits=Limits(...))`."

RESULTS = "They are not exported by `carrel`, because programs rarely construct them."

ELSEWHERE = table(
    ("module", "holds"),
    [
        ("`carrel.errors`", "The tree of errors."),
        ("`carrel.audit.journal`", "`FileJournal` and `MemoryJournal`, to pass as `journal=`."),
        (
            "`carrel.runtimes.host_tools`",
            "`tool_schemas(tools)`: the JSON Schema of each function that is given to code as `tools=`.",
        ),
        (
            "`carrel.containers.engine`",
            "`Engine.connect(address=None)`: the Docker engine; `facts()`, `has_image(name)`, `pull(name)`,"
            " `close()`.",
        ),
        (
            "`carrel.containers.manager`",
            "`Containers(engine, directory)`: one container per name, shared by all processes: `register`,"
            " `ensure`, `start`, `stop`, `status`, `remove`, `known`, `sweep`, `close`.",
        ),
        (
            "`carrel.containers.spec`",
            "`ContainerSpec`, the settings of a container, locked down by default; `Bind` and `Volume`, its"
            " `/workspace`.",
        ),
        (
            "`carrel.containers.files`",
            "`ContainerFiles(container)`: files that live only in a container, to pass to `Workspace`.",
        ),
        (
            "`carrel.workspace.container_workspaces`",
            "`ContainerWorkspaces(engine, directory, *, image, in_memory=False)`: workspaces whose files are"
            " in one volume each: `open(key, **options)`, `container(key)`, `delete(key)`, `close()`.",
        ),
    ],
)
