"""The tools of the MCP reference filesystem server, with its names and arguments, so its clients can switch.

Start with `reading`; `writing`, `listing` and `directory_tree` hold the others. The protocol is in
`carrel.fronts.mcp`, not here.
"""
