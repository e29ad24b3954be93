"""Everything a front may ask for on behalf of a caller.

Who it is, what it may do, its sessions, executions and journal. Start with `service`, then `authentication`
and `sessions`. Nothing here knows HTTP, gRPC, MCP or the command line; a front translates requests and
results and adds no rules of its own.
"""
