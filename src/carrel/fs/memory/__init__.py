"""The same files in memory, for tests and for sessions that do not exist.

Start with `files`; `tree` holds the nodes and walks through them. Nothing here touches the host.
"""
