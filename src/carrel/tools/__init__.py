"""Tools for agents: named functions with a JSON schema, offered to a role on one workspace.

Start with `toolbox`, then `core.table`, which lists all tools, and any module of `profiles.agent`; `remote`
calls the same tools at a service. A tool reaches files only through the workspace of its context, so no
path is resolved and no quota is counted here.
"""
