"""The page about MCP."""

from __future__ import annotations

from collections.abc import Iterator

from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About, SessionTool
from carrel.policy.roles import CODE
from docs.reference_pages.markdown import codes, page, plain, table
from docs.reference_pages.schema import argument_rows


def make() -> str:
    """The page about MCP."""
    return page(
        "MCP",
        """
        The interface of `carrel mcp` and of `/mcp` of `carrel serve` for clients of the Model Context
        Protocol; see [use carrel over MCP](../how-to/use-mcp.md). It has the [tools](tools.md) of the
        chosen profiles, `agent` by default, and the session tools below. A caller gets those that its role
        has.

        Unless the caller is bound to a session, each tool that works on one takes its id as `session`.
        Tools that work on files or run something create it when it is first named.
        """,
        "## Answers",
        """
        The structured content is the [answer](tools.md#the-answer) of the tool, the content the same as
        text. If the call failed, `isError` is set. An unknown tool, or one that the caller's role does not
        have, is a protocol error. The tools of the profile `mcp` return `content` instead of `output`, as
        the reference server does.
        """,
        "## Resources",
        """
        `carrel://SESSION/PATH` is a file, `carrel:///PATH` one of the session that the caller is bound to.
        The path is percent-encoded, once. Text files are returned as text and all others as base64. A
        directory is a JSON list of `name`, `uri`, `kind` and `size_bytes`. A caller that is bound to a
        session lists its files; any other lists the sessions.
        """,
        "## Session tools",
        table(
            ("tool", "does", "needs", "hints"),
            [
                (
                    f"[`{tool.name}`](#{tool.name})",
                    tool.summary,
                    f"`{tool.needs}`" if tool.needs else "",
                    ", ".join(hints_of(tool)),
                )
                for tool in SESSION_TOOLS.values()
            ],
        ),
        """
        A role has such a tool if it has the tool in the column "needs". A caller that is bound to a session
        does not get those that create, list or delete sessions.
        """,
        f"""
        {codes(name for name, tool in SESSION_TOOLS.items() if tool.replaced_by == CODE)} are not listed
        beside `{CODE}`, the tool of the profile `agent` that runs code, so that a model has one tool for it.
        Calls of them work nevertheless.
        """,
        *(
            part
            for tool in SESSION_TOOLS.values()
            for part in session_tool_parts(tool, takes_session=tool.about is About.ONE)
        ),
    )


def hints_of(tool: SessionTool) -> Iterator[str]:
    """The hints to clients about the effect of a tool."""
    if tool.reads:
        yield "read-only"
    if tool.destructive:
        yield "destructive"
    if tool.idempotent:
        yield "idempotent"


def session_tool_parts(tool: SessionTool, *, takes_session: bool) -> Iterator[str]:
    """One tool and its arguments."""
    yield f"### {tool.name}"
    yield plain(tool.render()["description"])
    rows = list(argument_rows(tool.parameters.schema()))
    if takes_session:
        rows.insert(0, ("`session`", "string", "required", "The session, unless the caller is bound to one"))
    yield table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments."
