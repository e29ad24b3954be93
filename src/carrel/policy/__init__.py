"""Access decisions, made from values alone.

`rules` decides about a path, `roles` about a tool, `execution` about the resources of a run. Start with
`rules`. Nothing here touches a file of a workspace.
"""
