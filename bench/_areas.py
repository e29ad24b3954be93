"""The benchmarks, in the order in which they run and are told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """One benchmark: `python -m bench.NAME`."""

    name: str
    title: str
    about: str
    """What ours is, and what stands beside it."""
    unplotted: tuple[str, ...] = ()
    """Details whose rows are left out of the plot."""


AREAS = (
    Area(
        "files",
        "Files through the gate",
        "Ours is the workspace of a session: rules, quota, journal and limits on. `plain` is what one writes"
        " without any confinement; `usual` is the usual way to confine: resolve, check, then open by name.",
        unplotted=("depth 1", "depth 8"),
    ),
    Area(
        "sessions",
        "Sessions",
        "Ours keeps a registry, and counts and records every write. `usual` is a directory with a JSON file"
        " in it, a scan of all files before each write, and `shutil.rmtree`.",
    ),
    Area(
        "python",
        "Guest Python",
        "Ours is Python in WebAssembly on the files of a session. `native` is a new Python process for every"
        " call, without any confinement; `bare engine` is the engine of ours alone: no files, no rules, no"
        " session. The others are packages that sandbox Python as well.",
    ),
    Area(
        "shell",
        "The shell",
        "Ours runs in process, on the files of a session; in a worker, as in a service. `GNU` starts the tool"
        " of the machine for every command, without any confinement; bashkit is another shell in process, on"
        " the same files.",
    ),
    Area(
        "tools",
        "Tools",
        "Ours is a call of a tool, from its arguments to its answer. `bare` is the call of the workspace that"
        " does the work.",
    ),
    Area(
        "service",
        "The service",
        "Ours is a call over HTTP, gRPC or MCP on one machine. `in process` is the same call of the library,"
        " the empty route is what the framework takes to answer with nothing, and server-filesystem is the"
        " reference server of MCP for files.",
    ),
    Area(
        "containers",
        "Containers",
        "Ours is a workspace whose files live in a container, and a command in the container of a session:"
        " rules, quota and journal on. `docker` is the program of that name, started for every operation;"
        " `one exec a call` asks the engine for the same without it.",
    ),
)
