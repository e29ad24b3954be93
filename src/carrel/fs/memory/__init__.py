"""Files in memory, for tests and for work that leaves nothing behind.

Start with `files`; `tree` holds the nodes and walks through them. Nothing here touches the host.
"""
