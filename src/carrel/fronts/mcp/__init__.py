"""The Model Context Protocol: tools and files of sessions, over standard streams and streamable HTTP."""
