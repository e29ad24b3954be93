"""The page about MCP."""

from __future__ import annotations

from collections.abc import Iterator

from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About, SessionTool
from docs.reference_pages.markdown import page, plain, table
from docs.reference_pages.schema import argument_rows


def make() -> str:
    """The page about MCP."""
    return page(
        "MCP",
        """
        What `carrel mcp` and the path `/mcp` of `carrel serve` offer to clients of the Model Context
        Protocol; [use it over MCP](../how-to/use-mcp.md) tells how. There are the [tools](tools.md) of the
        chosen profiles, `agent` unless others are named, and those about sessions, below. A caller is offered
        those that its role has.

        Unless the caller is bound to a session, each tool that is about one takes its id as `session`.
        Tools that work on files or run something make it when it is first named.
        """,
        "## Answers",
        """
        The structured content is the [answer](tools.md#the-answer) of the tool, the content the same as text.
        If the call failed, `isError` is set. A tool that is not there, or not for the caller's role, is an
        error of the protocol. The tools of the profile `mcp` give `content` instead of `output`, as the
        reference server does.
        """,
        "## Resources",
        """
        `carrel://SESSION/PATH` is a file, `carrel:///PATH` one of the session that the caller is bound to.
        The path is percent-encoded, once. A text is given as text and anything else as bytes in base64. A
        directory is a list of `name`, `uri`, `kind` and `size_bytes` in JSON. Who is bound to a session lists
        its files; who is not lists the sessions.
        """,
        "## Tools about sessions",
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
        A role has such a tool if it has the one that the tool needs. Those that make or list sessions are not
        offered to a caller who is bound to one.
        """,
        *(
            part
            for tool in SESSION_TOOLS.values()
            for part in session_tool_parts(tool, takes_session=tool.about is About.ONE)
        ),
    )


def hints_of(tool: SessionTool) -> Iterator[str]:
    """What a client is told about the effect of a tool."""
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
        rows.insert(0, ("`session`", "string", "needed", "The session, unless the caller is bound to one"))
    yield table(("argument", "type", "default", "meaning"), rows) if rows else "It takes no arguments."
