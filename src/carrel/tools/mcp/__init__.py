"""The tools of the reference filesystem server of MCP."""
