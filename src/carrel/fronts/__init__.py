"""The ways in: command line, HTTP, gRPC and MCP, one package each, and what all listening fronts share.

Start with `server`, which runs HTTP, gRPC and MCP in one process; every other front knows only itself.
Rules about callers, sessions and limits belong to `carrel.service`.
"""
