"""How MCP messages arrive: over standard streams for one client, or over streamable HTTP for many.

Start with `stdio_server` or `streamable_http`. What a request means is in the package above; nothing here
knows tools or files.
"""
