"""The page about the tools."""

from __future__ import annotations

from collections.abc import Iterator

from carrel.tools.core.options import ANSWER_BYTES, ToolOptions
from carrel.tools.core.spec import Profile, RunLocation, Tool
from carrel.tools.core.table import TOOLS
from docs.reference_pages.markdown import page, plain, table
from docs.reference_pages.schema import argument_rows
from docs.reference_pages.source import documented, field_words


def make() -> str:
    """The page about the tools."""
    return page(
        "Tools",
        """
        What `Toolbox.call` and `carrel tool` offer; [use the tools](../how-to/use-the-tools.md) tells how. A
        role has the tools that the [configuration](settings.md#roles) gives to it by name, and those that
        come with them; [roles](../explanation/roles.md) says what that means. `carrel tools` lists them.
        """,
        "## The answer",
        table(
            ("key", "holds"),
            [
                ("`success`", "Whether it did what it was asked."),
                ("`output` or `data`", "What it gives; `data` in the profile `files`."),
                ("`error`", "If it failed: what is wrong, and what to do next."),
                ("`metadata`", "What else is to be known, as below. Each tool has more of its own."),
            ],
        ),
        table(
            ("metadata", "holds"),
            [
                ("`code`", "If it failed, the stable [code](errors.md) of the error."),
                ("`next`", "If it failed, what to do next."),
                (
                    "`path`",
                    "The file or directory, as those inside call it: `/workspace/...`. If it failed, as it"
                    " was asked for.",
                ),
                ("`version`", "Which version of the file this is; `if_match` takes it."),
                (
                    "`changes`",
                    "What the call changed, each `action` (`created`, `changed`, `deleted`, `moved`,"
                    " `touched`), `path` and sizes.",
                ),
                ("`changes_left_out`", "How many more there were than the 100 that `changes` tells."),
                ("`diff`", "How the text of a file changed, cut if it is long; none if the file is large."),
                ("`truncated`", "That the answer was cut."),
                ("`next_cursor`", "What to give as `cursor` to go on."),
            ],
        ),
        """
        Arguments are read strictly: one that a tool does not know, or of another type, is refused by its name
        with `tool.arguments`, and nothing is done. `null` stands for an argument that is not given. No answer
        holds a path of the host.
        """,
        *(part for profile in Profile for part in profile_parts(profile)),
        "## Options of a toolbox",
        """
        `Toolbox(workspace, role, profile=..., **options)` takes these instead of what is configured:
        """,
        table(
            ("option", "meaning"), [(f"`{name}`", text) for name, text in field_words(ToolOptions).items()]
        ),
        f"An answer is cut at {ANSWER_BYTES // 1024} KiB unless `answer_bytes` says otherwise.",
    )


def profile_parts(profile: Profile) -> Iterator[str]:
    """The tools of one profile."""
    says = {name: text for name, _, text in documented(Profile)}[profile.name]
    yield f"## Profile {profile}"
    yield says
    tools = TOOLS[profile].values()
    yield table(
        ("tool", "does", "effect", "comes with"),
        [
            (
                f"[`{tool.name}`](#{profile}-{tool.name})",
                tool.summary,
                str(tool.effect),
                f"`{tool.along_with}`",
            )
            for tool in tools
        ],
    )
    for tool in tools:
        yield from tool_parts(tool)


def tool_parts(tool: Tool) -> Iterator[str]:
    """One tool and its arguments."""
    loaded = tool.load()
    schema = loaded.parameters.schema()
    yield f"### {tool.profile} {tool.name}"
    yield plain(loaded.description)
    contained = tool.load(RunLocation.CONTAINER).description
    if contained != loaded.description:
        yield f"In a [container](../how-to/use-containers.md#for-the-tools-of-agents): {plain(contained)}"
    rows = list(argument_rows(schema))
    yield table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments."
