"""The benchmarks, in the order in which they run and appear on the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """One benchmark: `python -m bench.NAME`."""

    name: str
    title: str
    about: str
    """What is measured, and the alternatives."""
    unplotted: tuple[str, ...] = ()
    """Details whose rows are left out of the plot."""


AREAS = (
    Area(
        "files",
        "Files through the gate",
        "`ours` is the workspace of a session: rules, quota, journal and limits on. `plain` is ordinary code"
        " without confinement; `usual` is the usual way to confine: resolve, check, then open by name.",
        unplotted=("depth 1", "depth 8"),
    ),
    Area(
        "sessions",
        "Sessions",
        "`ours` keeps a registry, and counts and records every write. `usual` is a directory with a JSON file"
        " in it, a scan of all files before each write, and `shutil.rmtree`.",
    ),
    Area(
        "python",
        "Guest Python",
        "`ours` is Python in WebAssembly on the files of a session. `native` is a new Python process for"
        " every call, without confinement; `bare engine` is carrel's engine alone: no files, no rules, no"
        " session. The others are packages that sandbox Python as well.",
    ),
    Area(
        "shell",
        "The shell",
        "`ours` runs in process, on the files of a session; in a worker, as in a service. `GNU` starts the"
        " tool of the machine for every command, without confinement; bashkit is another in-process shell, on"
        " the same files.",
    ),
    Area(
        "tools",
        "Tools",
        "`ours` is a tool call, from its arguments to its answer. `bare` is the workspace operation that"
        " does the work.",
    ),
    Area(
        "service",
        "The service",
        "`ours` is a call over HTTP, gRPC or MCP on one machine. `in process` is the same library call,"
        " the empty route is the framework's time for an empty answer, and server-filesystem is the MCP"
        " reference server for files.",
    ),
    Area(
        "containers",
        "Containers",
        "`ours` is a workspace whose files live in a container, and a command in the container of a session:"
        " rules, quota and journal on. `docker` is the program of that name, started for every operation;"
        " `one exec a call` asks the engine for the same without it.",
    ),
)
