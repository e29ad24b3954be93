"""The Model Context Protocol.

Tools and files of sessions for agents, over standard streams and streamable HTTP. Start with `server`,
which says what each request does; how messages get here is in `transports`. What a tool does belongs to
`carrel.tools` and `carrel.service`, except the tools about sessions themselves.
"""
