"""Decisions made from values alone.

`rules` about a path, `roles` about a tool, `execution` about what one run may use. Start with `rules`.
Nothing here touches a file of a workspace.
"""
