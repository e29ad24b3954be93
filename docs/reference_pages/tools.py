"""The page about the tools."""

from __future__ import annotations

from collections.abc import Iterator

from carrel.tools.core.options import ANSWER_BYTES, DATA_BYTES, ToolOptions
from carrel.tools.core.spec import Profile, RunLocation, Tool, ToolFacts
from carrel.tools.core.table import TOOLS
from carrel.tools.results.changes import MAX_SHOWN_IMAGES
from carrel.tools.results.media import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE
from carrel.values import MIB
from docs.reference_pages.markdown import page, plain, table
from docs.reference_pages.schema import argument_rows
from docs.reference_pages.source import documented, field_words


def make() -> str:
    """The page about the tools."""
    return page(
        "Tools",
        """
        The tools of `Toolbox.call` and `carrel tool`; [use the tools](../how-to/use-the-tools.md) shows how
        to call them. A role has the tools that the [configuration](settings.md#roles) names, and those
        granted with them; [roles](../explanation/roles.md) explains this. `carrel tools` lists them.
        """,
        "## The answer",
        table(
            ("key", "holds"),
            [
                ("`success`", "Whether the call succeeded."),
                ("`output` or `data`", "The result; `data` in the profile `files`."),
                (
                    "`model_text`",
                    "What a model reads instead, if that differs: a JSON file as it is.",
                ),
                (
                    "`images`",
                    "Images that were read or that a run wrote: `path`, `media_type`, `size_bytes`, `width`,"
                    " `height`, and `data` as base64.",
                ),
                ("`error`", "If it failed: what is wrong, and what to do next."),
                ("`metadata`", "Further information, as below. Each tool adds its own."),
            ],
        ),
        table(
            ("metadata", "holds"),
            [
                ("`code`", "If it failed, the stable [code](errors.md) of the error."),
                ("`next`", "If it failed, what to do next."),
                (
                    "`path`",
                    "The file or directory, with the path inside the session: `/workspace/...`. If it failed,"
                    " the path as it was requested.",
                ),
                ("`version`", "The version of the file; pass it as `if_match`."),
                (
                    "`changes`",
                    "The changes made by the call, each with `action` (`created`, `changed`, `deleted`,"
                    " `moved`, `touched`), `path` and sizes.",
                ),
                ("`changes_left_out`", "The number of changes beyond the 100 in `changes`."),
                ("`diff`", "A diff of the text, truncated if it is long; none if the file is large."),
                ("`note`", "The line that ends what a model reads: what is missing, and how to get it."),
                ("`truncated`", "The output was truncated; what a model reads may be cut before."),
                ("`next_cursor`", "Pass it as `cursor` to continue."),
            ],
        ),
        """
        `ToolResult.text()` is what a model reads: `model_text`, or else `output` or `data`, as text or JSON;
        then `note`, and `error`. `ToolResult.content(format)` is the same as content blocks of a provider,
        with the images.
        """,
        f"""
        PNG, JPEG, GIF and WebP images of at most {MAX_IMAGE_BYTES // MIB} MiB and {MAX_IMAGE_SIDE} pixels a
        side are shown as images. Of a run, those that it wrote are shown if there are at most
        {MAX_SHOWN_IMAGES}, and as many as fit into {MAX_IMAGE_BYTES // MIB} MiB together. Incomplete images
        are only described.
        """,
        """
        Arguments are parsed strictly: an unknown argument, or one of another type, is rejected by name with
        `tool.arguments`, and nothing is done. `null` counts as not given. No answer contains a path of the
        host.
        """,
        *(part for profile in Profile for part in profile_parts(profile)),
        "## Options of a toolbox",
        """
        `Toolbox(workspace, role, profile=..., **options)` accepts these, which override the configuration:
        """,
        table(
            ("option", "meaning"), [(f"`{name}`", text) for name, text in field_words(ToolOptions).items()]
        ),
        f"""
        A model reads at most {ANSWER_BYTES // 1024} KiB of a result unless `answer_bytes` is set. An output
        for programs has at most {DATA_BYTES // 1024} KiB unless `data_bytes` or `answer_bytes` is set.
        """,
    )


def profile_parts(profile: Profile) -> Iterator[str]:
    """The tools of one profile."""
    says = {name: text for name, _, text in documented(Profile)}[profile.name]
    yield f"## Profile {profile}"
    yield says
    tools = TOOLS[profile].values()
    yield table(
        ("tool", "does", "effect", "granted with"),
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
    schema = loaded.schema()
    yield f"### {tool.profile} {tool.name}"
    yield plain(loaded.description())
    contained = tool.load(RunLocation.CONTAINER).description(ToolFacts(RunLocation.CONTAINER))
    if contained != loaded.description():
        yield f"In a [container](../how-to/use-containers.md#for-the-tools-of-agents): {plain(contained)}"
    rows = list(argument_rows(schema))
    yield table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments."
